// One rank's decomposition: start, sweeps of one pair that holds all columns, finish; and LAPACK's gesdd.
#include "tilewise/kernel/factor/svd_local.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "tilewise/base/array.hpp"
#include "tilewise/base/clock.hpp"
#include "tilewise/base/error.hpp"
#include "tilewise/kernel/factor/lapack_number.hpp"

namespace tilewise::kernel {
namespace {

/// Rearranges columns in place: column k becomes what column order[k] was.
void arrange(const Columns& m, std::vector<std::int64_t> order) {
    std::vector<double> aside(static_cast<std::size_t>(m.rows));
    for (std::int64_t first = 0; first < m.count; ++first) {
        if (order[static_cast<std::size_t>(first)] == first) {
            continue;
        }
        std::copy_n(m.column(first), m.rows, aside.data());
        std::int64_t to = first;
        for (;;) {
            const std::int64_t from = std::exchange(order[static_cast<std::size_t>(to)], to);
            if (from == first) {
                break;
            }
            std::copy_n(m.column(from), m.rows, m.column(to));
            to = from;
        }
        std::copy_n(aside.data(), m.rows, m.column(to));
    }
}

[[noreturn]] void refuse_work_space(std::int64_t rows, std::int64_t columns) {
    throw UsageError("LAPACK's gesdd uses 32-bit indices, and a matrix of " + std::to_string(rows) + "x" +
                     std::to_string(columns) +
                     " needs more workspace than they can count; the algorithm jacobi has no such limit");
}

}  // namespace

SvdFacts jacobi_svd(Columns a, double* sigma, Columns u, Columns v, const SvdOptions& options) {
    SvdFacts facts;
    const BlasThreads blas(options.threads);
    Stopwatch clock;
    const bool want_v = v.data != nullptr;
    const Team alone;
    const std::vector<int> owners(static_cast<std::size_t>(a.count), 0);
    SweepStart start = start_sweeps(
        SpreadColumns{a, owners}, {}, options.eigen_start ? EigenStart::on_root : EigenStart::none, want_v,
        [&](int, bool) { return grid::Range{0, a.count}; }, alone, options.threads);
    if (want_v && !start.eigen) {
        start.v = Matrix(a.count, a.count);
        for (std::int64_t c = 0; c < a.count; ++c) {
            start.v.column(c)[c] = 1;
        }
    }
    facts.start = start.steps;
    facts.fallback = start.fallback;
    facts.start_seconds = clock();

    const Columns x = start.x.columns(), w = start.v.columns();
    const double tolerance = options.tolerance > 0 ? options.tolerance : jacobi_tolerance(x.rows, options.inner);
    PairSolver solve(options.inner, tolerance, options.threads);
    while (!facts.converged && static_cast<int>(facts.off.size()) < options.most_sweeps) {
        const PairOutcome outcome = solve(x, {}, w, {});
        facts.off.push_back(outcome.off);
        facts.converged = certainly_converged(outcome, tolerance);
        if (has_stalled(facts.off)) {
            solve.use_rotations();
        }
    }
    facts.tally = solve.tally();
    facts.sweep_seconds = clock();

    finish_columns(start.factors, x, u.data != nullptr, u, sigma, alone, options.threads);
    for (std::int64_t c = 0; c < v.count; ++c) {
        std::copy_n(w.column(c), w.rows, v.column(c));
    }
    if (want_v) {
        turn_back(start.factors, v, alone, options.threads);
    }
    std::vector<std::int64_t> order(static_cast<std::size_t>(a.count));
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](auto i, auto j) { return sigma[i] > sigma[j]; });
    const std::vector<double> unsorted(sigma, sigma + a.count);
    for (std::size_t k = 0; k < order.size(); ++k) {
        sigma[k] = unsorted[static_cast<std::size_t>(order[k])];
    }
    if (want_v) {
        arrange(v, order);
    }
    if (u.data != nullptr) {
        arrange(u, order);
        complete(SpreadColumns{u, owners}, std::find(sigma, sigma + a.count, 0.0) - sigma, alone, options.threads);
    }
    facts.finish_seconds = clock();
    return facts;
}

template <class T> void gesdd(std::int64_t rows, std::int64_t columns, T* a, std::int64_t stride, double* sigma,
                              std::type_identity_t<T>* u, std::type_identity_t<T>* vt, int threads) {
    const std::int64_t least = std::min(rows, columns);
    if (least == 0) {
        return;
    }
    const BlasThreads blas(threads);
    // For vectors it asks for 3·least² and some numbers (4 where it begins with a QR), which it reckons in 32 bits: the
    // answer may have wrapped.
    const std::int64_t squares = 6 * (std::max(rows, columns) + 1) >= 11 * least ? 4 : 3;
    if (u != nullptr && (squares * least + 16) * least > std::numeric_limits<int>::max()) {
        refuse_work_space(rows, columns);
    }
    const char* job = u == nullptr ? "N" : "S";
    const int m = lapack_int(rows), n = lapack_int(columns), lda = lapack_int(std::max(stride, rows)), ldu = m,
              ldvt = lapack_int(least), query = -1;
    std::vector<int> integers(static_cast<std::size_t>(8 * least));
    // Complex numbers have reals beside them: 5·least² + 7·least, or what vectors of a long side take.
    const Array<double> more(
        is_complex_number<T> ? least * std::max(5 * least + 7, 2 * std::max(rows, columns) + 2 * least + 1) + 16 : 0);
    const auto call = [&](T* work, int size) {
        int info = 0;
        if constexpr (is_complex_number<T>) {
            TILEWISE_BLAS(zgesdd_)
            (job, &m, &n, a, &lda, sigma, u, &ldu, vt, &ldvt, work, &size, more.data(), integers.data(), &info);
        } else {
            TILEWISE_BLAS(dgesdd_)
            (job, &m, &n, a, &lda, sigma, u, &ldu, vt, &ldvt, work, &size, integers.data(), &info);
        }
        return info;
    };
    T wanted{};
    call(&wanted, query);
    const double reals = std::ceil(real_part(wanted)) + 16;
    if (reals > std::numeric_limits<int>::max()) {
        refuse_work_space(rows, columns);
    }
    const Array<T> work(static_cast<std::int64_t>(reals));
    tell<T>(effort::gesdd(m, n, u != nullptr));
    const int info = call(work.data(), static_cast<int>(reals));
    if (info != 0) {
        throw InternalError("LAPACK's gesdd did not converge (info " + std::to_string(info) +
                            "), a finite matrix was expected");
    }
}

template void gesdd(std::int64_t, std::int64_t, double*, std::int64_t, double*, double*, double*, int);
template void gesdd(std::int64_t, std::int64_t, Complex*, std::int64_t, double*, Complex*, Complex*, int);

}  // namespace tilewise::kernel
