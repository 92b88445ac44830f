// The only door to <mpi.h>: code above calls plain MPI functions inside `check`.
#pragma once

#include <mpi.h>

#include "tilewise/base/error.hpp"

namespace tilewise::mpi {

/// Throws Error(mpi) with the call's name and the library's own words, unless `code` is MPI_SUCCESS. Not collective:
/// only this rank throws, so what may fail on one rank alone belongs inside `together` or `no_return`.
void check(int code, const char* call);

/// What the library calls itself, first line: "MPICH Version: 5.0.2".
std::string library_version();

}  // namespace tilewise::mpi
