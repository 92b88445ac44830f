// Tries the tiles in turns, drops the slow half after each round, and lets the one that is left run against the
// kernel's own.
#include "tilewise/measure/transpose_tile.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "tilewise/base/buffer.hpp"
#include "tilewise/measure/clock.hpp"
#include "tilewise/measure/samples.hpp"

namespace tilewise::measure {
namespace {

struct Candidate {
    kernel::TransposeTile tile;
    double seconds = 1e300;
};

/// Sizes in bytes: what is read from each row, and what is written to each, before the next one's turn.
std::vector<Candidate> candidates(std::int64_t item) {
    std::vector<Candidate> found;
    const auto add = [&](std::int64_t rows, std::int64_t columns, bool streaming) {
        const auto items = [&](std::int64_t bytes) { return std::max<std::int64_t>(bytes / item, 1); };
        const kernel::TransposeTile tile{items(rows), items(columns), streaming};
        const bool known = std::any_of(found.begin(), found.end(), [&](const Candidate& other) {
            return other.tile.rows == tile.rows && other.tile.columns == tile.columns &&
                   other.tile.streaming == streaming;
        });
        if (!known) {
            found.push_back({tile});
        }
    };
    for (const std::int64_t rows : {64, 128, 256, 512}) {
        for (const std::int64_t columns : {512, 1024, 2048, 4096, 8192}) {
            add(rows, columns, true);
        }
    }
    add(512, 512, false);
    add(256, 1024, false);
    return found;
}

}  // namespace

MeasuredTile transpose_tile(std::size_t item, int threads) {
    const auto size = static_cast<std::int64_t>(item);
    // About square, with rows that are whole lines but no power of two apart.
    const double side =
        std::sqrt(static_cast<double>(std::int64_t{64} << 20) / static_cast<double>(std::max<std::int64_t>(size, 1)));
    const std::int64_t n = static_cast<std::int64_t>(side) / 128 * 128 - 64;
    const Buffer from(static_cast<std::size_t>(n * n * size)), to(from.bytes());
    std::memset(from.data(), 1, from.bytes());
    std::memset(to.data(), 1, to.bytes());
    const auto seconds_with = [&](const kernel::TransposeTile& tile) {
        const double begin = now();
        kernel::transpose(from.data(), n * size, n, n, item, to.data(), n * size, threads, tile);
        return now() - begin;
    };
    std::vector<Candidate> left = candidates(size);
    while (left.size() > 1) {
        for (int round = 0; round < 2; ++round) {
            for (Candidate& candidate : left) {
                candidate.seconds = std::min(candidate.seconds, seconds_with(candidate.tile));
            }
        }
        std::sort(left.begin(), left.end(),
                  [](const Candidate& a, const Candidate& b) { return a.seconds < b.seconds; });
        left.resize(left.size() / 2);
    }
    constexpr int rounds = 9;
    constexpr double clearly = 0.97;  // what differs by less, differs the other way round the next time
    const kernel::TransposeTile own = kernel::default_transpose_tile(item);
    std::vector<double> best_seconds, own_seconds;
    for (int round = 0; round < rounds; ++round) {
        best_seconds.push_back(seconds_with(left.front().tile));
        own_seconds.push_back(seconds_with(own));
    }
    const double best = median(best_seconds), usual = median(own_seconds);
    const double bytes = 2.0 * static_cast<double>(n * n * size);
    return best < clearly * usual ? MeasuredTile{left.front().tile, bytes / best} : MeasuredTile{own, bytes / usual};
}

}  // namespace tilewise::measure
