// Asks the algorithm for its layout, and the layout for what the exchanges want to know. Step after step: fetch, let
// the next panels start, multiply in slices between which messages move on.
#include "tilewise/multiply/block_product.hpp"

#include <algorithm>
#include <cstring>

#include "tilewise/kernel/codec/convert.hpp"
#include "tilewise/kernel/product/gemm.hpp"
#include "tilewise/kernel/transpose/transpose.hpp"
#include "tilewise/mpi/exchange/exchange.hpp"
#include "tilewise/mpi/together.hpp"

namespace tilewise::multiply {
namespace {

/// Slices of k between which flying messages are moved on; without messages a slice is only as fine as a progress bar
/// wants it.
constexpr std::int64_t slice_with_messages = 384, slice_without = 768;

}  // namespace

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

Arithmetic::Arithmetic(Context& context, const grid::Layout& layout, Dtype dtype, const Options& options,
                       const Halving& halving)
    : context_(context),
      layout_(layout),
      dtype_(dtype),
      options_(options),
      halving_(halving) {
    if (options.symmetric) {
        half_ = grid::symmetric_part(layout, context.comm.rank(), context.threads);
    }
}

double Arithmetic::plain_flops() const {
    const grid::Shape shape = layout_.shape();
    const double elements = options_.symmetric ? static_cast<double>(shape.m) * static_cast<double>(shape.m + 1) / 2
                                               : static_cast<double>(shape.m) * static_cast<double>(shape.n);
    return (is_complex(dtype_) ? 8.0 : 2.0) * elements * static_cast<double>(shape.k);
}

double Arithmetic::flops() const { return plain_flops() * kernel::strassen_work(halving_.levels); }

/// Adds a step of k to the rank's block of C.
void Arithmetic::add_step(const kernel::Product& product, const kernel::Between& between, std::int64_t slice) const {
    // Parts that are smaller than the largest are halved as often as pays for them.
    const int levels = std::min(halving_.levels, kernel::strassen_levels(dtype_, product.m, product.n, product.k));
    if (options_.symmetric) {
        kernel::gemm_parts(product, layout_.c(context_.comm.rank()), half_.computed, context_.threads, options_.kernel,
                           between, slice);
    } else if (levels > 0) {
        kernel::strassen(product, context_.threads, levels, between);
    } else {
        kernel::gemm(product, context_.threads, options_.kernel, between, slice);
    }
}

void Arithmetic::multiply_steps(Exchange& exchange, const std::vector<grid::Step>& steps, bool b_lies_in_a,
                                std::byte* c, bool accumulate, const std::function<void(double share)>& report) const {
    const grid::Block block = layout_.c(context_.comm.rank());
    const bool overlaps = exchange.overlaps();
    double done = 0;
    for (std::size_t index = 0; index < steps.size(); ++index) {
        StepPanels panels;
        {
            const Timed timed(context_.ledger, Phase::exchange, "panels " + std::to_string(index));
            panels = exchange.fetch(index);
            if (b_lies_in_a) {
                panels.b = rows_transposed(panels.a, dtype_, block.columns.begin);
            }
            if (index + 1 < steps.size()) {
                exchange.start(index + 1);
            }
        }
        const std::int64_t width = steps[index].k.size();
        const double share = static_cast<double>(width) /
                             static_cast<double>(std::max<std::int64_t>(1, layout_.shape().k / layout_.copies()));
        kernel::Between between;
        if (overlaps || context_.progress) {
            between = [&](double of_step) {
                if (overlaps) {
                    const Timed timed(context_.ledger, Phase::exchange, "");
                    exchange.progress();
                }
                report(std::min(1.0, done + share * of_step));
            };
        }
        const Timed timed(context_.ledger, Phase::compute, "gemm " + std::to_string(index));
        const kernel::Product product{.dtype = dtype_,
                                      .m = block.rows.size(),
                                      .n = block.columns.size(),
                                      .k = width,
                                      .a = panels.a,
                                      .b = panels.b,
                                      .c = c,
                                      .c_stride = block.columns.size(),
                                      .accumulate = accumulate || index > 0};
        add_step(product, between, overlaps ? slice_with_messages : slice_without);
        done += share;
    }
    {
        const Timed timed(context_.ledger, Phase::exchange, "");
        exchange.finish();
    }
    if (steps.empty() && !accumulate && block.size() > 0) {  // k = 0: an empty sum
        std::memset(c, 0, static_cast<std::size_t>(block.size()) * size_of(dtype_));
    }
}

std::byte* to_file_layout(Context& context, const io::Region& region, const grid::Block& block, std::byte* data,
                          Buffer& transposed) {
    if (!region.column_major && !region.swap_bytes) {
        return data;
    }
    const Timed timed(context.ledger, Phase::output, Step::convert, "turn");
    const std::size_t item = size_of(region.dtype);
    mpi::together(context.comm, [&] {
        if (region.column_major) {
            transposed = Buffer(static_cast<std::size_t>(block.size()) * item);
            const auto size = static_cast<std::int64_t>(item);
            kernel::transpose(data, block.columns.size() * size, block.rows.size(), block.columns.size(), item,
                              transposed.data(), block.rows.size() * size, context.threads);
            data = transposed.data();
        }
        kernel::widen(data, block.size(), region.dtype, region.swap_bytes, region.dtype);
    });
    return data;
}

}  // namespace tilewise::multiply
