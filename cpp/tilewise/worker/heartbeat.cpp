// The signs of life that Linux keeps of a process and its threads, read from its clocks and /proc/self.
#include "tilewise/worker/heartbeat.hpp"

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <fcntl.h>
#include <pthread.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "tilewise/base/host.hpp"
#include "tilewise/worker/crash_report.hpp"

namespace tilewise::worker {
namespace {

constexpr std::int64_t least_bytes = 4096;     ///< looking reads some, too
constexpr std::int64_t least_computed = 1000;  ///< microseconds a beat, of 64 ranks on two cores too
constexpr std::int64_t least_helped = 10'000;  ///< the same; libraries have threads that wake now and then
constexpr int looked_up_after = 2;             ///< beats without a move, until the kernel is asked what is waited for

std::atomic<clockid_t> looked_at_clock = CLOCK_THREAD_CPUTIME_ID;
std::atomic<pid_t> looked_at = 0;

/// A system call by its name, and whether its first argument is a file.
struct Known {
    long number;
    const char* name;
    bool file;
};
constexpr Known known[] = {
    {SYS_read, "read", true},
    {SYS_pread64, "pread64", true},
    {SYS_readv, "readv", true},
    {SYS_preadv, "preadv", true},
    {SYS_write, "write", true},
    {SYS_pwrite64, "pwrite64", true},
    {SYS_writev, "writev", true},
    {SYS_pwritev, "pwritev", true},
    {SYS_fsync, "fsync", true},
    {SYS_fdatasync, "fdatasync", true},
    {SYS_sync_file_range, "sync_file_range", true},
    {SYS_ftruncate, "ftruncate", true},
    {SYS_fallocate, "fallocate", true},
    {SYS_flock, "flock", true},
    {SYS_fcntl, "fcntl", true},
    {SYS_fstat, "fstat", true},
    {SYS_close, "close", true},
    {SYS_copy_file_range, "copy_file_range", true},
    {SYS_openat, "openat", false},
    {SYS_statx, "statx", false},
    {SYS_mmap, "mmap", false},
    {SYS_munmap, "munmap", false},
    {SYS_msync, "msync", false},
    {SYS_futex, "futex", false},
    {SYS_ppoll, "poll", false},
    {SYS_epoll_pwait, "epoll_wait", false},
    {SYS_nanosleep, "nanosleep", false},
    {SYS_clock_nanosleep, "clock_nanosleep", false},
#ifdef SYS_poll
    {SYS_poll, "poll", false},
#endif
#ifdef SYS_epoll_wait
    {SYS_epoll_wait, "epoll_wait", false},
#endif
};

std::int64_t microseconds(clockid_t clock) {
    timespec time{};
    return clock_gettime(clock, &time) == 0 ? time.tv_sec * std::int64_t{1'000'000} + time.tv_nsec / 1000 : 0;
}

/// What `path` begins with, as text; empty where it cannot be read.
template <std::size_t size> bool read_text(const char* path, std::array<char, size>& text) {
    const int file = open(path, O_RDONLY | O_CLOEXEC);
    const ssize_t got = file >= 0 ? read(file, text.data(), size - 1) : -1;
    if (file >= 0) {
        close(file);
    }
    text[got > 0 ? static_cast<std::size_t>(got) : 0] = '\0';
    return got > 0;
}

/// Bytes that the process has read and written, by calls and from disks: "NAME: NUMBER" a line.
std::int64_t bytes_moved(int io) {
    std::array<char, 512> text{};
    const ssize_t got = io >= 0 ? pread(io, text.data(), text.size() - 1, 0) : 0;
    std::int64_t sum = 0;
    if (got > 0) {
        for (const char* name : {"rchar: ", "wchar: ", "read_bytes: ", "\nwrite_bytes: "}) {
            const char* at = std::strstr(text.data(), name);
            sum += at != nullptr ? std::strtoll(at + std::strlen(name), nullptr, 10) : 0;
        }
    }
    return sum;
}

/// The system call that the thread looked at waits in, and of which file: "pread64 A.npy"; empty where it runs.
std::array<char, 512> system_call() {
    std::array<char, 512> said{};
    std::array<char, 256> path{}, text{};
    std::snprintf(path.data(), path.size(), "/proc/self/task/%d/syscall", static_cast<int>(looked_at.load()));
    char* rest = nullptr;
    if (!read_text(path.data(), text) || text[0] < '0' || text[0] > '9') {
        return said;
    }
    const long number = std::strtol(text.data(), &rest, 10);
    const auto* found =
        std::find_if(std::begin(known), std::end(known), [&](const Known& each) { return each.number == number; });
    if (found == std::end(known)) {
        std::snprintf(said.data(), said.size(), "system call %ld", number);
        return said;
    }
    std::array<char, 400> file{};
    if (found->file) {
        std::snprintf(path.data(), path.size(), "/proc/self/fd/%ld", std::strtol(rest, nullptr, 16));
        [[maybe_unused]] const ssize_t got = readlink(path.data(), file.data(), file.size() - 1);
    }
    for (char& letter : file) {  // it stands in a JSON string
        letter = letter == '"' || letter == '\\' || (letter > 0 && letter < ' ') ? '?' : letter;
    }
    std::snprintf(said.data(), said.size(), file[0] != '\0' ? "%s %s" : "%s", found->name, file.data());
    return said;
}

}  // namespace

void look_at_this_thread() {
    clockid_t clock{};
    if (pthread_getcpuclockid(pthread_self(), &clock) == 0) {
        looked_at_clock = clock;
    }
    looked_at = static_cast<pid_t>(syscall(SYS_gettid));
}

Pulse::Pulse() : io_(open("/proc/self/io", O_RDONLY | O_CLOEXEC)) { host_name().copy(host_.data(), host_.size() - 1); }

Pulse::~Pulse() {
    if (io_ >= 0) {
        close(io_);
    }
}

Pulse::Signs Pulse::signs() const {
    Signs now{.call = InCall::name(), .turns = InCall::turns(), .bytes = bytes_moved(io_)};
    rusage used{};
    getrusage(RUSAGE_SELF, &used);
    now.faults = used.ru_majflt;
    now.computed = microseconds(looked_at_clock);
    now.helped = microseconds(CLOCK_PROCESS_CPUTIME_ID) - now.computed - microseconds(CLOCK_THREAD_CPUTIME_ID);
    return now;
}

bool Pulse::moved(const Signs& before, const Signs& now) {
    return now.turns != before.turns || now.bytes - before.bytes >= least_bytes || now.faults != before.faults ||
           (now.call == nullptr && now.computed - before.computed >= least_computed) ||
           now.helped - before.helped >= least_helped;
}

std::string_view Pulse::beat() {
    const Whereabouts at = whereabouts();
    const Signs now = signs();
    still_ = moved(last_, now) ? 0 : still_ + 1;
    last_ = now;
    const auto waits = still_ > looked_up_after ? system_call() : std::array<char, 512>{};
    const int size = std::snprintf(
        line_.data(), line_.size(),
        "\x1e{\"event\": \"beat\", \"rank\": %d, \"host\": \"%s\", \"pid\": %d, \"phase\": \"%.*s\", "
        "\"moved\": %s, \"call\": \"%s\", \"waits\": \"%s\"}\n",
        at.rank, host_.data(), static_cast<int>(getpid()), static_cast<int>(at.phase.size()), at.phase.data(),
        still_ == 0 ? "true" : "false", now.call != nullptr ? now.call : "", waits.data());
    return {line_.data(), static_cast<std::size_t>(std::clamp(size, 0, static_cast<int>(line_.size()) - 1))};
}

}  // namespace tilewise::worker
