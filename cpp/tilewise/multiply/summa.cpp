// `summa`: C stays; panels of A go along their row of the grid, panels of B along their column, one range of k after
// another.
//
//     p × q = 2 × 2      A [ a | · ]      B [ b b ]        step k: the owners of A(:, k) give it to their row,
//                          [ a | · ]        [ · · ]                the owners of B(k, :) to their column, and all
//                                                                  ranks add the product of the two to their C
#include <algorithm>

#include "tilewise/multiply/algorithms.hpp"

namespace tilewise::multiply {
std::optional<std::string> Summa::refuses(const Arrangement& arrangement) {
    if (arrangement.grid.size() > arrangement.ranks) {
        return "summa needs a grid of at most " + std::to_string(arrangement.ranks) + " ranks, not " +
               std::to_string(arrangement.grid.rows) + "x" + std::to_string(arrangement.grid.columns);
    }
    return std::nullopt;
}

grid::Layout Summa::layout(const Arrangement& arrangement) {
    // Where nothing is copied (`shared`), only the owners' borders cut.
    const bool in_place = arrangement.exchange == ExchangeKind::shared;
    const std::int64_t width = in_place                  ? std::max<std::int64_t>(arrangement.shape.k, 1)
                               : arrangement.wide_panels ? wide_panel_width
                                                         : panel_width;
    return {arrangement.shape, arrangement.grid, arrangement.copies, grid::summa, arrangement.remainder, width};
}

}  // namespace tilewise::multiply
