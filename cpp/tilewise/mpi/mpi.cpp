// Turns MPI's return codes into exceptions that say which call failed and why.
#include "tilewise/mpi/mpi.hpp"

#include <algorithm>
#include <array>

namespace tilewise::mpi {

void check(int code, const char* call) {
    if (code == MPI_SUCCESS) {
        return;
    }
    std::array<char, MPI_MAX_ERROR_STRING> text{};
    int length = 0;
    MPI_Error_string(code, text.data(), &length);
    std::string words(text.data(), static_cast<std::size_t>(length));
    std::replace(words.begin(), words.end(), '\n', ' ');  // a library's stack of errors becomes one line
    throw Error(ErrorKind::mpi, std::string(call) + " failed: " + words);
}

std::string library_version() {
    std::array<char, MPI_MAX_LIBRARY_VERSION_STRING> text{};
    int length = 0;
    check(MPI_Get_library_version(text.data(), &length), "MPI_Get_library_version");
    const std::string whole(text.data(), static_cast<std::size_t>(length));
    const auto end = whole.find_first_of("\n,");
    std::string line = whole.substr(0, end);
    while (!line.empty() && (line.back() == ' ' || line.back() == '\t')) {
        line.pop_back();
    }
    for (char& letter : line) {
        letter = letter == '\t' ? ' ' : letter;
    }
    return line;
}

}  // namespace tilewise::mpi
