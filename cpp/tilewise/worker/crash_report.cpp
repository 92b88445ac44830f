// Handlers that only write bytes which are there, and a pipe that is opened through /proc.
#include "tilewise/worker/crash_report.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <iostream>
#include <mutex>
#include <poll.h>
#include <string>
#include <string_view>
#include <unistd.h>

#include "tilewise/base/host.hpp"
#include "tilewise/worker/events.hpp"
#include "tilewise/worker/front_connection.hpp"

namespace tilewise::worker {
namespace {

constexpr int patience = 10000;  ///< milliseconds for the front to say what it heard, and to end this rank
constexpr int hearing = 300;     ///< milliseconds in which the front hears of a rank that is lost, and tells the others
constexpr int ending = 10000;    ///< milliseconds in which it then ends them

std::atomic<int> own_rank = 0;
std::atomic<const Ledger*> own_ledger = nullptr;
std::atomic<bool> joined = false, plain = false;
std::mutex ledger_is_looked_at;  ///< it lives as long

/// Text in a signal handler, where nothing may be allocated.
class Line {
public:
    Line& operator<<(std::string_view text) {
        const std::size_t put = std::min(text.size(), bytes_.size() - size_);
        std::memcpy(bytes_.data() + size_, text.data(), put);
        size_ += put;
        return *this;
    }
    Line& operator<<(long number) {
        std::array<char, 20> digits{};
        std::size_t at = digits.size();
        for (unsigned long left = number < 0 ? 0 : static_cast<unsigned long>(number); at > 0; left /= 10) {
            digits[--at] = static_cast<char>('0' + left % 10);
            if (left < 10) {
                break;
            }
        }
        return *this << std::string_view(digits.data() + at, digits.size() - at);
    }
    void write_to(int descriptor) const {
        [[maybe_unused]] const ssize_t put = write(descriptor, bytes_.data(), size_);
    }

private:
    std::array<char, 1024> bytes_{};
    std::size_t size_ = 0;
};

std::string_view phase_of(const Ledger* ledger) {
    return ledger != nullptr ? phase_names[static_cast<std::size_t>(ledger->phase())] : "";
}

void tell(int number) {
    const std::string_view phase = phase_of(own_ledger);
    Line line;
    if (!plain) {
        line << "\x1e{\"event\": \"signal\", \"rank\": " << own_rank.load() << ", \"number\": " << number
             << ", \"phase\": \"" << phase << "\"}\n";
        line.write_to(STDOUT_FILENO);
    } else if (number != SIGUSR2) {
        line << "tilewise: rank " << own_rank.load() << " was killed by signal " << number << "\n";
        line.write_to(STDERR_FILENO);
    }
}

/// Whether what goes wrong here is only the consequence of another rank's loss, which MPI libraries meet with errors,
/// aborts or crashes. The front then ends this rank; this function returns when it does not.
bool only_follows() {
    if (!loss_is_known(hearing)) {
        return false;
    }
    poll(nullptr, 0, ending);
    return true;
}

/// In a joined job, waits until the front has heard us and ends this rank by its line; or has left.
void let_front_speak() {
    if (joined && !plain) {
        pollfd pipe{.fd = STDOUT_FILENO, .events = POLLRDHUP, .revents = 0};  // once nobody reads any more
        while (poll(&pipe, 1, patience) < 0 && errno == EINTR) {
        }
    }
}

void on_signal(int number, siginfo_t* info, void*) {
    const int kept = errno;
    const bool sent = info->si_code <= 0;
    if (number == SIGUSR2) {
        tell(number);
        errno = kept;
        return;
    }
    if (!sent && only_follows()) {
        _exit(1);
    }
    if (!sent || info->si_pid != getppid()) {
        tell(number);
        let_front_speak();
        if (joined && !plain) {
            _exit(1);  // the launcher takes its own exit code from it; hydra's is 1 or 9
        }
    }
    // It was reset when we were called: what comes again now ends us, as it would have without us.
    if (sent) {
        raise(number);
    }
    errno = kept;
}

}  // namespace

void tell_of_signals(int rank) {
    own_rank = rank;
    // A stack that has run over leaves the handler no room.
    static std::array<char, 1 << 16> room;
    stack_t stack{};
    stack.ss_sp = room.data();
    stack.ss_size = room.size();
    sigaltstack(&stack, nullptr);
    struct sigaction action{};
    action.sa_sigaction = on_signal;
    for (const int number :
         {SIGSEGV, SIGBUS, SIGABRT, SIGFPE, SIGILL, SIGSYS, SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGXCPU}) {
        action.sa_flags = static_cast<int>(SA_SIGINFO | SA_ONSTACK | SA_RESETHAND);
        struct sigaction old{};
        sigaction(number, nullptr, &old);
        if (old.sa_handler != SIG_IGN) {  // as a hang-up under nohup
            sigaction(number, &action, nullptr);
        }
    }
    action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESTART;
    sigaction(SIGUSR2, &action, nullptr);
}

PhaseTold::PhaseTold(const Ledger& ledger) { own_ledger = &ledger; }
PhaseTold::~PhaseTold() {
    const std::lock_guard lock(ledger_is_looked_at);
    own_ledger = nullptr;
}

Whereabouts whereabouts() {
    const std::lock_guard lock(ledger_is_looked_at);
    return {own_rank, phase_of(own_ledger)};
}

void join_output(const mpi::Communicator& comm, bool is_joined) {
    struct Place {
        Front front;
        std::array<char, 256> host{};
        long pid = 0;
    };
    Place mine{.front = Front::by_environment(), .pid = getpid()};
    host_name().copy(mine.host.data(), mine.host.size() - 1);
    Place first = mine;
    mpi::check(MPI_Bcast(&first, sizeof first, MPI_BYTE, 0, comm.get()), "MPI_Bcast");
    hold_line(first.front);
    joined = is_joined;
    if (comm.rank() == 0 || !joined) {
        return;
    }
    // The pipe from rank 0 to its front has a name for whoever may look at rank 0.
    const std::string pipe = "/proc/" + std::to_string(first.pid) + "/fd/" + std::to_string(STDOUT_FILENO);
    const bool together = mine.host == first.host;
    const int descriptor = together ? open(pipe.c_str(), O_WRONLY | O_CLOEXEC) : await_line_elsewhere();
    plain = descriptor < 0;
    if (!plain) {
        dup2(descriptor, STDOUT_FILENO);
    }
    if (!plain && together) {
        close(descriptor);
    }
}

void leave_output() {
    leave_line();
    const int nowhere = joined ? open("/dev/null", O_WRONLY | O_CLOEXEC) : -1;
    if (nowhere >= 0) {
        dup2(nowhere, STDOUT_FILENO);
        dup2(nowhere, STDERR_FILENO);
        close(nowhere);
    }
}

void speak_and_abort(const Error& error, int rank) {
    if (error.kind() == ErrorKind::mpi && only_follows()) {
        _exit(1);
    }
    if (plain) {
        std::cerr << "tilewise: rank " << rank << " on " << host_name() << ": " << error.what() << std::endl;
    } else {
        emit_error(error, rank, true);
        let_front_speak();
    }
    leave_output();
}

void tell_of_bus_error(const char* name, bool writing) {
    const std::string_view what =
        writing ? ": there is no space for the output: the disk may be full" : ": became shorter while it was read";
    Line line;
    if (plain) {
        (line << "tilewise: rank " << own_rank.load() << ": " << name << what << "\n").write_to(STDERR_FILENO);
        return;
    }
    line << "\x1e{\"event\": \"error\", \"kind\": \"io\", \"aborts\": true, \"rank\": " << own_rank.load()
         << ", \"errno\": " << (writing ? ENOSPC : 0) << ", \"message\": \"" << name << what << "\"}\n";
    line.write_to(STDOUT_FILENO);
    let_front_speak();
}

}  // namespace tilewise::worker
