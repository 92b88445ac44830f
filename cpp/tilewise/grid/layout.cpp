// Blocks from partitions of m, n and k; the torus rotates them, the layers share k.
#include "tilewise/grid/layout.hpp"

namespace tilewise::grid {
namespace {

Range shifted(Range range, std::int64_t by) { return {range.begin + by, range.end + by}; }

}  // namespace

Layout::Layout(Shape shape, Grid grid, int copies, Flow flow, Remainder remainder, std::int64_t panel_width)
    : shape_(shape),
      grid_(grid),
      copies_(copies),
      flow_(flow),
      remainder_(remainder),
      panel_width_(panel_width) {}

Block Layout::a(int rank) const {
    const auto [row, column] = place(rank);
    const Range k = k_of_layer(layer(rank));
    const int part = flow_ == Flow::torus ? (row + column) % grid_.columns : column;
    return {Partition(shape_.m, grid_.rows, remainder_)[row],
            shifted(Partition(k.size(), grid_.columns, remainder_)[part], k.begin)};
}

Block Layout::b(int rank) const {
    const auto [row, column] = place(rank);
    const Range k = k_of_layer(layer(rank));
    const int part = flow_ == Flow::torus ? (row + column) % grid_.rows : row;
    return {shifted(Partition(k.size(), grid_.rows, remainder_)[part], k.begin),
            Partition(shape_.n, grid_.columns, remainder_)[column]};
}

Block Layout::c(int rank) const {
    const auto [row, column] = place(rank);
    return {Partition(shape_.m, grid_.rows, remainder_)[row], Partition(shape_.n, grid_.columns, remainder_)[column]};
}

Block Layout::c_owned(int rank) const {
    const Block whole = c(rank);
    return {shifted(Partition(whole.rows.size(), copies_)[layer(rank)], whole.rows.begin), whole.columns};
}

std::vector<Step> Layout::steps(int rank) const {
    if (flow_ == Flow::torus) {
        return cannon_steps(grid_.rows, Partition(shape_.k, grid_.rows, remainder_), place(rank));
    }
    return summa_steps(grid_, k_of_layer(layer(rank)), remainder_, panel_width_, place(rank));
}

}  // namespace tilewise::grid
