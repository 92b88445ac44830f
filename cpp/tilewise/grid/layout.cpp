// Blocks from partitions of m, n and k, as the schedule says; the layers share k.
//
// L. E. Cannon, "A cellular computer to implement the Kalman filter algorithm", 1969.
// R. van de Geijn and J. Watts, "SUMMA: scalable universal matrix multiplication algorithm", 1997.
#include "tilewise/grid/layout.hpp"

#include <algorithm>

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

}  // namespace tilewise::grid
