// Makes shares canonical, so that neighbours become one range and whole rows are recognised.
#include "tilewise/grid/share.hpp"

#include <utility>

namespace tilewise::grid {
namespace {

std::vector<Range> canonical(const std::vector<Range>& ranges) {
    std::vector<Range> merged;
    for (const Range& range : ranges) {
        if (range.size() <= 0) {
            continue;
        }
        if (!merged.empty() && merged.back().end == range.begin) {
            merged.back().end = range.end;
        } else {
            merged.push_back(range);
        }
    }
    return merged;
}

std::vector<Range> clipped(const std::vector<Range>& ranges, Range to) {
    std::vector<Range> all;
    for (const Range& range : ranges) {
        all.push_back(common(range, to));
    }
    return all;
}

/// Elements of one row range that lie in `within`, where only the first and the last row may be cut.
std::int64_t in_rows(const std::vector<Range>& columns, std::int64_t width, std::int64_t n, Range rows, Range within) {
    const auto in_row = [&](std::int64_t row) {
        std::int64_t sum = 0;
        for (const Range& range : columns) {
            sum += common({row * n + range.begin, row * n + range.end}, within).size();
        }
        return sum;
    };
    const Range wanted = common(rows, {within.begin / n, (within.end + n - 1) / n});
    if (wanted.size() <= 2) {
        return (wanted.size() > 0 ? in_row(wanted.begin) : 0) + (wanted.size() > 1 ? in_row(wanted.end - 1) : 0);
    }
    return in_row(wanted.begin) + in_row(wanted.end - 1) + (wanted.size() - 2) * width;
}

}  // namespace

Share::Share(const Block& block) : Share(std::vector<Range>{block.rows}, std::vector<Range>{block.columns}) {}

Share::Share(std::vector<Range> r, std::vector<Range> c) : rows(canonical(r)), columns(canonical(c)) {}

std::int64_t Share::total(const std::vector<Range>& ranges) {
    std::int64_t sum = 0;
    for (const Range& range : ranges) {
        sum += range.size();
    }
    return sum;
}

Share Share::within(const Block& block) const { return {clipped(rows, block.rows), clipped(columns, block.columns)}; }

Share Share::moved(std::int64_t down, std::int64_t right) const {
    Share share = *this;
    for (auto [ranges, distance] : {std::pair(&share.rows, down), std::pair(&share.columns, right)}) {
        for (Range& range : *ranges) {
            range = {range.begin + distance, range.end + distance};
        }
    }
    return share;
}

Overlap::Overlap(const Share& first, const Share& second)
    : rows_(in_common(first.rows, second.rows)),
      columns_(in_common(first.columns, second.columns)),
      width_(total(columns_)) {}

Overlap::Overlap(const Share& first, const Block& second)
    : rows_(in_common(first.rows, {&second.rows, 1})),
      columns_(in_common(first.columns, {&second.columns, 1})),
      width_(total(columns_)) {}

Overlap::Stretches Overlap::in_common(std::span<const Range> first, std::span<const Range> second) {
    Stretches found;
    std::int64_t before_a = 0, before_b = 0;
    for (std::size_t a = 0, b = 0; a < first.size() && b < second.size();) {
        const Range both = common(first[a], second[b]);
        if (both.size() > 0) {
            found.push_back({both.begin, both.size(), total(found), before_a + both.begin - first[a].begin,
                             before_b + both.begin - second[b].begin});
        }
        if (first[a].end < second[b].end) {
            before_a += first[a++].size();
        } else {
            before_b += second[b++].size();
        }
    }
    return found;
}

Overlap::Stretches::const_iterator Overlap::stretch_of(const Stretches& all, std::int64_t index) {
    return std::upper_bound(all.begin(), all.end(), index,
                            [](std::int64_t value, const Stretch& stretch) { return value < stretch.before; }) -
           1;
}

std::vector<Range> dealt_ranges(std::int64_t count, std::int64_t block, int turn, int turns) {
    std::vector<Range> ranges;
    for (std::int64_t begin = turn * block; begin < count; begin += turns * block) {
        ranges.push_back({begin, std::min(begin + block, count)});
    }
    return canonical(ranges);
}

Share block_cyclic(Grid grid, Place place, std::int64_t rows, std::int64_t columns, std::int64_t block) {
    return {dealt_ranges(rows, block, place.row, grid.rows), dealt_ranges(columns, block, place.column, grid.columns)};
}

Range span_of(const Share& share, std::int64_t matrix_columns) {
    if (share.size() == 0) {
        return {0, 0};
    }
    return {share.rows.front().begin * matrix_columns + share.columns.front().begin,
            (share.rows.back().end - 1) * matrix_columns + share.columns.back().end};
}

std::int64_t count_in(const Share& share, std::int64_t matrix_columns, Range within) {
    if (share.size() == 0 || within.size() <= 0) {
        return 0;
    }
    std::int64_t sum = 0;
    for (const Range& rows : share.rows) {
        sum += in_rows(share.columns, share.width(), matrix_columns, rows, within);
    }
    return sum;
}

}  // namespace tilewise::grid
