// What each algorithm refuses, and its layout; and looks them up by name.
#include "tilewise/multiply/algorithms.hpp"

#include <algorithm>

#include "tilewise/base/names.hpp"

namespace tilewise::multiply {

// `local`: one rank has all of A, B and C; its threads share C. Nothing travels.

std::optional<std::string> Local::refuses(const Arrangement& arrangement) {
    if (arrangement.ranks != 1) {
        return "local runs on one rank, not on " + std::to_string(arrangement.ranks) + "; summa takes any number";
    }
    return std::nullopt;
}

grid::Layout Local::layout(const Arrangement& arrangement) {
    return {arrangement.shape,
            {1, 1},
            1,
            grid::summa,
            arrangement.remainder,
            std::max<std::int64_t>(arrangement.shape.k, 1)};
}

// `cannon`: q × q ranks on a torus; after each of q steps A moves one place left and B one place up.
//
//     q = 3, what each rank multiplies, as (k of A, k of B):
//
//        step 0          step 1          step 2
//       [0] [1] [2]     [1] [2] [0]     [2] [0] [1]        every rank sees every k exactly once, and no two ranks
//       [1] [2] [0]     [2] [0] [1]     [0] [1] [2]        of a row or of a column use the same block at the same time
//       [2] [0] [1]     [0] [1] [2]     [1] [2] [0]

std::optional<std::string> Cannon::refuses(const Arrangement& arrangement) {
    const grid::Grid grid = arrangement.grid;
    if (grid.rows != grid.columns || grid.size() != arrangement.ranks) {
        return "cannon needs a square number of ranks on a square grid (1, 4, 9, 16 …), not " +
               std::to_string(arrangement.ranks) + " as " + std::to_string(grid.rows) + "x" +
               std::to_string(grid.columns) + "; summa takes any grid";
    }
    return std::nullopt;
}

grid::Layout Cannon::layout(const Arrangement& arrangement) {
    return {arrangement.shape, arrangement.grid, 1, grid::cannon, arrangement.remainder};
}

// `summa`: C stays; panels of A go along their row of the grid, panels of B along their column, one range of k after
// another.
//
//     p × q = 2 × 2      A [ a | · ]      B [ b b ]        step k: the owners of A(:, k) give it to their row,
//                          [ a | · ]        [ · · ]                the owners of B(k, :) to their column, and all
//                                                                  ranks add the product of the two to their C

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

// `replicated`: `copies` layers of a grid; layer l multiplies its own share of k, and the layers' results are added at
// the end.
//
//     copies = 2, k = [ k0 | k1 ]
//
//        layer 0:  C' = A(:, k0)·B(k0, :)   ┐
//        layer 1:  C" = A(:, k1)·B(k1, :)   ┘  C = C' + C"
//
// Each rank of a stack of layers ends up with its share of the rows of the sum, and writes that.
//
// The textbook's layer 0 owns A and B and sends copies to the others; here each layer reads its own share from the
// file.

std::optional<std::string> Replicated::refuses(const Arrangement& arrangement) {
    if (arrangement.copies < 2) {
        return "replicated needs at least 2 copies of its grid, and so at least 2 ranks; summa takes one";
    }
    if (arrangement.grid.size() * arrangement.copies > arrangement.ranks) {
        return "replicated needs as many ranks as grid × copies or more, not " + std::to_string(arrangement.ranks) +
               " for " + std::to_string(arrangement.grid.rows) + "x" + std::to_string(arrangement.grid.columns) +
               " × " + std::to_string(arrangement.copies);
    }
    return std::nullopt;
}

grid::Layout Replicated::layout(const Arrangement& arrangement) { return Summa::layout(arrangement); }

static_assert(algorithms[static_cast<std::size_t>(AlgorithmKind::replicated)].name == "replicated");

AlgorithmKind algorithm_named(std::string_view name) {
    return enum_named<AlgorithmKind>(algorithms, name, "algorithm");
}

}  // namespace tilewise::multiply
