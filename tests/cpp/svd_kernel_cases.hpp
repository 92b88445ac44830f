// Matrices that are hard to decompose, and what a decomposition of them must fulfil.
#pragma once

#include <algorithm>
#include <cmath>
#include <doctest/doctest.h>
#include <numeric>
#include <string>
#include <vector>

#include "tilewise/base/random.hpp"
#include "tilewise/kernel/factor/gesdd.hpp"
#include "tilewise/kernel/factor/jacobi.hpp"
#include "tilewise/kernel/factor/lapack.hpp"

namespace svd_cases {

using namespace tilewise;
using namespace tilewise::kernel;

inline Matrix normal_matrix(std::int64_t rows, std::int64_t count, std::uint64_t seed = 1) {
    Matrix a(rows, count);
    for (std::int64_t r = 0; r < rows; ++r) {
        const std::uint64_t key = row_key(seed, static_cast<std::uint64_t>(r));
        for (std::int64_t c = 0; c < count; ++c) {
            a.column(c)[r] = normal(random_bits(key, static_cast<std::uint64_t>(c)));
        }
    }
    return a;
}

inline Matrix copy_of(const Matrix& m) {
    Matrix copy(m.rows, m.count);
    std::copy_n(m.data(), m.stride * m.count, copy.data());
    return copy;
}

template <class Scale> Matrix scaled_columns(Matrix m, const Scale& scale) {
    for (std::int64_t c = 0; c < m.count; ++c) {
        std::transform(m.column(c), m.column(c) + m.rows, m.column(c), [&](double x) { return x * scale(c); });
    }
    return m;
}

inline Matrix identity(std::int64_t count) {
    Matrix m(count, count);
    for (std::int64_t c = 0; c < count; ++c) {
        m.column(c)[c] = 1;
    }
    return m;
}

/// max |MᵀM − I|.
inline double orthogonality(const Columns& m) {
    double worst = 0;
    for (std::int64_t i = 0; i < m.count; ++i) {
        for (std::int64_t j = 0; j <= i; ++j) {
            double sum = i == j ? -1 : 0;
            for (std::int64_t r = 0; r < m.rows; ++r) {
                sum += m.column(i)[r] * m.column(j)[r];
            }
            worst = std::max(worst, std::abs(sum));
        }
    }
    return worst;
}

/// The largest cosine of two columns.
inline double largest_cosine(const Matrix& m) {
    return orthogonality(scaled_columns(copy_of(m), [&](std::int64_t c) {
                             const double norm = norm_of(m.column(c), m.rows);
                             return norm > 0 ? 1 / norm : 0;
                         }).columns());
}

/// ‖A − B·diag(scale)·Cᵀ‖_F / ‖A‖_F.
template <class Scale> double residual(const Matrix& a, const Matrix& b, const Scale& scale, const Matrix& c) {
    double rest = 0, all = 0;
    for (std::int64_t j = 0; j < a.count; ++j) {
        for (std::int64_t i = 0; i < a.rows; ++i) {
            double sum = a.column(j)[i];
            all += sum * sum;
            for (std::int64_t k = 0; k < b.count; ++k) {
                sum -= b.column(k)[i] * scale(k) * c.column(k)[j];
            }
            rest += sum * sum;
        }
    }
    return all > 0 ? std::sqrt(rest / all) : std::sqrt(rest);
}

inline std::vector<double> lapack_values(const Matrix& a) {
    Matrix copy = copy_of(a);
    std::vector<double> sigma(static_cast<std::size_t>(std::min(a.rows, a.count)));
    gesdd(a.rows, a.count, copy.data(), copy.stride, sigma.data(), nullptr, nullptr, 1);
    return sigma;
}

/// Singular values to their last digits, where A = B·D with B well-conditioned and D diagonal: LAPACK's Jacobi.
inline std::vector<double> gejsv_values(const Matrix& a) {
    Matrix copy = copy_of(a);
    const int m = lapack_int(a.rows), n = lapack_int(a.count), lda = lapack_int(copy.stride), one = 1,
              reals = 2 * m + 4 * n * n + 70 * n + 7;
    std::vector<double> sigma(static_cast<std::size_t>(n)), work(static_cast<std::size_t>(reals));
    std::vector<int> integers(static_cast<std::size_t>(m + 3 * n));
    double none = 0;
    int info = 0;
    TILEWISE_BLAS(dgejsv_)
    ("C", "N", "N", "R", "N", "P", &m, &n, copy.data(), &lda, sigma.data(), &none, &one, &none, &one, work.data(),
     &reals, integers.data(), &info);
    REQUIRE(info == 0);
    for (double& value : sigma) {
        value *= work[0] / work[1];
    }
    return sigma;
}

/// Singular values of a matrix whose columns have any scale, to more digits than a double has: one-sided Jacobi, a
/// rotation after another.
inline std::vector<double> long_values(const Matrix& a) {
    using Real = long double;
    std::vector<std::vector<Real>> columns;
    for (std::int64_t c = 0; c < a.count; ++c) {
        columns.emplace_back(a.column(c), a.column(c) + a.rows);
    }
    const auto dot = [](const std::vector<Real>& p, const std::vector<Real>& q) {
        return std::inner_product(p.begin(), p.end(), q.begin(), Real{0});
    };
    bool rotated = true;
    for (int sweep = 0; rotated && sweep < 40; ++sweep) {
        rotated = false;
        for (std::size_t i = 0; i < columns.size(); ++i) {
            for (std::size_t j = i + 1; j < columns.size(); ++j) {
                std::vector<Real>&p = columns[i], &q = columns[j];
                const Real pp = dot(p, p), qq = dot(q, q), pq = dot(p, q);
                if (std::abs(pq) <= 1e-18L * std::sqrt(pp * qq)) {
                    continue;
                }
                rotated = true;
                const Real zeta = (qq - pp) / (2 * pq),
                           slope = std::copysign(1 / (std::abs(zeta) + std::sqrt(1 + zeta * zeta)), zeta),
                           cosine = 1 / std::sqrt(1 + slope * slope), sine = cosine * slope;
                for (std::size_t r = 0; r < p.size(); ++r) {
                    const Real from = p[r];
                    p[r] = cosine * from - sine * q[r];
                    q[r] = sine * from + cosine * q[r];
                }
            }
        }
    }
    std::vector<double> sigma;
    for (const std::vector<Real>& column : columns) {
        sigma.push_back(static_cast<double>(std::sqrt(dot(column, column))));
    }
    std::sort(sigma.rbegin(), sigma.rend());
    return sigma;
}

inline Matrix transposed(const Matrix& m) {
    Matrix t(m.count, m.rows);
    for (std::int64_t c = 0; c < m.count; ++c) {
        for (std::int64_t r = 0; r < m.rows; ++r) {
            t.column(r)[c] = m.column(c)[r];
        }
    }
    return t;
}

struct Case {
    std::string name;
    Matrix a;
};

inline std::vector<Case> hard_cases() {
    std::vector<Case> cases;
    cases.push_back({"one element", normal_matrix(1, 1)});
    cases.push_back({"one column", normal_matrix(9, 1)});
    cases.push_back({"two columns", normal_matrix(2, 2)});
    cases.push_back({"square", normal_matrix(150, 150)});
    cases.push_back({"tall", normal_matrix(400, 37)});
    cases.push_back({"wider than a narrow pair", normal_matrix(210, 201)});
    cases.push_back({"zero", Matrix(20, 13)});
    cases.push_back({"zero columns",
                     scaled_columns(normal_matrix(140, 140), [](std::int64_t c) { return c % 3 == 0 ? 0.0 : 1.0; })});
    cases.push_back({"identity", identity(150)});
    cases.push_back({"graded", scaled_columns(normal_matrix(150, 150), [](std::int64_t c) {
                         return std::pow(10.0, -20.0 * static_cast<double>(c * 7919 % 150) / 150);
                     })});
    cases.push_back({"equal columns", scaled_columns(Matrix(60, 50), [](std::int64_t) { return 1.0; })});
    for (std::int64_t c = 0; c < 50; ++c) {
        std::fill_n(cases.back().a.column(c), 60, static_cast<double>(c % 5 + 1));
    }
    Matrix deficient = normal_matrix(150, 140);
    for (std::int64_t c = 70; c < 140; ++c) {
        for (std::int64_t r = 0; r < 150; ++r) {
            deficient.column(c)[r] = deficient.column(c - 70)[r] - 2 * deficient.column((c + 13) % 70)[r];
        }
    }
    cases.push_back({"deficient", std::move(deficient)});
    // Reflection I − 2·w·wᵀ/(wᵀw), half of its columns times 1/1000: singular values 1 and 0.001, each 70 times.
    const Matrix w = normal_matrix(140, 1, 5);
    const double square = std::pow(norm_of(w.data(), 140), 2);
    Matrix repeated = identity(140);
    for (std::int64_t c = 0; c < 140; ++c) {
        for (std::int64_t r = 0; r < 140; ++r) {
            repeated.column(c)[r] -= 2 * w.data()[r] * w.data()[c] / square;
        }
    }
    cases.push_back(
        {"repeated", scaled_columns(std::move(repeated), [](std::int64_t c) { return c % 2 == 0 ? 1.0 : 1e-3; })});
    return cases;
}

}  // namespace svd_cases
