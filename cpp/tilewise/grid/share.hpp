// What one rank owns of a matrix in general: some rows crossed with some columns, as 2-D blocks, panels and
// block-cyclic layouts cut it.
// Design: docs/design/formats.md
#pragma once

#include <algorithm>
#include <span>
#include <vector>

#include "tilewise/grid/grid.hpp"

namespace tilewise::grid {

/// Rows × columns, each a list of ascending ranges that are neither empty nor adjacent. In memory a share is dense: its
/// rows one after the other, each with the share's columns side by side.
///
///     matrix   [ 0 0 1 1 0 0 1 ]     block-cyclic, 2 × 2 ranks, blocks of 2: of rank 0
///              [ 0 0 1 1 0 0 1 ]     are rows 0, 1, 4 and columns 0, 1, 4, 5
///              [ 2 2 3 3 2 2 3 ]     in memory     [ 0 0 0 0 ]
///              [ 2 2 3 3 2 2 3 ]                   [ 0 0 0 0 ]
///              [ 0 0 1 1 0 0 1 ]                   [ 0 0 0 0 ]
struct Share {
    std::vector<Range> rows, columns;

    Share() = default;
    Share(const Block& block);  // NOLINT: a block is a share
    Share(std::vector<Range> r, std::vector<Range> c);

    std::int64_t height() const { return total(rows); }
    std::int64_t width() const { return total(columns); }
    std::int64_t size() const { return height() * width(); }
    Share transposed() const { return {columns, rows}; }
    /// The part of it in these rows and columns.
    Share within(const Block& block) const;
    /// The same, so many rows further down and columns further right.
    Share moved(std::int64_t down, std::int64_t right) const;

private:
    static std::int64_t total(const std::vector<Range>& ranges);
};

/// What falls to number `turn` of `turns` when [0, count) is dealt out to them in blocks, one after the other.
std::vector<Range> dealt_ranges(std::int64_t count, std::int64_t block, int turn, int turns);

/// The share of `place` when blocks of `block` × `block` are dealt out to the grid in turn, in both directions.
Share block_cyclic(Grid grid, Place place, std::int64_t rows, std::int64_t columns, std::int64_t block);

inline Range common(Range a, Range b) {
    const std::int64_t begin = std::max(a.begin, b.begin), end = std::min(a.end, b.end);
    return {begin, std::max(begin, end)};
}
inline Block common_block(const Block& a, const Block& b) {
    return {common(a.rows, b.rows), common(a.columns, b.columns)};
}

/// What two shares have in common: again some rows crossed with some columns.
class Overlap {
public:
    struct Position {
        std::int64_t row, column;
    };
    /// Neighbouring numbers of a row.
    struct Run {
        std::int64_t at, count;  ///< where among all that is in common, row by row
        Position in_matrix;      ///< of the first of them
        Position first, second;  ///< the same among the rows and columns of either share alone
    };

    Overlap(const Share& first, const Share& second);
    Overlap(const Share& first, const Block& second);

    std::int64_t size() const { return total(rows_) * width_; }

    /// Calls f(run) for all runs.
    template <class F> void for_runs(F f) const { for_runs({0, size()}, f); }
    /// The same for some of the numbers that are in common, counted row by row.
    template <class F> void for_runs(Range numbers, F f) const {
        if (numbers.size() <= 0) {
            return;
        }
        auto row = stretch_of(rows_, numbers.begin / width_);
        auto column = stretch_of(columns_, numbers.begin % width_);
        for (std::int64_t at = numbers.begin; at < numbers.end;) {
            const std::int64_t down = at / width_ - row->before, right = at % width_ - column->before;
            const std::int64_t count = std::min(column->count - right, numbers.end - at);
            f(Run{at,
                  count,
                  {row->begin + down, column->begin + right},
                  {row->in_first + down, column->in_first + right},
                  {row->in_second + down, column->in_second + right}});
            at += count;
            if (++column == columns_.end()) {
                column = columns_.begin();
                row += down + 1 == row->count ? 1 : 0;
            }
        }
    }

private:
    /// Neighbouring rows or columns that are in common, and how many of those and of each share's own come before them.
    struct Stretch {
        std::int64_t begin, count, before, in_first, in_second;
    };
    using Stretches = std::vector<Stretch>;

    static Stretches in_common(std::span<const Range> first, std::span<const Range> second);
    static std::int64_t total(const Stretches& all) { return all.empty() ? 0 : all.back().before + all.back().count; }
    /// The stretch that has number `index` of all.
    static Stretches::const_iterator stretch_of(const Stretches& all, std::int64_t index);

    Stretches rows_, columns_;
    std::int64_t width_;
};

/// First and one past the last element of a share, counted row by row through a matrix with that many columns; empty
/// for an empty share.
Range span_of(const Share& share, std::int64_t matrix_columns);

/// Calls run(first, count, local) for everything that a share has in elements [within.begin, within.end) of the matrix,
/// counted row by row: the longest runs of consecutive elements, in ascending order. `local` is where a run begins in
/// the share's own memory.
template <class Run>
void for_runs(const Share& share, std::int64_t matrix_columns, Range within, Run run) {
    if (share.size() == 0 || within.size() <= 0) {
        return;
    }
    const std::int64_t n = matrix_columns, width = share.width();
    const std::int64_t first_row = within.begin / n, end_row = (within.end + n - 1) / n;
    std::int64_t rows_before = 0;
    for (const Range& rows : share.rows) {
        const Range wanted = common(rows, {first_row, end_row});
        const std::int64_t local_row = rows_before + wanted.begin - rows.begin;
        rows_before += rows.size();
        if (wanted.size() > 0 && width == n) {
            const Range piece = common({wanted.begin * n, wanted.end * n}, within);
            run(piece.begin, piece.size(), local_row * n + piece.begin - wanted.begin * n);
            continue;
        }
        for (std::int64_t row = wanted.begin; row < wanted.end; ++row) {
            const std::int64_t start = row * n;
            std::int64_t local = (local_row + row - wanted.begin) * width;
            for (const Range& columns : share.columns) {
                const Range piece = common({start + columns.begin, start + columns.end}, within);
                if (piece.size() > 0) {
                    run(piece.begin, piece.size(), local + piece.begin - start - columns.begin);
                }
                local += columns.size();
            }
        }
    }
}

/// How many elements of a share lie in `within`. O(ranges), whatever the number of rows.
std::int64_t count_in(const Share& share, std::int64_t matrix_columns, Range within);

}  // namespace tilewise::grid
