// Which file MPI came from: with the standard ABI it may be another library than the program was built with.
#pragma once

#include <string>

namespace tilewise::mpi {

/// The path of the loaded library; empty where the system does not say.
std::string library_file();

}  // namespace tilewise::mpi
