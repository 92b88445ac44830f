// Copies arrays in each way that there is, and runs loops that wait for nothing but the arithmetic units.
//
//      sum₀ = sum₀·b + c    sum₁ = sum₁·b + c    …    sum₁₁ = sum₁₁·b + c      registers of the set in use
//      └─ each waits for itself alone, so that every unit begins one in every cycle ─┘
//
// A loop takes tens of microseconds: on a busy machine some still run undisturbed, and the best one counts.
#include "tilewise/measure/ceilings.hpp"

#include <algorithm>
#include <array>
#include <numeric>

#include "tilewise/kernel/isa/versions.hpp"
#include "tilewise/measure/clock.hpp"
#include "tilewise/measure/memory.hpp"
#include "tilewise/mpi/sum.hpp"
#include "tilewise/mpi/together.hpp"

namespace tilewise::measure {
namespace {

constexpr int runs = 3;  // of copies, where there is time for them
constexpr std::int64_t line = 64, per_line = line / 8;

constexpr int sums = 12;  // 2 units of 5 cycles need 10; with b and c they fit into 16 registers
constexpr int turns = 4096, loops = 40;

struct Worked {
    double operations, sum;  // the sum has the compiler keep what it is made of
};

template <class Number, int bytes> struct Register {
    typedef Number Numbers __attribute__((vector_size(bytes)));
    Numbers numbers;
};

template <class Number, int bytes> TILEWISE_INLINE Worked work(int count) {
    using V = typename Register<Number, bytes>::Numbers;
    constexpr int lanes = bytes / static_cast<int>(sizeof(Number));
    const V b = V{} + Number(0.5), c = V{} + Number(1);
    std::array<Register<Number, bytes>, sums> all;
    for (int i = 0; i < sums; ++i) {
        all[i].numbers = V{} + Number(i);
    }
    for (int turn = 0; turn < count; ++turn) {
        for (auto& sum : all) {
            sum.numbers = sum.numbers * b + c;
        }
    }
    Worked worked{2.0 * lanes * sums * count, 0};
    for (const auto& sum : all) {
        worked.sum += static_cast<double>(sum.numbers[0]);
    }
    return worked;
}

template <class Number> double best_rate() {
    double best = 0;
    volatile double kept = 0;
    for (int loop = 0; loop < loops; ++loop) {
        const double begin = now();
        const Worked worked = kernel::in_widths<work<Number, 16>, work<Number, 32>, work<Number, 64>>(turns);
        const double seconds = now() - begin;
        kept = kept + worked.sum;
        best = std::max(best, seconds > 0 ? worked.operations / seconds : 0);
    }
    return best;
}

}  // namespace

double copy_rate(Context& context, const std::byte* from, std::byte* to, std::int64_t bytes, double allowed) {
    const std::int64_t all = mpi::sum_of(context.comm, bytes);
    allowed = mpi::most_of(context.comm, allowed);
    const int threads = bytes < (std::int64_t{1} << 20) ? 1 : context.threads;
    const std::int64_t lines = bytes / line;
    double best = 0, spent = 0;
    for (int run = 0; run < runs && (run == 0 || spent < allowed); ++run) {
        for (const PassVariant& variant : pass_variants("copy")) {
            double seconds = run_together(
                threads,
                [&](int thread) {
                    const std::int64_t first = lines * thread / threads, end = lines * (thread + 1) / threads;
                    variant.pass(
                        {reinterpret_cast<double*>(to) + first * per_line,
                         reinterpret_cast<const double*>(from) + first * per_line, nullptr, (end - first) * per_line},
                        1);
                },
                [&] { meet_all(context.comm); });
            seconds = mpi::most_of(context.comm, seconds + meet_all(context.comm));
            spent += seconds;
            best = std::max(best, seconds > 0 ? 2 * static_cast<double>(all) / seconds : 0);
        }
    }
    return best;
}

double peak(Context& context, Dtype dtype) {
    if (is_integer(dtype)) {
        return 0;
    }
    const bool wide = dtype == Dtype::float64 || dtype == Dtype::complex128;
    std::vector<double> rates;
    mpi::together(context.comm, [&] { rates.resize(static_cast<std::size_t>(context.threads)); });
    run_together(
        context.threads,
        [&](int thread) { rates[static_cast<std::size_t>(thread)] = wide ? best_rate<double>() : best_rate<float>(); },
        [&] { meet_all(context.comm); });
    return mpi::sum_of(context.comm, std::accumulate(rates.begin(), rates.end(), 0.0));
}

}  // namespace tilewise::measure
