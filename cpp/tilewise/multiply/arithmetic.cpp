// The three ways, and what each costs.
#include "tilewise/multiply/arithmetic.hpp"

#include <algorithm>

#include "tilewise/kernel/product/strassen.hpp"
#include "tilewise/kernel/product/symmetric.hpp"
#include "tilewise/multiply/swap_halves.hpp"

namespace tilewise::multiply {

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

void Arithmetic::step(const kernel::Product& product, const kernel::Between& between, std::int64_t slice) const {
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

void Arithmetic::complete(std::byte* c, const mpi::Exposed& shared) const {
    if (!options_.symmetric) {
        return;
    }
    const grid::Block block = layout_.c(context_.comm.rank());
    const auto mirror = [&] {
        const Timed timed(context_.ledger, Phase::compute, "mirror");
        kernel::mirror(c, block, size_of(dtype_), half_.mirrored, context_.threads);
    };
    if (shared.data == nullptr) {
        mirror();
        const Timed timed(context_.ledger, Phase::exchange, "swap halves");
        swap_halves(context_, half_, block, dtype_, c);
        return;
    }
    HandOver hand_over(context_, shared);
    {
        const Timed timed(context_.ledger, Phase::exchange, "hand halves over");
        hand_over(half_, layout_, dtype_);
    }
    mirror();
    const Timed timed(context_.ledger, Phase::exchange, "wait for halves");
    hand_over.wait();
}

}  // namespace tilewise::multiply
