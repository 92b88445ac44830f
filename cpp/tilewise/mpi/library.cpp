// Asks the dynamic linker where it found MPI.
#include "tilewise/mpi/library.hpp"

#include <dlfcn.h>

namespace tilewise::mpi {

std::string library_file() {
    // By name: a program's own address of the function may be that of its jump to it.
    Dl_info found{};
    void* function = dlsym(RTLD_DEFAULT, "MPI_Init");
    return function != nullptr && dladdr(function, &found) != 0 && found.dli_fname != nullptr ? found.dli_fname : "";
}

std::string takes_device_addresses() {
    // An extension that MPICH, Open MPI and those made of them share; others have no way to ask.
    const auto ask = reinterpret_cast<int (*)()>(dlsym(RTLD_DEFAULT, "MPIX_Query_cuda_support"));
    return ask == nullptr ? "" : ask() != 0 ? "yes" : "no";
}

}  // namespace tilewise::mpi
