// Reads /proc and the control groups, of both versions, from the process's own up to the root.
#include "tilewise/base/host.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <fstream>
#include <limits>
#include <optional>
#include <sstream>
#include <unistd.h>

namespace tilewise {
namespace {

constexpr std::int64_t unlimited = std::int64_t{1} << 60;  // version 1 writes a huge number for "no limit"

/// The number behind `field` in a file of lines such as "MemAvailable:  12 kB".
std::optional<std::int64_t> number_in(const std::string& path, const std::string& field) {
    std::ifstream in(path);
    for (std::string line; std::getline(in, line);) {
        std::istringstream words(line);
        std::string key;
        std::int64_t value = 0;
        if (words >> key && key == field && words >> value) {
            return value;
        }
    }
    return std::nullopt;
}

/// The number that a file holds; "max" is none.
std::optional<std::int64_t> number_of(const std::string& path) {
    std::ifstream in(path);
    std::int64_t value = 0;
    return in >> value ? std::optional(value) : std::nullopt;
}

/// What one group leaves: its limit minus its use, file cache not counted.
std::int64_t room_of(const std::string& folder, bool second) {
    const auto limit = number_of(folder + (second ? "/memory.max" : "/memory.limit_in_bytes"));
    if (!limit || *limit >= unlimited) {
        return std::numeric_limits<std::int64_t>::max();
    }
    const std::int64_t usage = number_of(folder + (second ? "/memory.current" : "/memory.usage_in_bytes")).value_or(0);
    const std::int64_t cache =
        number_in(folder + "/memory.stat", second ? "inactive_file" : "total_inactive_file").value_or(0);
    return std::max<std::int64_t>(0, *limit - usage + cache);
}

}  // namespace

std::string file_view() {
    std::string boot;
    std::ifstream("/proc/sys/kernel/random/boot_id") >> boot;
    std::array<char, 64> mounts{};
    const ssize_t length = readlink("/proc/self/ns/mnt", mounts.data(), mounts.size());
    return host_name() + ' ' + boot + ' ' +
           std::string(mounts.data(), static_cast<std::size_t>(std::max<ssize_t>(0, length)));
}

std::int64_t available_memory(const std::string& proc, const std::string& cgroup) {
    const auto free = number_in(proc + "/meminfo", "MemAvailable:");
    std::int64_t room = free ? *free * 1024 : std::numeric_limits<std::int64_t>::max();
    std::ifstream groups(proc + "/self/cgroup");
    for (std::string line; std::getline(groups, line);) {
        const std::size_t first = line.find(':'), second = line.find(':', first + 1);
        if (first == std::string::npos || second == std::string::npos) {
            continue;
        }
        const std::string controllers = ',' + line.substr(first + 1, second - first - 1) + ',';
        const bool unified = controllers == ",,";
        if (!unified && controllers.find(",memory,") == std::string::npos) {
            continue;
        }
        const std::string root = unified ? cgroup : cgroup + "/memory";
        std::string path = line.substr(second + 1);
        while (!path.empty() && path != "/") {
            room = std::min(room, room_of(root + path, unified));
            const std::size_t last = path.rfind('/');
            path.erase(last == std::string::npos ? 0 : last);
        }
        room = std::min(room, room_of(root, unified));
    }
    return room == std::numeric_limits<std::int64_t>::max() ? -1 : room;
}

std::int64_t own_memory() {
    const std::string status = "/proc/self/status";
    return (number_in(status, "RssAnon:").value_or(0) + number_in(status, "RssShmem:").value_or(0)) * 1024;
}

std::string bytes_text(std::int64_t count) {
    constexpr std::array<const char*, 6> units{"bytes", "KiB", "MiB", "GiB", "TiB", "PiB"};
    auto value = static_cast<double>(count);
    std::size_t unit = 0;
    for (; value >= 1024 && unit + 1 < units.size(); ++unit) {
        value /= 1024;
    }
    std::array<char, 48> text{};
    const int digits = unit == 0 ? 0 : value < 10 ? 2 : value < 100 ? 1 : 0;
    std::snprintf(text.data(), text.size(), "%.*f %s", digits, value, units[unit]);
    return text.data();
}

}  // namespace tilewise
