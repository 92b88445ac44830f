// `cannon`: q × q ranks on a torus; after each of q steps A moves one place left and B one place up.
//
//     q = 3, what each rank multiplies, as (k of A, k of B):
//
//        step 0          step 1          step 2
//       [0] [1] [2]     [1] [2] [0]     [2] [0] [1]        every rank sees every k exactly once, and no two ranks
//       [1] [2] [0]     [2] [0] [1]     [0] [1] [2]        of a row or of a column use the same block at the same time
//       [2] [0] [1]     [0] [1] [2]     [1] [2] [0]
#include "tilewise/multiply/algorithms.hpp"

namespace tilewise::multiply {

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

}  // namespace tilewise::multiply
