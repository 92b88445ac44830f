// Turns MPI's return codes into exceptions that say which call failed and why.
#include "tilewise/mpi/mpi.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <dlfcn.h>
#include <utility>

#include "tilewise/mpi/communicator.hpp"

namespace tilewise::mpi {
namespace {

/// The system's number behind a code of MPI-IO: by its class, else by the system's words in the library's text, else 0.
int error_number_of(int code, const std::string& words) {
    constexpr std::array classes{std::pair{MPI_ERR_NO_SPACE, ENOSPC}, std::pair{MPI_ERR_QUOTA, EDQUOT},
                                 std::pair{MPI_ERR_NO_SUCH_FILE, ENOENT}, std::pair{MPI_ERR_ACCESS, EACCES},
                                 std::pair{MPI_ERR_READ_ONLY, EROFS}};
    int code_class = MPI_SUCCESS;
    MPI_Error_class(code, &code_class);
    for (const auto& [its, number] : classes) {
        if (its == code_class) {
            return number;
        }
    }
    for (const int number : {ENOSPC, EDQUOT, EINTR, EIO, EFBIG, ESTALE, ENOENT, EACCES, EROFS, EMFILE, ENFILE}) {
        if (words.find(system_reason(number)) != std::string::npos) {
            return number;
        }
    }
    return 0;
}

}  // namespace

void check(int code, const char* call) {
    if (code == MPI_SUCCESS) {
        return;
    }
    if (losses_are_survived()) {
        revoke_all();  // now: on the way to whoever handles it communicators are lost that others wait in
    }
    std::array<char, MPI_MAX_ERROR_STRING> text{};
    int length = 0;
    MPI_Error_string(code, text.data(), &length);
    std::string words(text.data(), static_cast<std::size_t>(length));
    std::replace(words.begin(), words.end(), '\n', ' ');  // a library's stack of errors becomes one line
    throw MpiError(std::string(call) + " failed: " + words, -1, error_number_of(code, words));
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
