// Which file MPI came from: with the standard ABI it may be another library than the program was built with.
#pragma once

#include <string>

namespace tilewise::mpi {

/// The path of the loaded library; empty where the system does not say.
std::string library_file();

/// Whether it says that it takes addresses on graphics processors: "yes", "no", or "" where there is no call to ask by.
/// After MPI_Init.
std::string takes_device_addresses();

}  // namespace tilewise::mpi
