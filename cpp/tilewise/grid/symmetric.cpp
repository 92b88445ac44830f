// Cuts C where any block begins, rows as columns, so that each piece and its mirror image have one owner each.
#include "tilewise/grid/symmetric.hpp"

#include <algorithm>
#include <array>

namespace tilewise::grid {
namespace {

constexpr std::int64_t least_side = 192;                       // below, cutting costs more than half of the work
constexpr std::int64_t most_rows = 1536, most_columns = 1056;  // of a rectangle; a triangle has as many rows at most
constexpr std::int64_t unit = 48;                              // whole tiles of registers, wide ones too

/// The middle, where both sides are whole units if there are enough.
std::int64_t middle(Range range) {
    const std::int64_t half = range.size() / 2;
    return range.begin + (half >= unit ? half / unit * unit : half);
}

/// The parts of a range, in whole units, none larger than `most`.
std::vector<Range> cut(Range range, std::int64_t most) {
    const std::int64_t parts = (range.size() + most - 1) / most, units = (range.size() + unit - 1) / unit;
    std::vector<Range> all;
    for (std::int64_t part = 0; part < parts; ++part) {
        const auto border = [&](std::int64_t i) { return std::min(range.end, range.begin + units * i / parts * unit); };
        all.push_back({border(part), border(part + 1)});
    }
    return all;
}

/// Rectangles of C as its threads take them.
class Parts {
public:
    /// None is much more than half of a thread's share of a symmetric n × n.
    Parts(std::int64_t n, int ranks, int threads) : most_(n * n * 2 / 7 / ranks / threads) {}

    void add(std::vector<Block>& to, const Block& block) const {
        for (const Range columns : cut(block.columns, most_columns)) {
            for (const Range rows : cut(block.rows, std::clamp(most_ / columns.size(), least_side, most_rows))) {
                to.push_back({rows, columns});
            }
        }
    }

    /// On and above the diagonal: one triangle, or two and the rectangle between them.
    void add_triangle(std::vector<Block>& to, Range side) const {
        if (side.size() <= least_side || (side.size() <= most_rows && side.size() * side.size() / 2 <= most_)) {
            to.push_back({side, side});
            return;
        }
        const Range upper{side.begin, middle(side)}, lower{upper.end, side.end};
        add(to, {upper, lower});
        add_triangle(to, upper);
        add_triangle(to, lower);
    }

private:
    std::int64_t most_;
};

/// Two halves of a rectangle, cut across its longer side.
std::array<Block, 2> halves(const Block& block) {
    const auto [rows, columns] = block;
    if (rows.size() >= columns.size()) {
        const std::int64_t at = middle(rows);
        return {Block{{rows.begin, at}, columns}, Block{{at, rows.end}, columns}};
    }
    const std::int64_t at = middle(columns);
    return {Block{rows, {columns.begin, at}}, Block{rows, {at, columns.end}}};
}

/// One side of C, cut where a block of rows or of columns begins: each part, and whose row and column it is in.
struct Segment {
    Range range;
    int row, column;
};

std::vector<Segment> segments(const Layout& layout) {
    std::vector<Segment> all;
    int row = 0, column = 0;
    const Grid grid = layout.grid();
    for (std::int64_t begin = 0; begin < layout.shape().m;) {
        const auto rows = [&] { return layout.c(grid.rank({row, 0})).rows; };
        const auto columns = [&] { return layout.c(grid.rank({0, column})).columns; };
        while (rows().end <= begin) {
            ++row;
        }
        while (columns().end <= begin) {
            ++column;
        }
        const std::int64_t end = std::min(rows().end, columns().end);
        all.push_back({{begin, end}, row, column});
        begin = end;
    }
    return all;
}

}  // namespace

SymmetricPart symmetric_part(const Layout& layout, int rank, int threads) {
    const Parts parts(layout.shape().m, layout.grid().size(), threads);
    const std::vector<Segment> sides = segments(layout);
    const auto owner = [&](const Segment& row, const Segment& column) {
        return layout.grid().rank({row.row, column.column});
    };
    SymmetricPart part;
    for (std::size_t i = 0; i < sides.size(); ++i) {
        if (owner(sides[i], sides[i]) == rank) {
            parts.add_triangle(part.mirrored, sides[i].range);
        }
        for (std::size_t j = i + 1; j < sides.size(); ++j) {
            const int upper = owner(sides[i], sides[j]), lower = owner(sides[j], sides[i]);
            const Block block{sides[i].range, sides[j].range};
            const auto [first, second] = halves(block);
            if (upper == rank && lower == rank) {
                parts.add(part.mirrored, block);
            } else if (upper == rank) {
                part.swaps.push_back({lower, first, second});
            } else if (lower == rank) {
                part.swaps.push_back({upper, second.transposed(), first.transposed()});
            }
        }
    }
    part.computed = part.mirrored;
    for (const auto& swap : part.swaps) {
        parts.add(part.computed, swap.sent);
    }
    // The largest first, so that threads end together.
    std::stable_sort(part.computed.begin(), part.computed.end(),
                     [](const Block& x, const Block& y) { return x.size() > y.size(); });
    return part;
}

}  // namespace tilewise::grid
