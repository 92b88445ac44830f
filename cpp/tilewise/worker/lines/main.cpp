// tilewise-lines BEGIN TABS COMMENTS: counts the lines of numbers in the text on standard input, a regular file, from
// byte BEGIN on, on all cores; prints their number, and whether a carriage return lacks its line feed. With TABS = 1 a
// tab is no blank, with COMMENTS = 0 no line is a comment.
//
//     bytes    BEGIN [ piece 0    | piece 1     | piece 2 … ]      a line is of the piece in which it begins
#include <atomic>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <sys/stat.h>
#include <thread>
#include <unistd.h>
#include <vector>

#include "tilewise/kernel/text/line_counter.hpp"

namespace {

constexpr std::int64_t piece_bytes = std::int64_t{4} << 20, buffer_bytes = std::int64_t{256} << 10;
constexpr unsigned most_threads = 16;  // more wait for memory

struct Found {
    std::atomic<std::int64_t> lines = 0, next = 0;
    std::atomic<bool> lone_return = false, failed = false;
};

/// Counts the lines that begin in [begin, end); false where that cannot be read.
bool count_piece(std::int64_t first, std::int64_t begin, std::int64_t end, bool tabs, bool comments,
                 std::vector<char>& buffer, Found& found) {
    char before = '\n';
    if (begin > first && pread(STDIN_FILENO, &before, 1, begin - 1) != 1) {
        return false;
    }
    tilewise::kernel::LineCounter counter(before, tabs, comments);
    bool at_end = false;
    while (!at_end && (begin < end || counter.is_undecided())) {
        const auto wanted = begin < end ? std::min(end - begin, buffer_bytes) : 1;
        const ssize_t got = pread(STDIN_FILENO, buffer.data(), static_cast<std::size_t>(wanted), begin);
        if (got < 0) {
            return false;
        }
        at_end = got == 0;
        counter.add(buffer.data(), got);
        begin += got;
    }
    found.lines += counter.count();
    if (counter.has_lone_return(at_end)) {
        found.lone_return = true;
    }
    return true;
}

}  // namespace

int main(int argc, char** argv) {
    struct stat status{};
    if (argc != 4 || fstat(STDIN_FILENO, &status) != 0) {
        std::fputs("usage: tilewise-lines BEGIN TABS COMMENTS < FILE; this program is started by tilewise\n", stderr);
        return 2;
    }
    const std::int64_t first = std::atoll(argv[1]);
    const bool tabs = std::atoi(argv[2]) != 0, comments = std::atoi(argv[3]) != 0;
    const std::int64_t pieces = (status.st_size - first + piece_bytes - 1) / piece_bytes;
    Found found;
    const auto work = [&] {
        std::vector<char> buffer(static_cast<std::size_t>(buffer_bytes));
        for (std::int64_t piece = found.next++; piece < pieces && !found.failed; piece = found.next++) {
            const std::int64_t begin = first + piece * piece_bytes;
            // Past the last piece's end too, as far as the file goes by now.
            const std::int64_t end = piece + 1 < pieces ? begin + piece_bytes : INT64_MAX;
            if (!count_piece(first, begin, end, tabs, comments, buffer, found)) {
                found.failed = true;
            }
        }
    };
    std::vector<std::thread> helpers;
    const auto threads =
        std::min<std::int64_t>(std::clamp(std::thread::hardware_concurrency(), 1U, most_threads), pieces);
    for (std::int64_t i = 1; i < threads; ++i) {
        helpers.emplace_back(work);
    }
    work();
    for (std::thread& helper : helpers) {
        helper.join();
    }
    if (found.failed) {
        return 1;
    }
    std::printf("%" PRId64 " %d\n", found.lines.load(), found.lone_return ? 1 : 0);
    return 0;
}
