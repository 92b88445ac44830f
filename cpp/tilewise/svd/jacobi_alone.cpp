// Columns are arranged by their values at the end, once for all.
#include "tilewise/svd/jacobi_alone.hpp"

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <utility>

#include "tilewise/base/clock.hpp"
#include "tilewise/kernel/factor/lapack.hpp"
#include "tilewise/svd/jacobi_ends.hpp"

namespace tilewise::svd {

using namespace kernel;
using namespace dist;

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

}  // namespace

JacobiFacts jacobi_svd(Columns a, double* sigma, Columns u, Columns v, const JacobiOptions& options) {
    JacobiFacts facts;
    const BlasThreads blas(options.threads);
    Stopwatch clock;
    const bool want_v = v.data != nullptr;
    const ColumnComm alone;
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

}  // namespace tilewise::svd
