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

/// A or B as `rank` has it; with `lies_in_a` B, of which nothing is kept.
Side side_of(const grid::Layout& layout, int rank, const io::Region& region, Dtype dtype, bool is_a, bool lies_in_a) {
    Side side{.dtype = dtype, .transposed = region.stored_transposed(), .is_a = is_a, .outer = 0, .inner = {}};
    const int first = layout.layer(rank) * layout.grid().size();
    for (int other = first; other < first + layout.grid().size(); ++other) {
        side.inner.push_back(is_a ? layout.a(other).columns.size() : layout.b(other).rows.size());
    }
    side.outer = is_a ? layout.a(rank).rows.size() : lies_in_a ? 0 : layout.b(rank).columns.size();
    return side;
}

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

BlockProduct::BlockProduct(Context& context, const io::Region& a, const io::Region& b, Dtype dtype,
                           const Options& options, const grid::Layout& layout, const Halving& halving,
                           BlockMemory spare)
    : context_(context),
      dtype_(dtype),
      options_(options),
      layout_(layout),
      halving_(halving),
      b_lies_in_a_(options.symmetric && layout.grid().rows == 1),
      layer_(context.comm.split(layout_.layer(me()), layout_.in_layer(me()))),
      steps_(layout_.steps(me())),
      exchange_(make_exchange(
          options.exchange, layout_.flow(),
          {context, layer_, layout_.grid(), layout_.place(me()), steps_, side_of(layout_, me(), a, dtype, true, false),
           side_of(layout_, me(), b, dtype, false, b_lies_in_a_), std::move(spare)})) {
    if (options.symmetric) {
        half_ = grid::symmetric_part(layout_, me(), context.threads);
    }
}

std::int64_t BlockProduct::received() const {
    return grid::received_elements(steps_, layer_.rank(), c_block().rows.size(), c_block().columns.size()) *
           static_cast<std::int64_t>(size_of(dtype_));
}

io::WantedShare BlockProduct::wanted(bool is_a, const Window& window) const {
    return [this, is_a, window](int rank) {
        return grid::Share(is_a ? moved(layout_.a(rank), window.m.begin, window.k.begin)
                                : moved(layout_.b(rank), window.k.begin, window.n.begin));
    };
}

Part BlockProduct::part(bool is_a, const Window& window) {
    const Exchange::Held held = exchange_->held();
    const int first = layout_.layer(me()) * layout_.grid().size();
    const Part a{held.a, moved(layout_.a(first + held.a_owner), window.m.begin, window.k.begin)};
    if (is_a || b_lies_in_a_) {
        return is_a ? a : a.transposed();
    }
    return {held.b, moved(layout_.b(first + held.b_owner), window.k.begin, window.n.begin)};
}

bool BlockProduct::borrow(bool is_a, const io::Region& region) {
    if (options_.read != io::StrategyKind::mapped || context_.comm.size() > 1 || !io::usable_in_place(region, dtype_)) {
        return false;
    }
    io::check_file(context_, region);
    const Timed timed(context_.ledger, Phase::input, Step::file, "map " + region.name);
    std::optional<io::Mapping>& map = is_a ? a_map_ : b_map_;
    map.emplace(region, io::Direction::read);
    if (!(is_a ? exchange_->borrow_a(map->data()) : exchange_->borrow_b(map->data()))) {
        map.reset();
        return false;
    }
    map->populate(context_.threads);
    Counters& count = context_.ledger.count();
    count.read += region.bytes();
    count.useful += region.bytes();
    count.meanwhile += region.bytes();
    count.io_calls += 1;
    return true;
}

/// Adds a step of k to the rank's block of C.
void BlockProduct::add_step(const kernel::Product& product, const kernel::Between& between, std::int64_t slice) const {
    // Parts that are smaller than the largest are halved as often as pays for them.
    const int levels = std::min(halving_.levels, kernel::strassen_levels(dtype_, product.m, product.n, product.k));
    if (options_.symmetric) {
        kernel::gemm_parts(product, c_block(), half_.computed, context_.threads, options_.kernel, between, slice);
    } else if (levels > 0) {
        kernel::strassen(product, context_.threads, levels, between);
    } else {
        kernel::gemm(product, context_.threads, options_.kernel, between, slice);
    }
}

void BlockProduct::multiply(const grid::Range& rows, std::byte* c, bool accumulate,
                            const std::function<void(double share)>& report) {
    const grid::Block block = c_block();
    const bool overlaps = exchange_->overlaps();
    double done = 0;
    for (std::size_t index = 0; index < steps_.size(); ++index) {
        StepPanels panels;
        {
            const Timed timed(context_.ledger, Phase::exchange, "panels " + std::to_string(index));
            panels = exchange_->fetch(index);
            if (b_lies_in_a_) {
                panels.b = rows_transposed(panels.a, dtype_, block.columns.begin);
            }
            if (index + 1 < steps_.size()) {
                exchange_->start(index + 1);
            }
        }
        const std::int64_t width = steps_[index].k.size();
        const double share = static_cast<double>(width) /
                             static_cast<double>(std::max<std::int64_t>(1, layout_.shape().k / layout_.copies()));
        kernel::Between between;
        if (overlaps || context_.progress) {
            between = [&](double of_step) {
                if (overlaps) {
                    const Timed timed(context_.ledger, Phase::exchange, "");
                    exchange_->progress();
                }
                report(std::min(1.0, done + share * of_step));
            };
        }
        const Timed timed(context_.ledger, Phase::compute, "gemm " + std::to_string(index));
        kernel::Product product = kernel::rows_of({.dtype = dtype_,
                                                   .m = block.rows.size(),
                                                   .n = block.columns.size(),
                                                   .k = width,
                                                   .a = panels.a,
                                                   .b = panels.b,
                                                   .c = c,
                                                   .c_stride = block.columns.size(),
                                                   .accumulate = accumulate || index > 0},
                                                  rows);
        product.c = c;  // which begins with these rows
        add_step(product, between, overlaps ? slice_with_messages : slice_without);
        done += share;
    }
    {
        const Timed timed(context_.ledger, Phase::exchange, "");
        exchange_->finish();
    }
    if (steps_.empty() && !accumulate && block.size() > 0) {  // k = 0: an empty sum
        std::memset(c, 0, static_cast<std::size_t>(rows.size() * block.columns.size()) * size_of(dtype_));
    }
}

void BlockProduct::complete(std::byte* c, const mpi::Exposed& shared) const {
    if (options_.symmetric) {
        complete_symmetric(context_, layout_, half_, dtype_, c, shared);
    }
    add_layers(context_, layout_, dtype_, c);
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
