// A process's own are read from /proc/self/maps, a line for each mapping; its path is the last word.
#include "tilewise/worker/shm_cleanup.hpp"

#include <array>
#include <csignal>
#include <ctime>
#include <dirent.h>
#include <fcntl.h>
#include <fstream>
#include <string>
#include <string_view>
#include <sys/stat.h>
#include <unistd.h>

namespace tilewise::worker {
namespace {

/// What MPICH, the UCX below it and Open MPI call them, and the age in seconds from which nobody is just making one.
struct Kind {
    std::string_view begins;
    std::time_t age;
};

constexpr std::array<Kind, 4> kinds{
    {{"mpich_sh", 0}, {"ucx_shm_posix_", 0}, {"vader_segment.", 60}, {"sm_segment.", 60}}};

void remove_if_dead(int folder, const char* name, std::time_t age) {
    const int file = openat(folder, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (file < 0) {
        return;
    }
    struct stat found{};
    // A lease for reading is granted only on a file that nobody may write to; who opens it meanwhile has us told, by a
    // signal that is ignored.
    if (fstat(file, &found) == 0 && S_ISREG(found.st_mode) && found.st_uid == geteuid() &&
        std::time(nullptr) - found.st_ctime >= age && fcntl(file, F_SETSIG, SIGURG) == 0 &&
        fcntl(file, F_SETLEASE, F_RDLCK) == 0) {
        unlinkat(folder, name, 0);
    }
    close(file);
}

}  // namespace

void take_names_from_segments() {
    std::ifstream maps("/proc/self/maps");
    for (std::string line; std::getline(maps, line);) {
        const std::size_t at = line.find(" /dev/shm/mpich_shm_");
        if (at != std::string::npos && !line.ends_with(" (deleted)")) {
            unlink(line.c_str() + at + 1);  // another rank of the node, or another mapping, may have been first
        }
    }
}

void sweep_segments() {
    DIR* entries = opendir("/dev/shm");
    if (entries == nullptr) {
        return;
    }
    while (const dirent* entry = readdir(entries)) {
        for (const Kind& kind : kinds) {
            if (std::string_view(entry->d_name).starts_with(kind.begins)) {
                remove_if_dead(dirfd(entries), entry->d_name, kind.age);
            }
        }
    }
    closedir(entries);
}

}  // namespace tilewise::worker
