// Asks the algorithm for its layout, and the layout for what the exchanges want to know.
#include "tilewise/multiply/arrange.hpp"

#include "tilewise/mpi/exchange/exchange.hpp"

namespace tilewise::multiply {

grid::Shape shape_of(const io::Region& a, const io::Region& b, const Options& options) {
    if (a.logical_columns() != b.logical_rows()) {
        throw UsageError("the shapes do not match: " + a.name + " has " + std::to_string(a.logical_columns()) +
                         " columns and " + b.name + " has " + std::to_string(b.logical_rows()) + " rows");
    }
    if (options.symmetric && (a.logical_rows() != b.logical_columns() ||
                              a.stored_transposed() == b.stored_transposed() || options.copies > 1)) {
        throw UsageError("a symmetric product is that of one matrix and its transpose, on one copy of the grid");
    }
    return {a.logical_rows(), b.logical_columns(), a.logical_columns()};
}

grid::Layout arrange(int ranks, const grid::Shape& shape, const Options& options) {
    mpi::require_taken(options.exchange, exchange_names);
    const AlgorithmEntry& algorithm = algorithms.at(static_cast<std::size_t>(options.algorithm));
    const Arrangement arrangement{shape,
                                  options.grid,
                                  options.copies,
                                  ranks,
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

Side side_of(const grid::Layout& layout, int rank, const io::Region& region, Dtype dtype, bool is_a, bool lies_in_a) {
    Side side{.dtype = dtype, .transposed = region.stored_transposed(), .is_a = is_a, .outer = 0, .inner = {}};
    const int first = layout.layer(rank) * layout.grid().size();
    for (int other = first; other < first + layout.grid().size(); ++other) {
        side.inner.push_back(is_a ? layout.a(other).columns.size() : layout.b(other).rows.size());
    }
    side.outer = is_a ? layout.a(rank).rows.size() : lies_in_a ? 0 : layout.b(rank).columns.size();
    return side;
}

}  // namespace tilewise::multiply
