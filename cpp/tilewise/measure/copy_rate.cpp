// Copies in one range a thread, with plain and with streaming stores, between barriers.
#include "tilewise/measure/copy_rate.hpp"

#include <algorithm>
#include <cstring>

#include "tilewise/base/threads.hpp"

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace tilewise::measure {
namespace {

constexpr int runs = 3;
constexpr std::int64_t line = 64;

void copy(const std::byte* from, std::byte* to, std::int64_t bytes) {
    std::memcpy(to, from, static_cast<std::size_t>(bytes));
}

/// `to` begins at a cache line.
void copy_past_caches(const std::byte* from, std::byte* to, std::int64_t bytes) {
#if defined(__SSE2__)
    const std::int64_t whole = bytes / line * line;
    for (std::int64_t at = 0; at < whole; at += 16) {
        _mm_stream_si128(reinterpret_cast<__m128i*>(to + at),
                         _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + at)));
    }
    _mm_sfence();
    copy(from + whole, to + whole, bytes - whole);
#else
    copy(from, to, bytes);
#endif
}

}  // namespace

double copy_rate(Context& context, const std::byte* from, std::byte* to, std::int64_t bytes) {
    std::int64_t all = 0;
    mpi::check(MPI_Allreduce(&bytes, &all, 1, MPI_INT64_T, MPI_SUM, context.comm.get()), "MPI_Allreduce");
    const int threads = bytes < (std::int64_t{1} << 20) ? 1 : context.threads;
    double best = 0;
    for (int run = 0; run < 2 * runs; ++run) {
        const auto copied = run % 2 == 0 ? copy_past_caches : copy;
        context.comm.barrier();
        const double begin = context.ledger.now();
        parallel_ranges(threads, bytes / line, [&](std::int64_t first, std::int64_t end, int) {
            copied(from + first * line, to + first * line, (end - first) * line);
        });
        context.comm.barrier();
        const double seconds = context.ledger.now() - begin;
        best = std::max(best, seconds > 0 ? 2 * static_cast<double>(all) / seconds : 0);
    }
    mpi::check(MPI_Bcast(&best, 1, MPI_DOUBLE, 0, context.comm.get()), "MPI_Bcast");
    return best;
}

}  // namespace tilewise::measure
