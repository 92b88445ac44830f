// Layout, panels and arithmetic of one window.
#include "tilewise/multiply/window_blocks.hpp"

#include "tilewise/multiply/arrange.hpp"
#include "tilewise/multiply/steps.hpp"

namespace tilewise::multiply {

WindowBlocks::WindowBlocks(Context& context, const io::Region& a, const io::Region& b, Dtype dtype,
                           const Options& options, const grid::Shape& shape, BlockMemory spare)
    : context_(context),
      dtype_(dtype),
      layout_(arrange(context.comm.size(), shape, options)),
      arithmetic_(context, layout_, dtype, options, Halving{}),
      layer_(context.comm.split(layout_.layer(me()), layout_.in_layer(me()))),
      steps_(layout_.steps(me())),
      a_(side_of(layout_, me(), a, dtype, true)),
      b_(side_of(layout_, me(), b, dtype, false)),
      exchange_(
          make_exchange(options.exchange, layout_.flow(),
                        {context, layer_, layout_.grid(), layout_.place(me()), steps_, a_, b_, std::move(spare)})) {}

io::WantedShare WindowBlocks::a_of(const Window& window) const {
    return [this, window](int rank) { return grid::Share(moved(layout_.a(rank), window.m.begin, window.k.begin)); };
}

io::WantedShare WindowBlocks::b_of(const Window& window) const {
    return [this, window](int rank) { return grid::Share(moved(layout_.b(rank), window.k.begin, window.n.begin)); };
}

void WindowBlocks::load_a(const io::Input& input, const Window& window) {
    input.load(context_, dtype_, a_of(window), exchange_->a_block());
}

void WindowBlocks::load_b(const io::Input& input, const Window& window) {
    input.load(context_, dtype_, b_of(window), exchange_->b_block());
}

void WindowBlocks::begin_a(io::Input& input, const Window& window) {
    input.begin(context_, dtype_, a_of(window), exchange_->a_block());
}

void WindowBlocks::begin_b(io::Input& input, const Window& window) {
    input.begin(context_, dtype_, b_of(window), exchange_->b_block());
}

void WindowBlocks::multiply(std::byte* c, bool accumulate, const std::function<void(double share)>& report) {
    {
        const Timed timed(context_.ledger, Phase::exchange, "open");
        exchange_->open();
    }
    multiply_steps({context_, layout_, arithmetic_, *exchange_, steps_, dtype_}, c, accumulate, report);
    exchange_->rewind();
}

std::int64_t WindowBlocks::received() const {
    const grid::Block c = layout_.c(me());
    return grid::received_elements(steps_, layer_.rank(), c.rows.size(), c.columns.size()) *
           static_cast<std::int64_t>(size_of(dtype_));
}

Part WindowBlocks::part(const Side& side, const std::byte* data, const grid::Block& block, const grid::Range& rows,
                        const grid::Range& columns) const {
    const grid::Range inner{0, side.is_a ? block.columns.size() : block.rows.size()};
    return {side.in_block(data, layer_.rank(), inner), moved(block, rows.begin, columns.begin)};
}

}  // namespace tilewise::multiply
