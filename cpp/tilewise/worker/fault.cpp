// Takes the fault's words apart, and does what they say when the moment has come.
#include "tilewise/worker/fault.hpp"

#include <csignal>
#include <stdexcept>
#include <unistd.h>

#include "tilewise/base/error.hpp"
#include "tilewise/io/chunked.hpp"
#include "tilewise/io/corrupt_for_test.hpp"
#include "tilewise/mpi/mpi.hpp"

namespace tilewise::worker {

Ledger::Hook fault_hook(const std::string& fault, int rank) {
    const auto first = fault.find(':');
    const auto second = fault.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos ||
        std::stoi(fault.substr(first + 1, second - first - 1)) != rank) {
        return {};
    }
    const auto star = fault.find('*', second);
    const int times = star == std::string::npos ? 1 : std::stoi(fault.substr(star + 1));
    return [what = fault.substr(0, first), where = fault.substr(second + 1, star - second - 1),
            left = times](Phase phase) mutable {
        if (phase_names[static_cast<std::size_t>(phase)] != where || --left > 0) {
            return;
        }
        if (what == "kill") {
            raise(SIGKILL);
        } else if (what.starts_with("signal-")) {
            raise(std::stoi(what.substr(7)));
        } else if (what == "throw") {
            throw std::runtime_error("told to fail in phase " + where);
        } else if (what == "wait") {
            MPI_Recv(nullptr, 0, MPI_BYTE, 0, 0, MPI_COMM_SELF, MPI_STATUS_IGNORE);  // nobody sends it
        } else if (what == "hang") {
            for (;;) {
                sleep(1000);
            }
        }
    };
}

void break_unpacking_if_told(const std::string& fault) {
    using io::UnpackingFault;
    io::break_unpacking(fault == "unpack-bit"         ? UnpackingFault::bit
                        : fault == "unpack-shift"     ? UnpackingFault::shift
                        : fault == "unpack-forgotten" ? UnpackingFault::forgotten
                                                      : UnpackingFault::none);
}

void fail_if_told(const std::string& fault, int rank) {
    break_unpacking_if_told(fault);
    io::corrupt_results(fault == "element");
    if (fault == "fail:" + std::to_string(rank)) {
        throw IoError("told to fail in preparation");
    }
}

}  // namespace tilewise::worker
