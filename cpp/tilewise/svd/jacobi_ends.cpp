// The eigen start, or column-pivoted QR and LQ where the matrix is too ill-conditioned for it.
#include "tilewise/svd/jacobi_ends.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>
#include <sstream>
#include <string>
#include <utility>

#include "tilewise/base/clock.hpp"
#include "tilewise/base/threads.hpp"
#include "tilewise/dist/gram_eigen.hpp"
#include "tilewise/kernel/factor/jacobi.hpp"
#include "tilewise/kernel/factor/lapack.hpp"

namespace tilewise::svd {

using namespace kernel;
using namespace dist;
namespace {

// The eigen start errs in σ relatively by ε times the condition number of A, at worst; where columns are of
// similar norm, and rows as well, no algorithm does better, as A's own rounding has that effect. With columns
// or rows of different scale the others do better: up to a condition number of 1000 the loss is beyond the
// twelfth digit.
constexpr double most_condition = 1e3, most_condition_balanced = 1e6, balanced_norms = 10;

// Elements between these limits neither overflow nor vanish in a Gram matrix; else A is scaled first.
constexpr double least_element = 1e-60, largest_element = 1e60;

// The work space of LAPACK's eigenvectors has 2·columns² elements, counted in 32 bits.
constexpr std::int64_t most_columns = 30000;

/// Of complex numbers the largest real or imaginary part.
double largest_element_of(const Columns& a, const ColumnComm& comm, int threads) {
    tell<double>({static_cast<double>(a.rows * a.count), static_cast<double>(a.rows * a.count)});
    std::vector<double> largest(static_cast<std::size_t>(threads));
    parallel_ranges(threads, a.count, [&](std::int64_t begin, std::int64_t end, int thread) {
        double here = 0;
        for (std::int64_t c = begin; c < end; ++c) {
            for (const double* p = a.column(c); p < a.column(c) + a.rows; ++p) {
                here = std::max(here, std::abs(*p));
            }
        }
        largest[static_cast<std::size_t>(thread)] = here;
    });
    std::vector<double> most{*std::max_element(largest.begin(), largest.end())};
    comm.largest(most);
    return most.front();
}

/// The place of a rank's first column.
template <class T> std::int64_t first_place(const SpreadColumnsOf<T>& a, const ColumnComm& comm) {
    return std::find(a.owners.begin(), a.owners.end(), comm.rank()) - a.owners.begin();
}

double scaled(double value, int exponent) { return std::ldexp(value, exponent); }
Complex scaled(const Complex& value, int exponent) {
    return {std::ldexp(value.real(), exponent), std::ldexp(value.imag(), exponent)};
}

/// A copy of columns divided by a power of two; where orders are given, its element (i, j) is their element
/// (row_order[i], order[j]).
template <class T>
MatrixOf<T> scaled_copy(const ColumnsOf<T>& a, double scale, const std::vector<std::int64_t>& order,
                        const std::vector<int>& row_order, int threads) {
    MatrixOf<T> copy(a.rows, a.count);
    tell<T>({0, 2 * static_cast<double>(a.rows * a.count)});
    const int exponent = std::ilogb(scale);
    parallel_ranges(threads, a.count, [&](std::int64_t begin, std::int64_t end, int) {
        for (std::int64_t c = begin; c < end; ++c) {
            const T* from = a.column(order.empty() ? c : order[static_cast<std::size_t>(c)]);
            if (!row_order.empty()) {
                std::transform(row_order.begin(), row_order.end(), copy.column(c),
                               [&](int row) { return scale == 1 ? from[row] : scaled(from[row], -exponent); });
            } else if (scale == 1) {
                std::copy_n(from, a.rows, copy.column(c));
            } else {
                std::transform(from, from + a.rows, copy.column(c),
                               [&](const T& value) { return scaled(value, -exponent); });
            }
        }
    });
    return copy;
}

/// The largest magnitude in each row. O(rows·columns).
template <class T> std::vector<double> largest_of_rows(const ColumnsOf<T>& a, const ColumnComm& comm, int threads) {
    tell<T>({static_cast<double>(a.rows * a.count), static_cast<double>(a.rows * a.count)});
    std::vector<double> largest(static_cast<std::size_t>(a.rows));
    parallel_ranges(threads, a.rows, [&](std::int64_t begin, std::int64_t end, int) {
        for (std::int64_t c = 0; c < a.count; ++c) {
            for (std::int64_t i = begin; i < end; ++i) {
                double& here = largest[static_cast<std::size_t>(i)];
                here = std::max(here, std::abs(a.column(c)[i]));
            }
        }
    });
    comm.largest(largest);
    return largest;
}

/// Whether rows that are not zero have largest magnitudes of similar size.
template <class T> bool has_balanced_rows(const ColumnsOf<T>& a, const ColumnComm& comm, int threads) {
    double least = std::numeric_limits<double>::infinity(), most = 0;
    for (const double value : largest_of_rows(a, comm, threads)) {
        least = value > 0 ? std::min(least, value) : least;
        most = std::max(most, value);
    }
    return most <= balanced_norms * least;
}

/// The least and the largest, from the diagonal of AᵀA.
template <class T> std::pair<double, double> squares_of_norms(const Gram<T>& g, const ColumnComm& comm) {
    constexpr double nothing = -std::numeric_limits<double>::infinity();
    std::vector<double> most{nothing, nothing};  // of −squares, and of squares
    std::int64_t next = 0;
    for (std::size_t place = 0; place < g.owners.size(); ++place) {
        if (g.owners[place] == comm.rank()) {
            const double square = real_part(g.mine.column(next++)[place]);
            most = {std::max(most[0], -square), std::max(most[1], square)};
        }
    }
    comm.largest(most);
    return {-most[0], most[1]};
}

/// Fills x and v of `start`; or returns why not, as a sentence.
template <class T>
std::string eigen_start(const SpreadColumnsOf<T>& a, bool shared, SweepStartOf<T>& start, const ColumnsOfRank& wanted,
                        const ColumnComm& comm, int threads) {
    const std::int64_t count = a.count();
    if (count > most_columns) {
        return "LAPACK's 32-bit indices limit eigenvectors to " + std::to_string(most_columns) + " columns.";
    }
    Gram<T> g = gram(a, shared, comm, threads);
    const auto [least, most] = squares_of_norms(g, comm);
    if (!(least > 0) || std::sqrt(most / least) > most_condition) {
        std::ostringstream sentence;
        sentence.precision(2);
        sentence << "The columns' norms range from " << std::sqrt(least) << " to " << std::sqrt(most)
                 << ", beyond the factor of " << most_condition
                 << " up to which a start from the eigenvectors of AᵀA is accurate.";
        return sentence.str();
    }
    Tridiagonal<T> t = reduce(std::move(g), comm, threads);
    std::array<double, 2> extremes{};
    if (comm.rank() == 0) {
        const std::vector<double> values = eigenvalues(t);
        extremes = {values.front(), values.back()};
    }
    comm.broadcast(extremes.data(), std::ssize(extremes), 0);
    const auto [least_value, most_value] = extremes;
    const double condition =
        least_value > 0 ? std::sqrt(most_value / least_value) : std::numeric_limits<double>::infinity();
    const bool balanced = condition > most_condition && condition <= most_condition_balanced &&
                          std::sqrt(most / least) <= balanced_norms && has_balanced_rows(a.mine, comm, threads);
    if (condition > most_condition && !balanced) {
        const double allowed = condition > most_condition_balanced ? most_condition_balanced : most_condition;
        std::ostringstream sentence;
        sentence.precision(2);
        sentence << "The condition number is beyond " << allowed
                 << ", up to which a start from the eigenvectors of AᵀA is accurate"
                 << (condition > most_condition_balanced ? "." : " where rows or columns differ in scale.");
        return sentence.str();
    }
    start.v = eigenvectors(std::move(t), [&](int rank) { return wanted(rank, true); }, comm, threads);
    start.x = product(a, start.v, comm, threads);
    return "";
}

/// Whether each diagonal element of R is not much less than what is left of any later column, as pivoting
/// would have it: then the rows of R are as well-conditioned, up to their scales, as after pivoting.
template <class T> bool reveals_rank(const SpreadColumnsOf<T>& r, const ColumnComm& comm) {
    constexpr double least = 0.03;
    const std::int64_t n = r.count();
    // At [i], over columns from i on, of their norm below row i; then the diagonal.
    std::vector<double> largest(static_cast<std::size_t>(2 * n));
    for (std::int64_t place = 0, c = 0; place < n; ++place) {
        if (r.owners[static_cast<std::size_t>(place)] != comm.rank()) {
            continue;
        }
        const T* column = r.mine.column(c++);
        largest[static_cast<std::size_t>(n + place)] = std::abs(column[place]);
        tell<T>({10 * static_cast<double>(place), static_cast<double>(place)});
        double left = 0;
        for (std::int64_t i = place; i >= 0; --i) {
            left = std::hypot(left, std::abs(column[i]));
            double& here = largest[static_cast<std::size_t>(i)];
            here = std::max(here, left);
        }
    }
    comm.largest(largest);
    for (std::size_t i = 0; i < static_cast<std::size_t>(n); ++i) {
        if (largest[static_cast<std::size_t>(n) + i] < least * largest[i]) {
            return false;
        }
    }
    return true;
}

/// Rows by their largest magnitude, descending; empty where all are of similar scale. O(rows·columns).
template <class T> std::vector<int> order_of_rows(const ColumnsOf<T>& a, const ColumnComm& comm, int threads) {
    const std::vector<double> largest = largest_of_rows(a, comm, threads);
    const auto [least, most] = std::minmax_element(largest.begin(), largest.end());
    std::vector<int> order;
    if (*most > most_condition * *least) {
        order.resize(largest.size());
        std::iota(order.begin(), order.end(), 0);
        std::stable_sort(order.begin(), order.end(), [&](int i, int j) {
            return largest[static_cast<std::size_t>(i)] > largest[static_cast<std::size_t>(j)];
        });
    }
    return order;
}

/// A·P = Q1·R, R = L·Q2, into `start`. Columns sorted by norm need no pivoting where their scales differ much,
/// which is three times as fast.
template <class T>
void qr_start(const SpreadColumnsOf<T>& a, Buffer memory, SweepStartOf<T>& start, const ColumnsOfRank& wanted,
              const ColumnComm& comm, int threads) {
    FactorsOf<T>& f = start.factors;
    const std::int64_t count = a.count(), first = first_place(a, comm);
    f.row_order = order_of_rows(a.mine, comm, threads);
    std::vector<double> norms(static_cast<std::size_t>(count));
    tell<T>({2 * static_cast<double>(a.mine.rows * a.mine.count), static_cast<double>(a.mine.rows * a.mine.count)});
    parallel_ranges(threads, a.mine.count, [&](std::int64_t begin, std::int64_t end, int) {
        for (std::int64_t c = begin; c < end; ++c) {
            norms[static_cast<std::size_t>(first + c)] = norm_of(a.mine.column(c), a.mine.rows) / f.scale;
        }
    });
    comm.largest(norms);
    const auto [least, most] = std::minmax_element(norms.begin(), norms.end());
    bool sorted = *least > 0 && *most > most_condition * *least;
    if (sorted) {
        f.permutation.resize(static_cast<std::size_t>(count));
        std::iota(f.permutation.begin(), f.permutation.end(), 0);
        std::stable_sort(f.permutation.begin(), f.permutation.end(), [&](int i, int j) {
            return norms[static_cast<std::size_t>(i)] > norms[static_cast<std::size_t>(j)];
        });
        std::vector<int> owners;
        std::vector<std::int64_t> order;  // of this rank's columns
        for (const int column : f.permutation) {
            owners.push_back(a.owners[static_cast<std::size_t>(column)]);
            if (owners.back() == comm.rank()) {
                order.push_back(column - first);
            }
        }
        f.memory1 = scaled_copy(a.mine, f.scale, order, f.row_order, threads);
        f.q1 = column_qr(SpreadColumnsOf<T>{f.memory1.columns(), std::move(owners)}, comm, threads);
        sorted = reveals_rank(f.q1.columns, comm);
    }
    if (!sorted) {
        f.memory1 = {};
        f.memory1 = scaled_copy(a.mine, f.scale, {}, f.row_order, threads);
        f.q1 = pivoted_column_qr(SpreadColumnsOf<T>{f.memory1.columns(), a.owners}, f.permutation, comm, threads);
    }
    memory = Buffer();
    const grid::Partition rows(count, comm.size());
    f.memory2 = transposed_triangle(f.q1, [&](int rank) { return rows[rank]; }, comm, threads);
    f.q2 = column_qr(SpreadColumnsOf<T>{f.memory2.columns(), owners_of(rows)}, comm, threads);
    start.x = transposed_triangle(f.q2, [&](int rank) { return wanted(rank, false); }, comm, threads);
    start.steps = std::string(f.row_order.empty() ? "" : "rows sorted by magnitude, ") +
                  (sorted ? "QR of columns sorted by norm, LQ" : "column-pivoted QR, LQ");
}

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

template <class T>
SweepStartOf<T> start_sweeps(const SpreadColumnsOf<T>& a, Buffer memory, EigenStart eigen, bool want_v,
                             const ColumnsOfRank& wanted, const ColumnComm& comm, int threads) {
    SweepStartOf<T> start;
    start.factors.rows = a.mine.rows;
    start.factors.columns = a.count();
    if (a.count() == 0) {
        start.steps = "nothing";
        return start;
    }
    const double largest = largest_element_of(as_reals(a.mine), comm, threads);
    if (largest > 0 && (largest < least_element || largest > largest_element)) {
        start.factors.scale = std::ldexp(1.0, std::ilogb(largest));
    }
    if (eigen != EigenStart::none) {
        const bool copied = start.factors.scale != 1;
        const MatrixOf<T> copy = copied ? scaled_copy(a.mine, start.factors.scale, {}, {}, threads) : MatrixOf<T>();
        start.fallback = largest > 0 ? eigen_start(SpreadColumnsOf<T>{copied ? copy.columns() : a.mine, a.owners},
                                                   eigen == EigenStart::shared, start, wanted, comm, threads)
                                     : "The matrix is zero, so there is nothing to start from.";
        start.eigen = start.fallback.empty();
    }
    if (start.eigen) {
        start.steps = "eigenvectors of AᵀA";
        if (!want_v) {
            start.v = {};
        }
        return start;
    }
    qr_start(a, std::move(memory), start, wanted, comm, threads);
    return start;
}

template <class T> void finish_columns(const FactorsOf<T>& factors, ColumnsOf<T> x, bool with_u, ColumnsOf<T> u,
                                       double* sigma, const ColumnComm& comm, int threads) {
    const auto numbers = static_cast<double>(x.rows * x.count);
    tell<T>({(with_u ? 3 : 2) * numbers, (with_u ? 3 : 1) * numbers});
    parallel_ranges(x.count > 8 ? threads : 1, x.count, [&](std::int64_t begin, std::int64_t end, int) {
        for (std::int64_t c = begin; c < end; ++c) {
            const T* column = x.column(c);
            const double norm = norm_of(column, x.rows);
            const bool zero = norm < least_norm;
            sigma[c] = zero ? 0 : norm * factors.scale;
            if (with_u) {
                T* to = u.column(c);
                const double inverse = zero ? 0 : 1 / norm;
                std::transform(column, column + x.rows, to, [&](const T& value) { return value * inverse; });
                std::fill(to + x.rows, to + u.rows, T{});
            }
        }
    });
    if (factors.reflects() && with_u) {
        apply_q(factors.q1, u, comm, threads);
        put_rows_back(factors.row_order, u, threads);
    }
}

template <class T> void turn_back(const FactorsOf<T>& factors, ColumnsOf<T> v, const ColumnComm& comm, int threads) {
    if (factors.reflects()) {
        apply_q(factors.q2, v, comm, threads);
        put_rows_back(factors.permutation, v, threads);
    }
}

template <class T> void complete(const SpreadColumnsOf<T>& u, std::int64_t from, const ColumnComm& comm, int threads) {
    const std::int64_t before = u.of_rank(comm.rank(), 0, from), rows = u.mine.rows;
    // The last columns of the Q of the first ones: orthonormal, and orthogonal to them.
    const MatrixOf<T> first(rows, before);
    for (std::int64_t c = 0; c < before; ++c) {
        std::copy_n(u.mine.column(c), rows, first.column(c));
    }
    const ColumnsOf<T> rest = u.mine.part(before, u.mine.count - before);
    std::int64_t c = 0;
    for (std::int64_t place = from; place < u.count(); ++place) {
        if (u.owners[static_cast<std::size_t>(place)] == comm.rank()) {
            std::fill_n(rest.column(c), rows, T{});
            rest.column(c++)[place] = 1.0;
        }
    }
    const ColumnQrOf<T> q =
        column_qr(SpreadColumnsOf<T>{first.columns(), {u.owners.begin(), u.owners.begin() + from}}, comm, threads);
    apply_q(q, rest, comm, threads);
}

TILEWISE_JACOBI_ENDS(, double)
TILEWISE_JACOBI_ENDS(, Complex)

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
