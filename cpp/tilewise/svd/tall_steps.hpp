// Which rows a rank has in memory at a time, when a matrix of many rows passes through: integers only.
#pragma once

#include <algorithm>
#include <cstdint>

#include "tilewise/grid/partition.hpp"

namespace tilewise::svd {

/// Step 0 of each rank is a head of n rows for each lane, or all its rows if these are fewer; further steps have
/// `rows` each, but for the last.
///
///     rank 0  [ head | 1 | 2 | 3 ]      a lane is a thread with rows of its own in each step:  [ lane 0 | lane 1 ]
///     rank 1  [ head | 1 | 2 |3]
class TallSteps {
public:
    /// Rows of a rank for each column, in each lane, from which it pays to have several.
    static constexpr std::int64_t lane_factor = 2;

    /// m×n over all ranks, m ≥ n ≥ 1; `rows`: at least 1, and n for each lane where there are several.
    TallSteps(std::int64_t m, std::int64_t n, int ranks, int threads, std::int64_t rows)
        : all_(m, ranks),
          lanes_(static_cast<int>(
              std::clamp<std::int64_t>(std::min(m / ranks / (lane_factor * n), rows / n), 1, threads))),
          head_(lanes_ * n),
          rows_(rows) {}

    int lanes() const { return lanes_; }
    /// The same on all ranks; the last ones may have nothing to do in a step.
    std::int64_t count() const { return 1 + (std::max<std::int64_t>(0, all_.largest() - head_) + rows_ - 1) / rows_; }
    grid::Range operator()(int rank, std::int64_t step) const {
        const grid::Range mine = all_[rank];
        const std::int64_t behind_head = std::min(mine.begin + head_, mine.end);
        if (step == 0) {
            return {mine.begin, behind_head};
        }
        const std::int64_t begin = std::min(behind_head + (step - 1) * rows_, mine.end);
        return {begin, std::min(begin + rows_, mine.end)};
    }
    /// Of the rows of a step, counted from its first one.
    grid::Range of_lane(std::int64_t rows, int lane) const { return grid::Partition(rows, lanes_)[lane]; }
    /// Most rows of a step on any rank.
    std::int64_t most() const { return std::min(all_.largest(), std::max(head_, rows_)); }

private:
    grid::Partition all_;
    int lanes_;
    std::int64_t head_, rows_;
};

}  // namespace tilewise::svd
