// Copies one range a thread in each way that there is, all ranks at once, a few times where there is time for that.
#include "tilewise/measure/copy_rate.hpp"

#include <algorithm>

#include "tilewise/measure/memory_passes.hpp"
#include "tilewise/measure/run_together.hpp"
#include "tilewise/measure/shared_start.hpp"

namespace tilewise::measure {
namespace {

constexpr int runs = 3;
constexpr std::int64_t line = 64, per_line = line / 8;

}  // namespace

double copy_rate(Context& context, const std::byte* from, std::byte* to, std::int64_t bytes, double allowed) {
    std::int64_t all = 0;
    mpi::check(MPI_Allreduce(&bytes, &all, 1, MPI_INT64_T, MPI_SUM, context.comm.get()), "MPI_Allreduce");
    mpi::check(MPI_Allreduce(MPI_IN_PLACE, &allowed, 1, MPI_DOUBLE, MPI_MAX, context.comm.get()), "MPI_Allreduce");
    const int threads = bytes < (std::int64_t{1} << 20) ? 1 : context.threads;
    const std::int64_t lines = bytes / line;
    double best = 0, spent = 0;
    for (int run = 0; run < runs && (run == 0 || spent < allowed); ++run) {
        for (const PassVariant& variant : pass_variants("copy")) {
            double seconds = run_together(
                threads,
                [&](int thread) {
                    const std::int64_t first = lines * thread / threads, end = lines * (thread + 1) / threads;
                    variant.pass({reinterpret_cast<double*>(to) + first * per_line,
                                  reinterpret_cast<const double*>(from) + first * per_line, nullptr,
                                  (end - first) * per_line},
                                 1);
                },
                [&] { meet_all(context.comm); });
            seconds += meet_all(context.comm);
            mpi::check(MPI_Allreduce(MPI_IN_PLACE, &seconds, 1, MPI_DOUBLE, MPI_MAX, context.comm.get()),
                       "MPI_Allreduce");
            spent += seconds;
            best = std::max(best, seconds > 0 ? 2 * static_cast<double>(all) / seconds : 0);
        }
    }
    return best;
}

}  // namespace tilewise::measure
