// Shapes first, then what symmetric products need, then what the algorithm says.
#include "tilewise/multiply/arrange.hpp"

#include "tilewise/base/error.hpp"
#include "tilewise/multiply/algorithms.hpp"
#include "tilewise/multiply/halving.hpp"

namespace tilewise::multiply {

grid::Layout arrange(const Context& context, const io::Region& a, const io::Region& b, const Options& options) {
    if (a.logical_columns() != b.logical_rows()) {
        throw UsageError("the shapes do not match: " + a.name + " has " + std::to_string(a.logical_columns()) +
                         " columns and " + b.name + " has " + std::to_string(b.logical_rows()) + " rows");
    }
    if (options.symmetric && (a.logical_rows() != b.logical_columns() ||
                              a.stored_transposed() == b.stored_transposed() || options.copies > 1)) {
        throw UsageError("a symmetric product is that of one matrix and its transpose, on one copy of the grid");
    }
    mpi::require_taken(options.exchange, exchange_names);
    const AlgorithmEntry& algorithm = algorithms.at(static_cast<std::size_t>(options.algorithm));
    const Arrangement arrangement{{a.logical_rows(), b.logical_columns(), a.logical_columns()},
                                  options.grid,
                                  options.copies,
                                  context.comm.size(),
                                  options.exchange,
                                  options.remainder,
                                  may_halve(options.kernel, options.tolerance)};
    if (const auto refusal = algorithm.refuses(arrangement)) {
        throw UsageError(*refusal);
    }
    const grid::Layout layout = algorithm.layout(arrangement);
    check_exchange(arrangement.exchange, layout.flow(), layout.grid().size());
    return layout;
}

}  // namespace tilewise::multiply
