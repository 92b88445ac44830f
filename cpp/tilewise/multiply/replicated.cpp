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
#include "tilewise/multiply/algorithms.hpp"

namespace tilewise::multiply {

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

}  // namespace tilewise::multiply
