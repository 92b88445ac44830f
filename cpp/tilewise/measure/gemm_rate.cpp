// Takes the best of three products of 2048 (1536 in complex) on every rank at once.
#include "tilewise/measure/gemm_rate.hpp"

#include <algorithm>
#include <memory>

#include "tilewise/measure/compute.hpp"
#include "tilewise/mpi/together.hpp"

namespace tilewise::measure {

double gemm_rate(Context& context, Dtype dtype) {
    if (is_integer(dtype)) {
        return 0;
    }
    std::unique_ptr<SquareProduct> product;
    mpi::together(context.comm, [&] {
        product = std::make_unique<SquareProduct>(is_complex(dtype) ? 1536 : 2048, dtype, context.threads);
    });
    double best = 0;
    for (int run = 0; run < 3; ++run) {
        double seconds = product->seconds(context);
        mpi::check(MPI_Allreduce(MPI_IN_PLACE, &seconds, 1, MPI_DOUBLE, MPI_MAX, context.comm.get()), "MPI_Allreduce");
        best = std::max(best, product->flops() * context.comm.size() / seconds);
    }
    return best;
}

}  // namespace tilewise::measure
