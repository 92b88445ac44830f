// The eigen start, or column-pivoted QR and LQ where the matrix is too ill-conditioned for it.
#include "tilewise/kernel/svd_start.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <sstream>
#include <string>

#include "tilewise/base/threads.hpp"
#include "tilewise/kernel/jacobi_pair.hpp"
#include "tilewise/kernel/lapack.hpp"
#include "tilewise/kernel/svd_reflectors.hpp"

namespace tilewise::kernel {
namespace {

// The eigen start errs in σ relatively by ε times the condition number of A, at worst; where columns are of similar norm, and rows as well, no
// algorithm does better, as A's own rounding has that effect. With columns or rows of different scale the others do better: up to a condition number
// of 1000 the loss is beyond the twelfth digit.
constexpr double most_condition = 1e3, most_condition_balanced = 1e6, balanced_norms = 10;

// Elements between these limits neither overflow nor vanish in a Gram matrix; else A is scaled first.
constexpr double least_element = 1e-60, largest_element = 1e60;

// The work space of LAPACK's eigenvectors has 2·columns² elements, counted in 32 bits.
constexpr std::int64_t most_columns = 30000;

double largest_element_of(const Columns& a, int threads) {
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
    return *std::max_element(largest.begin(), largest.end());
}

/// A copy of A divided by a power of two; where orders are given, its element (i, j) is element (row_order[i], permutation[j]) of A.
Matrix scaled_copy(const Columns& a, double scale, const std::vector<int>& permutation,
                   const std::vector<int>& row_order, int threads) {
    Matrix copy(a.rows, a.count);
    const int exponent = std::ilogb(scale);
    parallel_ranges(threads, a.count, [&](std::int64_t begin, std::int64_t end, int) {
        for (std::int64_t c = begin; c < end; ++c) {
            const double* from = a.column(permutation.empty() ? c : permutation[static_cast<std::size_t>(c)]);
            if (!row_order.empty()) {
                std::transform(row_order.begin(), row_order.end(), copy.column(c),
                               [&](int row) { return scale == 1 ? from[row] : std::ldexp(from[row], -exponent); });
            } else if (scale == 1) {
                std::copy_n(from, a.rows, copy.column(c));
            } else {
                std::transform(from, from + a.rows, copy.column(c),
                               [&](double value) { return std::ldexp(value, -exponent); });
            }
        }
    });
    return copy;
}

void reverse_columns(const Matrix& m, int threads) {
    parallel_ranges(threads, m.count / 2, [&](std::int64_t begin, std::int64_t end, int) {
        for (std::int64_t c = begin; c < end; ++c) {
            std::swap_ranges(m.column(c), m.column(c) + m.rows, m.column(m.count - 1 - c));
        }
    });
}

/// The largest magnitude in each row. O(rows·columns).
std::vector<double> largest_of_rows(const Columns& a, int threads) {
    std::vector<double> largest(static_cast<std::size_t>(a.rows));
    parallel_ranges(threads, a.rows, [&](std::int64_t begin, std::int64_t end, int) {
        for (std::int64_t c = 0; c < a.count; ++c) {
            for (std::int64_t i = begin; i < end; ++i) {
                double& here = largest[static_cast<std::size_t>(i)];
                here = std::max(here, std::abs(a.column(c)[i]));
            }
        }
    });
    return largest;
}

/// Whether rows that are not zero have largest magnitudes of similar size.
bool has_balanced_rows(const Columns& a, int threads) {
    double least = std::numeric_limits<double>::infinity(), most = 0;
    for (const double value : largest_of_rows(a, threads)) {
        least = value > 0 ? std::min(least, value) : least;
        most = std::max(most, value);
    }
    return most <= balanced_norms * least;
}

/// Fills x and v of `start`; or returns why not, as a sentence.
std::string eigen_start(const Columns& a, SweepStart& start, int threads) {
    const std::int64_t count = a.count;
    if (count > most_columns) {
        return "LAPACK's eigenvectors are counted in 32 bits, which is enough for " + std::to_string(most_columns) +
               " columns only.";
    }
    Matrix g(count, count);
    const double one = 1, zero = 0;
    const int n = lapack_int(count), m = lapack_int(a.rows), lda = lapack_int(std::max(a.stride, a.rows)),
              ldg = lapack_int(g.stride);
    const BlasThreads blas(threads);
    TILEWISE_BLAS(dsyrk_)("U", "T", &n, &m, &one, a.data, &lda, &zero, g.data(), &ldg);
    double least = g.data()[0], most = least;
    for (std::int64_t c = 0; c < count; ++c) {
        least = std::min(least, g.column(c)[c]);
        most = std::max(most, g.column(c)[c]);
    }
    if (!(least > 0) || std::sqrt(most / least) > most_condition) {
        std::ostringstream sentence;
        sentence.precision(2);
        sentence << "The columns' norms range from " << std::sqrt(least) << " to " << std::sqrt(most)
                 << ", beyond the factor of " << most_condition
                 << " up to which eigenvectors of AᵀA are accurate enough to start from.";
        return sentence.str();
    }
    std::vector<double> values(static_cast<std::size_t>(count)), work(1);
    std::vector<int> integers(1);
    int query = -1, info = 0;
    TILEWISE_BLAS(dsyevd_)
    ("V", "U", &n, g.data(), &ldg, values.data(), work.data(), &query, integers.data(), &query, &info);
    const int reals = lapack_int(static_cast<std::int64_t>(work[0])), ints = integers[0];
    Buffer space(static_cast<std::size_t>(reals) * sizeof(double));
    integers.resize(static_cast<std::size_t>(ints));
    TILEWISE_BLAS(dsyevd_)
    ("V", "U", &n, g.data(), &ldg, values.data(), space.data(), &reals, integers.data(), &ints, &info);
    check_lapack(info, "syevd");
    space = Buffer();
    const double condition =
        values.front() > 0 ? std::sqrt(values.back() / values.front()) : std::numeric_limits<double>::infinity();
    const bool balanced = condition > most_condition && condition <= most_condition_balanced &&
                          std::sqrt(most / least) <= balanced_norms && has_balanced_rows(a, threads);
    if (condition > most_condition && !balanced) {
        const double allowed = condition > most_condition_balanced ? most_condition_balanced : most_condition;
        std::ostringstream sentence;
        sentence.precision(2);
        sentence << "The condition number is beyond " << allowed
                 << ", up to which eigenvectors of AᵀA are accurate enough to start from"
                 << (condition > most_condition_balanced ? "." : " where rows or columns differ in scale.");
        return sentence.str();
    }
    reverse_columns(g, threads);
    Matrix x(a.rows, count);
    const int ldx = lapack_int(x.stride);
    TILEWISE_BLAS(dgemm_)
    ("N", "N", &m, &n, &n, &one, a.data, &lda, g.data(), &ldg, &zero, x.data(), &ldx);
    start.x = std::move(x);
    start.v = std::move(g);
    return "";
}

/// Whether each diagonal element of R is not much less than what is left of any later column, as pivoting would have it: then the rows of R
/// are as well-conditioned, up to their scales, as after pivoting.
bool reveals_rank(const Columns& r) {
    constexpr double least = 0.03;
    std::vector<double> largest(
        static_cast<std::size_t>(r.count));  // at [i], over columns from i on, of their norm below row i
    for (std::int64_t c = 0; c < r.count; ++c) {
        double left = 0;
        for (std::int64_t i = c; i >= 0; --i) {
            left = std::hypot(left, r.column(c)[i]);
            double& here = largest[static_cast<std::size_t>(i)];
            here = std::max(here, left);
        }
    }
    for (std::int64_t i = 0; i < r.count; ++i) {
        if (std::abs(r.column(i)[i]) < least * largest[static_cast<std::size_t>(i)]) {
            return false;
        }
    }
    return true;
}

/// Rows by their largest magnitude, descending; empty where all are of similar scale. O(rows·columns).
std::vector<int> order_of_rows(const Columns& a, int threads) {
    const std::vector<double> largest = largest_of_rows(a, threads);
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

/// A·P = Q1·R, R = L·Q2, into `start`. Columns sorted by norm need no pivoting where their scales differ much, which is three times as fast.
void qr_start(const Columns& a, SweepStart& start, int threads) {
    Factors& f = start.factors;
    const std::int64_t count = a.count;
    const BlasThreads blas(threads);
    f.row_order = order_of_rows(a, threads);
    std::vector<double> norms(static_cast<std::size_t>(count));
    parallel_ranges(threads, count, [&](std::int64_t begin, std::int64_t end, int) {
        for (std::int64_t c = begin; c < end; ++c) {
            norms[static_cast<std::size_t>(c)] = norm_of(a.column(c), a.rows) / f.scale;
        }
    });
    const auto [least, most] = std::minmax_element(norms.begin(), norms.end());
    bool sorted = *least > 0 && *most > most_condition * *least;
    if (sorted) {
        f.permutation.resize(static_cast<std::size_t>(count));
        std::iota(f.permutation.begin(), f.permutation.end(), 0);
        std::stable_sort(f.permutation.begin(), f.permutation.end(), [&](int i, int j) {
            return norms[static_cast<std::size_t>(i)] > norms[static_cast<std::size_t>(j)];
        });
        f.q1 = scaled_copy(a, f.scale, f.permutation, f.row_order, threads);
        qr(f.q1.columns(), f.tau1);
        sorted = reveals_rank({f.q1.data(), count, count, f.q1.stride});
    }
    if (!sorted) {
        f.q1 = scaled_copy(a, f.scale, {}, f.row_order, threads);
        pivoted_qr(f.q1.columns(), f.permutation, f.tau1);
    }
    f.q2 = Matrix(count, count);
    for (std::int64_t c = 0; c < count; ++c) {
        std::copy_n(f.q1.column(c), c + 1, f.q2.column(c));
    }
    lq(f.q2.columns(), f.tau2);
    start.x = Matrix(count, count);
    for (std::int64_t c = 0; c < count; ++c) {
        std::copy(f.q2.column(c) + c, f.q2.column(c) + count, start.x.column(c) + c);
    }
    start.steps = std::string(f.row_order.empty() ? "" : "rows sorted by magnitude, ") +
                  (sorted ? "QR of columns sorted by norm, LQ" : "column-pivoted QR, LQ");
}

}  // namespace

SweepStart start_sweeps(Columns a, bool eigen, bool want_v, int threads) {
    SweepStart start;
    start.factors.rows = a.rows;
    start.factors.columns = a.count;
    if (a.count == 0) {
        start.steps = "nothing";
        return start;
    }
    const double largest = largest_element_of(a, threads);
    if (largest > 0 && (largest < least_element || largest > largest_element)) {
        start.factors.scale = std::ldexp(1.0, std::ilogb(largest));
    }
    if (eigen) {
        const bool copied = start.factors.scale != 1;
        const Matrix copy = copied ? scaled_copy(a, start.factors.scale, {}, {}, threads) : Matrix();
        start.fallback = largest > 0 ? eigen_start(copied ? copy.columns() : a, start, threads)
                                     : "The matrix is zero, so that there is nothing to start from.";
        start.eigen = start.fallback.empty();
    }
    if (start.eigen) {
        start.steps = "eigenvectors of AᵀA";
        if (!want_v) {
            start.v = {};
        }
        return start;
    }
    qr_start(a, start, threads);
    if (want_v) {
        start.v = Matrix(a.count, a.count);
        for (std::int64_t c = 0; c < a.count; ++c) {
            start.v.column(c)[c] = 1;
        }
    }
    return start;
}

}  // namespace tilewise::kernel
