// Times a square product of 2048 (1536 in complex) on every rank at once, between barriers.
#include "tilewise/measure/gemm_rate.hpp"

#include <algorithm>

#include "tilewise/base/buffer.hpp"
#include "tilewise/kernel/fill.hpp"
#include "tilewise/kernel/gemm.hpp"

namespace tilewise::measure {

double gemm_rate(Context& context, Dtype dtype) {
    if (is_integer(dtype)) {
        return 0;
    }
    const std::int64_t n = is_complex(dtype) ? 1536 : 2048;
    const auto bytes = static_cast<std::size_t>(n * n) * size_of(dtype);
    const Buffer a(bytes), b(bytes), c(bytes);
    const grid::Block all{{0, n}, {0, n}};
    kernel::fill(a.data(), all, n, dtype, kernel::Fill::random, 1, context.threads);
    kernel::fill(b.data(), all, n, dtype, kernel::Fill::random, 2, context.threads);
    double best = 0;
    for (int run = 0; run < 3; ++run) {
        context.comm.barrier();
        const double begin = context.ledger.now();
        kernel::gemm({.dtype = dtype,
                      .m = n,
                      .n = n,
                      .k = n,
                      .a = {a.data(), n, false},
                      .b = {b.data(), n, false},
                      .c = c.data(),
                      .c_stride = n},
                     context.threads);
        context.comm.barrier();
        const double flops =
            (is_complex(dtype) ? 8.0 : 2.0) * static_cast<double>(n) * static_cast<double>(n) * static_cast<double>(n);
        best = std::max(best, flops * context.comm.size() / (context.ledger.now() - begin));
    }
    mpi::check(MPI_Bcast(&best, 1, MPI_DOUBLE, 0, context.comm.get()), "MPI_Bcast");
    return best;
}

}  // namespace tilewise::measure
