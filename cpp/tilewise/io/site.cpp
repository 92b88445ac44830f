// Looks at each file as `files/unchanged.py` does, and says in one sentence how the two hosts differ.
#include "tilewise/io/site.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <ctime>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <thread>
#include <unistd.h>

#include "tilewise/base/error.hpp"
#include "tilewise/base/host.hpp"
#include "tilewise/base/memory.hpp"
#include "tilewise/io/file.hpp"

namespace tilewise::io {
namespace {

constexpr std::int64_t second = 1'000'000'000;

Descriptor opened(const std::string& path, int flags) {
    return Descriptor(uninterrupted([&] { return open(path.c_str(), flags | O_CLOEXEC | O_NONBLOCK); }));
}

std::string folder_of(const std::string& path) { return path.substr(0, std::max<std::size_t>(path.rfind('/'), 1)); }

Error refusal(const std::string& what, const std::string& advice) { return UsageError(what, -1, 0, advice); }

/// Why what was made is not here: the system's number, or ENOENT where something else lies in its place. 0: it is here.
int missing(const Made& made) {
    const Descriptor file = opened(made.path, made.bytes < 0 ? O_RDONLY | O_DIRECTORY : O_RDWR);
    struct stat facts{};
    if (!file || fstat(file.number(), &facts) != 0) {
        return errno;
    }
    if (made.bytes < 0) {
        return access(made.path.c_str(), W_OK) == 0 ? 0 : errno;
    }
    return facts.st_size == made.bytes ? 0 : ENOENT;
}

/// As zlib's table does it, a byte at a time: an input has a few pages.
constexpr std::array<std::uint32_t, 256> crc_table = [] {
    std::array<std::uint32_t, 256> table{};
    for (std::uint32_t byte = 0; byte < 256; ++byte) {
        std::uint32_t value = byte;
        for (int bit = 0; bit < 8; ++bit) {
            value = (value & 1) != 0 ? 0xEDB88320U ^ (value >> 1) : value >> 1;
        }
        table[byte] = value;
    }
    return table;
}();

/// Page number i: the first of the file, and then evenly from the first of the numbers to the last.
std::int64_t place_of(const Seen& seen, int i) {
    if (i == 0 || seen.pages < 3) {
        return 0;
    }
    const std::int64_t span = std::max<std::int64_t>(0, seen.end - page - seen.begin), steps = seen.pages - 2;
    return seen.begin + span / steps * (i - 1) + span % steps * (i - 1) / steps;
}

std::uint32_t digest_of(const Seen& seen, int descriptor) {
    posix_fadvise(descriptor, 0, 0, POSIX_FADV_RANDOM);
    std::uint32_t sum = 0;
    std::array<unsigned char, page> data{};
    for (int i = 0; i < seen.pages; ++i) {
        const ssize_t got =
            uninterrupted([&] { return pread(descriptor, data.data(), data.size(), place_of(seen, i)); });
        if (got < 0) {
            throw system_error(seen.name + ": reading failed", errno);
        }
        sum = crc32(sum, data.data(), static_cast<std::size_t>(got));
    }
    return sum;
}

/// Whether files of one number, size and content are one file here: on a disk of the host's own they are copies.
bool is_shared(int descriptor) {
    struct statfs facts{};
    if (fstatfs(descriptor, &facts) != 0) {
        return false;
    }
    constexpr std::array<std::uint32_t, 9> own_disks{0xEF53,     0x58465342, 0x9123683E, 0x01021994, 0x858458F6,
                                                     0x794C7630, 0x2FC12FC1, 0xF2F52010, 0x4D44};
    return std::find(own_disks.begin(), own_disks.end(), static_cast<std::uint32_t>(facts.f_type)) == own_disks.end();
}

/// Equal to what both file systems keep: some keep whole seconds.
bool same_time(std::int64_t one, std::int64_t other) {
    return one == other || ((one % second == 0 || other % second == 0) && one / second == other / second);
}

std::string time_text(std::int64_t modified) {
    const std::time_t seconds = modified / second;
    std::tm parts{};
    gmtime_r(&seconds, &parts);
    std::array<char, 64> text{};
    text[std::strftime(text.data(), text.size() - 1, "%F %T", &parts)] = '\0';
    std::array<char, 16> fraction{};
    std::snprintf(fraction.data(), fraction.size(), ".%03d", static_cast<int>(modified % second / 1'000'000));
    return std::string(text.data()) + fraction.data();
}

}  // namespace

std::uint32_t crc32(std::uint32_t sum, const unsigned char* data, std::size_t size) {
    sum = ~sum;
    for (std::size_t i = 0; i < size; ++i) {
        sum = crc_table[(sum ^ data[i]) & 0xFF] ^ (sum >> 8);
    }
    return ~sum;
}

void require_made(const Made& made, const std::string& there, const std::string& here, double patience) {
    using namespace std::chrono;
    const auto deadline = steady_clock::now() + duration<double>(patience);
    int reason = missing(made);
    while (reason == ENOENT && steady_clock::now() < deadline) {
        std::this_thread::sleep_for(milliseconds(50));
        reason = missing(made);
    }
    if (reason == 0) {
        return;
    }
    const std::string folder = folder_of(made.path);
    if (reason == ENOENT || reason == ENOTDIR) {
        throw refusal(made.name + ": the folder " + folder + " is not the same on " + there + " and " + here,
                      "a folder that all hosts share");
    }
    throw refusal(
        made.name + " cannot be written on " + here + ", in the folder " + folder + ": " + system_reason(reason),
        "a folder that all hosts share and may write to");
}

void require_seen(const Seen& seen, const std::string& there, const std::string& here) {
    const Descriptor file = opened(seen.path, O_RDONLY);
    struct stat facts{};
    if (!file || fstat(file.number(), &facts) != 0) {
        const int reason = errno;
        throw refusal(seen.name + " cannot be read on " + here + ", as it can on " + there + ": " + seen.path + ": " +
                          system_reason(reason),
                      "a folder that all hosts share, or a copy on each host");
    }
    std::string differ;
    const std::int64_t modified = facts.st_mtim.tv_sec * second + facts.st_mtim.tv_nsec;
    if (facts.st_size != seen.bytes) {
        differ =
            std::to_string(seen.bytes) + " bytes on " + there + ", " + std::to_string(facts.st_size) + " on " + here;
    } else if (digest_of(seen, file.number()) != seen.digest) {
        differ = "of the same size, but with different contents";
    } else if (!same_time(modified, seen.modified) && !(facts.st_ino == seen.inode && is_shared(file.number()))) {
        // A few pages say nothing of a number that was changed elsewhere; the time does. Only where it is the same file
        // of a file server by all that can be seen, is the time taken for the server's business: some tell hosts of it
        // late.
        differ = "last written at " + time_text(seen.modified) + " on " + there + ", at " + time_text(modified) +
                 " on " + here + " (UTC)";
    }
    if (!differ.empty()) {
        throw refusal(seen.name + " is not the same file on " + there + " and " + here + ": " + differ,
                      "a folder that all hosts share, or the same copy on each host, with its time (cp -p, sbcast -p)");
    }
}

void require_memory(const Site& site, int ranks, std::int64_t available, std::int64_t held, const std::string& here) {
    if (site.memory <= 0 || available < 0) {
        return;
    }
    const double part = static_cast<double>(ranks) / std::max(1, site.node_ranks);
    const auto needed = static_cast<std::int64_t>(static_cast<double>(site.memory) * part);
    const auto allowed = static_cast<std::int64_t>(static_cast<double>(available + held) * site.percent / 100);
    if (needed > allowed) {
        const std::string share = site.percent < 100 ? std::to_string(site.percent) + " % of what is" : "what is";
        throw MemoryError("this needs " + bytes_text(needed) + " of memory on " + here + " for " +
                          std::to_string(ranks) + (ranks == 1 ? " rank" : " ranks") + ", but " + share +
                          " available there is " + bytes_text(allowed));
    }
}

void require_site(const Site& site, bool root, int ranks) {
    if (site.view == file_view()) {
        return;
    }
    std::string here = host_name();
    if (here == site.host) {
        here += " (where the ranks are, in another container)";
    }
    for (const Made& made : site.made) {
        if (root || !made.root) {
            require_made(made, site.host, here);
        }
    }
    for (const Seen& seen : site.seen) {
        if (root || !seen.root) {
            require_seen(seen, site.host, here);
        }
    }
    require_memory(site, ranks, available_memory(), own_memory() * ranks, here);
}

}  // namespace tilewise::io
