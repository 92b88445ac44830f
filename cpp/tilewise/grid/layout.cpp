// Blocks from partitions of m, n and k, as the schedule says; the layers share k.
#include "tilewise/grid/layout.hpp"

namespace tilewise::grid {
namespace {

Range shifted(Range range, std::int64_t by) { return {range.begin + by, range.end + by}; }

}  // namespace

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
