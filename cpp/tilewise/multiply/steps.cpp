// Step after step: fetch, let the next panels start, multiply in slices between which messages move on.
#include "tilewise/multiply/steps.hpp"

#include <algorithm>
#include <cstring>

namespace tilewise::multiply {
namespace {

/// Slices of k between which flying messages are moved on; without messages a slice is only as fine as a progress bar
/// wants it.
constexpr std::int64_t slice_with_messages = 384, slice_without = 768;

}  // namespace

void multiply_steps(const Steps& of, std::byte* c, bool accumulate, const std::function<void(double share)>& report) {
    Context& context = of.context;
    const grid::Block block = of.layout.c(context.comm.rank());
    const bool overlaps = of.exchange.overlaps();
    double done = 0;
    for (std::size_t index = 0; index < of.steps.size(); ++index) {
        Panels panels;
        {
            const Timed timed(context.ledger, Phase::exchange, "panels " + std::to_string(index));
            panels = of.exchange.fetch(index);
            if (of.b_lies_in_a) {
                panels.b = rows_transposed(panels.a, of.dtype, block.columns.begin);
            }
            if (index + 1 < of.steps.size()) {
                of.exchange.start(index + 1);
            }
        }
        const std::int64_t width = of.steps[index].k.size();
        const double share = static_cast<double>(width) /
                             static_cast<double>(std::max<std::int64_t>(1, of.layout.shape().k / of.layout.copies()));
        kernel::Between between;
        if (overlaps || context.progress) {
            between = [&](double of_step) {
                if (overlaps) {
                    const Timed timed(context.ledger, Phase::exchange, "");
                    of.exchange.progress();
                }
                report(std::min(1.0, done + share * of_step));
            };
        }
        const Timed timed(context.ledger, Phase::compute, "gemm " + std::to_string(index));
        const kernel::Product product{.dtype = of.dtype,
                                      .m = block.rows.size(),
                                      .n = block.columns.size(),
                                      .k = width,
                                      .a = panels.a,
                                      .b = panels.b,
                                      .c = c,
                                      .c_stride = block.columns.size(),
                                      .accumulate = accumulate || index > 0};
        of.arithmetic.step(product, between, overlaps ? slice_with_messages : slice_without);
        done += share;
    }
    {
        const Timed timed(context.ledger, Phase::exchange, "");
        of.exchange.finish();
    }
    if (of.steps.empty() && !accumulate && block.size() > 0) {  // k = 0: an empty sum
        std::memset(c, 0, static_cast<std::size_t>(block.size()) * size_of(of.dtype));
    }
}

}  // namespace tilewise::multiply
