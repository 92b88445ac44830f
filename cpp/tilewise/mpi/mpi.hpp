// The only door to <mpi.h>: code above calls plain MPI functions inside `check`.
#pragma once

#include <string>

#include <mpi.h>

#include "tilewise/base/error.hpp"

namespace tilewise::mpi {

/// Throws Error(mpi) with the call's name and the library's own words, unless `code` is MPI_SUCCESS. Not collective:
/// only this rank throws, so what may fail on one rank alone belongs inside `together` or `no_return`.
void check(int code, const char* call);

/// What the library calls itself, first line: "MPICH Version: 5.0.2".
std::string library_version();

/// The path of the loaded library; empty where the system does not say.
std::string library_file();

/// Whether it says that it takes addresses on graphics processors: "yes", "no", or "" where there is no call to ask by.
/// After MPI_Init.
std::string takes_device_addresses();

}  // namespace tilewise::mpi
