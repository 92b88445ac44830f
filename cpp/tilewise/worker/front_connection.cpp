// Two ways to the front, and a thread that beats over either, and waits for the end of the one from other hosts.
#include "tilewise/worker/front_connection.hpp"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sstream>
#include <string>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <system_error>
#include <thread>
#include <time.h>
#include <unistd.h>
#include <vector>

#include "tilewise/base/host.hpp"
#include "tilewise/worker/heartbeat.hpp"

namespace tilewise::worker {
namespace {

constexpr int reaching = 5000;  ///< milliseconds to reach the front
constexpr int most_asked = (line_patience - line_asked_after) / line_asked_every;
constexpr int given_up = line_patience * 1000;  ///< milliseconds
constexpr int tick = 10;                        ///< milliseconds from one look to the next
constexpr int parting = 1000;                   ///< milliseconds for the launcher to answer a rank that leaves

std::atomic<int> here = -1, elsewhere = -1;
std::atomic<bool> begun = false, unreached = false, lost = false, left_it = false;
static_assert(std::atomic<int>::is_always_lock_free && std::atomic<bool>::is_always_lock_free);

template <std::size_t size>
void copy_text(std::array<char, size>& to, const char* name) {
    if (const char* text = std::getenv(name)) {
        std::strncpy(to.data(), text, size - 1);
    }
}

int connect_here(const std::string& run) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    const std::string name = "tilewise-" + run;  // after a zero byte: in no folder
    const int made = run.empty() ? -1 : socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (made < 0 || name.size() + 1 > sizeof address.sun_path) {
        return made < 0 ? -1 : (close(made), -1);
    }
    std::memcpy(address.sun_path + 1, name.data(), name.size());
    const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
    if (connect(made, reinterpret_cast<const sockaddr*>(&address), length) != 0) {
        close(made);
        return -1;
    }
    return made;
}

/// Begins to connect to whatever `address` means; a name is looked up unless `flags` forbid that.
void begin_to_connect(const std::string& address, const std::string& port, int flags, std::vector<pollfd>& begun_ones) {
    addrinfo hints{}, *found = nullptr;
    hints.ai_socktype = SOCK_STREAM;
    hints.ai_flags = flags | AI_NUMERICSERV;
    if (getaddrinfo(address.c_str(), port.c_str(), &hints, &found) != 0) {
        return;
    }
    for (const addrinfo* each = found; each != nullptr; each = each->ai_next) {
        const int made = socket(each->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
        if (made < 0) {
            continue;
        }
        if (connect(made, each->ai_addr, each->ai_addrlen) == 0 || errno == EINPROGRESS) {
            begun_ones.push_back({.fd = made, .events = POLLOUT, .revents = 0});
        } else {
            close(made);
        }
    }
    freeaddrinfo(found);
}

/// Whether who is at the other end of `made` answers as the front does.
bool is_front(int made, const std::string& greeting) {
    int error = 0;
    socklen_t size = sizeof error;
    if (getsockopt(made, SOL_SOCKET, SO_ERROR, &error, &size) != 0 || error != 0 ||
        send(made, greeting.data(), greeting.size(), MSG_NOSIGNAL) != static_cast<ssize_t>(greeting.size())) {
        return false;
    }
    pollfd answer{.fd = made, .events = POLLIN, .revents = 0};
    char byte = 0;
    return poll(&answer, 1, reaching) == 1 && recv(made, &byte, 1, 0) == 1 && byte == '.';
}

/// A connection to the front by any of its addresses; −1 where there is none. Only one of them is greeted at a time:
/// the front takes the end of any that was for the end of this rank.
int connect_elsewhere(const std::string& told) {
    std::istringstream words(told);
    std::string token, port;
    words >> token >> port;
    std::vector<std::string> addresses;
    for (std::string word; words >> word;) {
        addresses.push_back(word);
    }
    const std::string greeting = token + ' ' + host_name() + ' ' + std::to_string(getpid()) + '\n';
    for (const int flags : {AI_NUMERICHOST, 0}) {  // names only where no number leads there: looking up may take long
        std::vector<pollfd> tried;
        for (const std::string& address : addresses) {
            begin_to_connect(address, port, flags, tried);
        }
        int found = -1;
        while (found < 0 && !tried.empty() && poll(tried.data(), tried.size(), reaching) > 0) {
            for (pollfd& each : tried) {
                if (each.revents != 0 && found < 0 && is_front(each.fd, greeting)) {
                    found = each.fd;
                } else if (each.revents != 0) {
                    close(each.fd);
                    each.fd = -1;
                }
            }
            std::erase_if(tried, [&](const pollfd& each) { return each.fd < 0 || each.fd == found; });
        }
        for (const pollfd& each : tried) {
            close(each.fd);
        }
        if (found >= 0) {
            return found;
        }
    }
    return -1;
}

/// Has the kernel ask whether the front's host is still there.
void keep_asking(int made) {
    const int yes = 1;
    setsockopt(made, SOL_SOCKET, SO_KEEPALIVE, &yes, sizeof yes);
    setsockopt(made, IPPROTO_TCP, TCP_KEEPIDLE, &line_asked_after, sizeof line_asked_after);
    setsockopt(made, IPPROTO_TCP, TCP_KEEPINTVL, &line_asked_every, sizeof line_asked_every);
    setsockopt(made, IPPROTO_TCP, TCP_KEEPCNT, &most_asked, sizeof most_asked);
    setsockopt(made, IPPROTO_TCP, TCP_USER_TIMEOUT, &given_up, sizeof given_up);
}

/// `made` by the highest number that a file here may have. When a process dies, Linux closes its files (since 4.3) from
/// the last to the first: the line goes before the launcher's connection, whose end makes the launcher kill the other
/// ranks.
int on_top(int made) {
    rlimit limit{};
    constexpr rlim_t most = 1024;  // a table of files is as long as its highest number
    if (made < 0 || getrlimit(RLIMIT_NOFILE, &limit) != 0) {
        return made;
    }
    const int again = fcntl(made, F_DUPFD_CLOEXEC, static_cast<int>(std::min(limit.rlim_cur, most)) - 1);
    if (again < 0) {
        return made;
    }
    close(made);
    return again;
}

/// Milliseconds until this host's clock has the next whole second.
int until_next_beat() {
    timespec now{};
    clock_gettime(CLOCK_MONOTONIC, &now);
    return beat_every - static_cast<int>(now.tv_nsec / 1'000'000) % beat_every;
}

/// Sends it whole, or not at all: what a front that does not listen has no room for is of no use to it later.
void send_beat(int made, std::string_view line) {
    pollfd room{.fd = made, .events = POLLOUT, .revents = 0};
    if (!left_it && poll(&room, 1, 0) == 1 && (room.revents & POLLOUT) != 0) {
        [[maybe_unused]] const ssize_t put = send(made, line.data(), line.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    }
}

/// Leaves a job that has failed, by the front's word: without this one the launcher takes the end of a rank for an
/// accident, and kills the front before that has given the job its exit code.
[[noreturn]] void leave_job() {
    if (const char* told = std::getenv("PMI_FD"); told != nullptr && *told != '\0') {
        pollfd launcher{.fd = std::atoi(told), .events = POLLIN, .revents = 0};
        constexpr char words[] = "cmd=finalize\n";
        if (send(launcher.fd, words, sizeof words - 1, MSG_NOSIGNAL) > 0) {
            poll(&launcher, 1, parting);
        }
    }
    _exit(0);
}

/// Beats until the line ends, and heeds what the front says.
void beat_on(int made, bool far) {
    Pulse pulse;
    for (;;) {
        send_beat(made, pulse.beat());
        pollfd look{.fd = made, .events = POLLIN, .revents = 0};
        if (poll(&look, 1, until_next_beat()) <= 0) {
            continue;
        }
        char byte = 0;
        const ssize_t got = recv(made, &byte, 1, MSG_DONTWAIT);
        if (got == 1) {
            lost = lost || byte == 'L';
            if (byte == 'E' && !left_it) {
                leave_job();
            }
        } else if (got == 0 || (errno != EINTR && errno != EAGAIN)) {
            if (left_it || !far) {
                return;
            }
            _exit(1);  // nobody wants our results any more
        }
    }
}

void follow(const std::string& told) {
    if (here >= 0) {
        beat_on(here, false);
        return;
    }
    const int made = on_top(connect_elsewhere(told));
    if (made < 0) {
        unreached = true;
        return;
    }
    keep_asking(made);
    fcntl(made, F_SETFL, fcntl(made, F_GETFL) & ~O_NONBLOCK);
    elsewhere = made;
    beat_on(made, true);
}

}  // namespace

Front Front::by_environment() {
    Front found;
    copy_text(found.run, "TILEWISE_RUN");
    copy_text(found.elsewhere, "TILEWISE_FRONT");
    return found;
}

void hold_line(const Front& front) {
    if (begun) {
        return;
    }
    here = on_top(connect_here(front.run.data()));
    begun = here >= 0 || front.elsewhere[0] != '\0';
    if (!begun) {
        return;
    }
    look_at_this_thread();
    sigset_t all, kept;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &kept);  // signals are the main thread's
    try {
        std::thread(follow, std::string(here < 0 ? front.elsewhere.data() : "")).detach();
    } catch (const std::system_error&) {  // a limit of threads: this rank does without
        unreached = here < 0;
    }
    pthread_sigmask(SIG_SETMASK, &kept, nullptr);
}

int await_line_elsewhere() {
    while (begun && here < 0 && elsewhere < 0 && !unreached) {
        poll(nullptr, 0, tick);
    }
    return elsewhere;
}

bool loss_is_known(int milliseconds) {
    for (int waited = 0; here >= 0 || elsewhere >= 0; waited += tick) {
        char byte = 0;
        if (lost || (here >= 0 && recv(here, &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 1 && byte == 'L')) {
            return true;
        }
        if (waited >= milliseconds) {
            return false;
        }
        poll(nullptr, 0, tick);
    }
    return false;
}

void leave_line() {
    left_it = true;
    constexpr char bye[] = "bye\n";
    for (const int made : {here.load(), elsewhere.load()}) {
        if (made >= 0) {
            [[maybe_unused]] const ssize_t put = send(made, bye, sizeof bye - 1, MSG_NOSIGNAL | MSG_DONTWAIT);
        }
    }
}

}  // namespace tilewise::worker
