// Blocks from partitions of m, n and k, as the schedule says; the layers share k.
//
// L. E. Cannon, "A cellular computer to implement the Kalman filter algorithm", 1969.
// R. van de Geijn and J. Watts, "SUMMA: scalable universal matrix multiplication algorithm", 1997.
// Cuts C where any block begins, rows as columns, so that each piece and its mirror image have one owner each.
#include "tilewise/grid/layout.hpp"

#include <algorithm>
#include <array>

namespace tilewise::grid {
namespace {

int diagonal(Grid grid, Place place) { return (place.row + place.column) % grid.rows; }

std::vector<Step> cannon_steps(Grid grid, Range k_all, Remainder remainder, std::int64_t /*width*/, Place place) {
    const int q = grid.rows;
    const Partition parts(k_all.size(), q, remainder);
    std::vector<Step> steps;
    for (int step = 0; step < q; ++step) {
        const Range k = parts[(place.row + place.column + step) % q];
        const Range whole{0, k.size()};
        steps.push_back({{k_all.begin + k.begin, k_all.begin + k.end},
                         grid.rank({place.row, (place.column + step) % q}),
                         grid.rank({(place.row + step) % q, place.column}),
                         whole,
                         whole});
    }
    return steps;
}

std::vector<Step> summa_steps(Grid grid, Range k_all, Remainder remainder, std::int64_t width, Place place) {
    const Partition a_parts(k_all.size(), grid.columns, remainder);
    const Partition b_parts(k_all.size(), grid.rows, remainder);
    std::vector<Step> steps;
    for (std::int64_t begin = 0; begin < k_all.size();) {
        const int a_part = a_parts.part_of(begin);
        const int b_part = b_parts.part_of(begin);
        const Range a_range = a_parts[a_part];
        const Range b_range = b_parts[b_part];
        const std::int64_t end = std::min({begin + width, a_range.end, b_range.end});
        steps.push_back({{k_all.begin + begin, k_all.begin + end},
                         grid.rank({place.row, a_part}),
                         grid.rank({b_part, place.column}),
                         {begin - a_range.begin, end - a_range.begin},
                         {begin - b_range.begin, end - b_range.begin}});
        begin = end;
    }
    return steps;
}

Range shifted(Range range, std::int64_t by) { return {range.begin + by, range.end + by}; }

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

const Schedule cannon{Flow::torus, diagonal, diagonal, cannon_steps};
const Schedule summa{Flow::panels, [](Grid, Place place) { return place.column; },
                     [](Grid, Place place) { return place.row; }, summa_steps};

std::int64_t received_elements(const std::vector<Step>& steps, int rank, std::int64_t m, std::int64_t n) {
    std::int64_t elements = 0;
    for (const auto& step : steps) {
        elements += step.a_owner == rank ? 0 : m * step.k.size();
        elements += step.b_owner == rank ? 0 : n * step.k.size();
    }
    return elements;
}

Layout::Layout(Shape shape, Grid grid, int copies, const Schedule& schedule, Remainder remainder,
               std::int64_t panel_width)
    : shape_(shape),
      grid_(grid),
      copies_(copies),
      schedule_(schedule),
      remainder_(remainder),
      panel_width_(panel_width) {}

Block Layout::a(int rank) const {
    if (!has_place(rank)) {
        return {};
    }
    const Range k = k_of_layer(layer(rank));
    const int part = schedule_.a_part(grid_, place(rank));
    return {Partition(shape_.m, grid_.rows, remainder_)[place(rank).row],
            shifted(Partition(k.size(), grid_.columns, remainder_)[part], k.begin)};
}

Block Layout::b(int rank) const {
    if (!has_place(rank)) {
        return {};
    }
    const Range k = k_of_layer(layer(rank));
    const int part = schedule_.b_part(grid_, place(rank));
    return {shifted(Partition(k.size(), grid_.rows, remainder_)[part], k.begin),
            Partition(shape_.n, grid_.columns, remainder_)[place(rank).column]};
}

Block Layout::c(int rank) const {
    if (!has_place(rank)) {
        return {};
    }
    const auto [row, column] = place(rank);
    return {Partition(shape_.m, grid_.rows, remainder_)[row], Partition(shape_.n, grid_.columns, remainder_)[column]};
}

Block Layout::c_owned(int rank) const {
    const Block whole = c(rank);
    if (!has_place(rank)) {
        return whole;
    }
    return {shifted(Partition(whole.rows.size(), copies_)[layer(rank)], whole.rows.begin), whole.columns};
}

std::vector<Step> Layout::steps(int rank) const {
    if (!has_place(rank)) {
        return {};
    }
    return schedule_.steps(grid_, k_of_layer(layer(rank)), remainder_, panel_width_, place(rank));
}

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
