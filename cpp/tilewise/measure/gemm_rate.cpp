// Takes the best of some products on every rank at once, each as much work for a thread as any other.
#include "tilewise/measure/gemm_rate.hpp"

#include <algorithm>
#include <cmath>
#include <memory>

#include "tilewise/measure/compute.hpp"
#include "tilewise/mpi/together.hpp"

namespace tilewise::measure {
namespace {

constexpr int least_runs = 3;
constexpr double enough = 0.5;  // seconds: a core that was waiting takes some hundredths to reach its clock

constexpr std::int64_t size_of_one = 2048, complex_size_of_one = 1536;  // rows that are full speed for one thread
static_assert(3 * size_of_one * size_of_one * 8 <= gemm_rate_bytes &&
              3 * complex_size_of_one * complex_size_of_one * 16 <= gemm_rate_bytes);

/// What is full speed for one thread is too small for many: as much work for each of several.
std::int64_t size_for(Dtype dtype, int threads) {
    const std::int64_t size = is_complex(dtype) ? complex_size_of_one : size_of_one;
    return static_cast<std::int64_t>(static_cast<double>(size) * std::cbrt(threads)) / 64 * 64;
}

}  // namespace

double gemm_rate(Context& context, Dtype dtype) {
    if (is_integer(dtype)) {
        return 0;
    }
    std::unique_ptr<SquareProduct> product;
    mpi::together(context.comm, [&] {
        product = std::make_unique<SquareProduct>(size_for(dtype, context.threads), dtype, context.threads);
    });
    double best = 0, spent = 0;
    for (int run = 0; run < least_runs || spent < enough; ++run) {
        double seconds = product->seconds(context);
        mpi::check(MPI_Allreduce(MPI_IN_PLACE, &seconds, 1, MPI_DOUBLE, MPI_MAX, context.comm.get()), "MPI_Allreduce");
        best = std::max(best, product->flops() * context.comm.size() / seconds);
        spent += seconds;
    }
    return best;
}

}  // namespace tilewise::measure
