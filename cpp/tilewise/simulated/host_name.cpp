// The simulated host that a rank is on, in place of base/host_name.cpp.
#include <array>

#include <mpi.h>

#include "tilewise/base/host.hpp"

namespace tilewise {

std::string host_name() {
    std::array<char, MPI_MAX_PROCESSOR_NAME + 1> name{};
    int length = 0;
    MPI_Get_processor_name(name.data(), &length);
    return name.data();
}

}  // namespace tilewise
