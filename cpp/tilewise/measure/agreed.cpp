// Gathers numbers as they are, and texts in fields of one width.
#include "tilewise/measure/agreed.hpp"

#include <algorithm>
#include <array>
#include <cstring>

namespace tilewise::measure {

std::vector<double> gathered(const mpi::Communicator& comm, double mine) {
    std::vector<double> all(comm.rank() == 0 ? static_cast<std::size_t>(comm.size()) : 0);
    mpi::check(MPI_Gather(&mine, 1, MPI_DOUBLE, all.data(), 1, MPI_DOUBLE, 0, comm.get()), "MPI_Gather");
    return all;
}

std::vector<std::string> gathered(const mpi::Communicator& comm, const std::string& mine) {
    constexpr int width = 160;
    std::array<char, width> text{};
    std::memcpy(text.data(), mine.data(), std::min<std::size_t>(mine.size(), width - 1));
    std::vector<char> all(comm.rank() == 0 ? static_cast<std::size_t>(comm.size()) * width : 0);
    mpi::check(MPI_Gather(text.data(), width, MPI_CHAR, all.data(), width, MPI_CHAR, 0, comm.get()), "MPI_Gather");
    std::vector<std::string> texts;
    for (std::size_t at = 0; at < all.size(); at += width) {
        texts.emplace_back(all.data() + at);
    }
    return texts;
}

}  // namespace tilewise::measure
