// What the tests of decompositions share: matrices with known singular values, files that rank 0 makes, and what is
// measured of a result.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstring>
#include <doctest/doctest.h>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "io_cases.hpp"
#include "tilewise/kernel/factor/gesdd.hpp"
#include "tilewise/svd/jacobi.hpp"
#include "tilewise/svd/svd.hpp"

namespace tilewise::test {

/// Row by row.
struct Dense {
    std::int64_t rows = 0, columns = 0;
    std::vector<double> values;

    Dense() = default;
    Dense(std::int64_t r, std::int64_t c) : rows(r), columns(c), values(static_cast<std::size_t>(r * c)) {}
    double& operator()(std::int64_t i, std::int64_t j) { return values[static_cast<std::size_t>(i * columns + j)]; }
    double operator()(std::int64_t i, std::int64_t j) const {
        return values[static_cast<std::size_t>(i * columns + j)];
    }
};

inline Dense normal(std::int64_t rows, std::int64_t columns, unsigned seed = 1) {
    std::mt19937_64 random(seed);
    std::normal_distribution<double> next;
    Dense a(rows, columns);
    std::generate(a.values.begin(), a.values.end(), [&] { return next(random); });
    return a;
}

inline Dense product(const Dense& a, const Dense& b) {
    Dense c(a.rows, b.columns);
    for (std::int64_t i = 0; i < a.rows; ++i) {
        for (std::int64_t k = 0; k < a.columns; ++k) {
            for (std::int64_t j = 0; j < b.columns; ++j) {
                c(i, j) += a(i, k) * b(k, j);
            }
        }
    }
    return c;
}

inline Dense transposed(const Dense& a) {
    Dense t(a.columns, a.rows);
    for (std::int64_t i = 0; i < a.rows; ++i) {
        for (std::int64_t j = 0; j < a.columns; ++j) {
            t(j, i) = a(i, j);
        }
    }
    return t;
}

/// Orthonormal columns, by Gram and Schmidt, twice.
inline Dense orthonormal(std::int64_t rows, std::int64_t columns, unsigned seed) {
    Dense q = normal(rows, columns, seed);
    for (std::int64_t j = 0; j < columns; ++j) {
        for (int time = 0; time < 2; ++time) {
            for (std::int64_t k = 0; k < j; ++k) {
                double dot = 0;
                for (std::int64_t i = 0; i < rows; ++i) {
                    dot += q(i, k) * q(i, j);
                }
                for (std::int64_t i = 0; i < rows; ++i) {
                    q(i, j) -= dot * q(i, k);
                }
            }
        }
        double square = 0;
        for (std::int64_t i = 0; i < rows; ++i) {
            square += q(i, j) * q(i, j);
        }
        for (std::int64_t i = 0; i < rows; ++i) {
            q(i, j) /= std::sqrt(square);
        }
    }
    return q;
}

/// With those singular values; rows ≥ columns.
inline Dense with_values(std::int64_t rows, const std::vector<double>& s, unsigned seed = 3) {
    const auto n = static_cast<std::int64_t>(s.size());
    Dense left = orthonormal(rows, n, seed);
    for (std::int64_t i = 0; i < rows; ++i) {
        for (std::int64_t j = 0; j < n; ++j) {
            left(i, j) *= s[static_cast<std::size_t>(j)];
        }
    }
    return product(left, orthonormal(n, n, seed + 1));
}

/// By LAPACK.
inline std::vector<double> values_of(const Dense& a) {
    std::vector<double> work = a.values, s(static_cast<std::size_t>(std::min(a.rows, a.columns)));
    kernel::gesdd(a.columns, a.rows, work.data(), a.columns, s.data(), nullptr, nullptr, 1);
    return s;
}

inline double norm_of(const Dense& a) {
    double square = 0;
    for (const double value : a.values) {
        square += value * value;
    }
    return std::sqrt(square);
}

struct Decomposed {
    Dense u, vt;
    std::vector<double> s;
    svd::Outcome outcome;
    Counters counted;

    /// ‖A − U·diag(s)·Vᵀ‖ over ‖A‖, in the norm of Frobenius.
    double residual(const Dense& a) const {
        Dense us = u;
        for (std::int64_t i = 0; i < us.rows; ++i) {
            for (std::int64_t j = 0; j < us.columns; ++j) {
                us(i, j) *= s[static_cast<std::size_t>(j)];
            }
        }
        Dense left = product(us, vt);
        for (std::size_t i = 0; i < left.values.size(); ++i) {
            left.values[i] -= a.values[i];
        }
        const double all = norm_of(a);
        return all > 0 ? norm_of(left) / all : norm_of(left);
    }
};

/// The largest element of I − QᵀQ.
inline double defect(const Dense& q) {
    const Dense gram = product(transposed(q), q);
    double most = 0;
    for (std::int64_t i = 0; i < gram.rows; ++i) {
        for (std::int64_t j = 0; j < gram.columns; ++j) {
            most = std::max(most, std::abs(gram(i, j) - (i == j ? 1 : 0)));
        }
    }
    return most;
}

/// A file of numbers of `dtype`, row by row or column by column, that rank 0 makes.
class MatrixFile {
public:
    MatrixFile(const mpi::Communicator& comm, const std::string& name, std::int64_t rows, std::int64_t columns,
               Dtype dtype)
        : scratch_(comm, "." + name + std::to_string(comm.size())) {
        region_ = test::region(scratch_.path, rows, columns, 0);
        region_.name = name;
        region_.dtype = dtype;
        region_.file_bytes = region_.bytes();
    }

    io::Region& region() { return region_; }

    void put(const Dense& a, bool by_columns = false) {
        region_.column_major = by_columns;
        const Dense stored = by_columns ? transposed(a) : a;
        if (scratch_.comm.rank() == 0) {
            std::ofstream out(region_.path, std::ios::binary);
            for (const double value : stored.values) {
                const auto narrow = static_cast<float>(value);
                if (region_.dtype == Dtype::float32) {
                    out.write(reinterpret_cast<const char*>(&narrow), sizeof narrow);
                } else {
                    out.write(reinterpret_cast<const char*>(&value), sizeof value);
                }
            }
        }
        scratch_.comm.barrier();
    }

    Dense get() const {
        scratch_.comm.barrier();
        Dense a(region_.rows, region_.columns);
        std::ifstream in(region_.path, std::ios::binary);
        for (double& value : a.values) {
            float narrow = 0;
            if (region_.dtype == Dtype::float32) {
                in.read(reinterpret_cast<char*>(&narrow), sizeof narrow);
                value = static_cast<double>(narrow);
            } else {
                in.read(reinterpret_cast<char*>(&value), sizeof value);
            }
        }
        return a;
    }

private:
    Scratch scratch_;
    io::Region region_;
};

/// Every rank gets what stands in the files.
inline Decomposed decomposed(const mpi::Communicator& comm, const Dense& a, const svd::Options& options,
                             bool by_columns = false, int threads = 1, Dtype dtype = Dtype::float64) {
    const std::int64_t k = options.components > 0 ? options.components : std::min(a.rows, a.columns);
    MatrixFile from(comm, "a", a.rows, a.columns, dtype), u(comm, "u", a.rows, k, dtype), s(comm, "s", 1, k, dtype),
        vt(comm, "vt", k, a.columns, dtype);
    from.put(a, by_columns);
    u.put(Dense(a.rows, k));
    s.put(Dense(1, k));
    vt.put(Dense(k, a.columns));
    svd::Files files{.u = u.region(), .s = s.region(), .vt = vt.region(), .us = {}};
    if (options.values_only) {
        files.u.reset();
        files.vt.reset();
    }
    Ledger ledger;
    Context context{comm, ledger, threads};
    ledger.start(Phase::input);
    Decomposed result;
    result.outcome = svd::decompose(context, from.region(), files, dtype, options);
    ledger.stop();
    result.counted = ledger.count();
    result.u = u.get();
    result.s = s.get().values;
    result.vt = vt.get();
    return result;
}

inline constexpr double fine = 1e-13;

inline std::vector<std::string> exchanges(int ranks) {
    if (ranks == 1) {
        return {"none"};
    }
    return {"blocking", "nonblocking", "overlap", "one_sided_lock"};
}

inline svd::Options options_for(const mpi::Communicator& comm, const std::string& exchange = "") {
    svd::Options options;
    options.exchange = svd::exchange_named(exchange.empty() ? exchanges(comm.size()).front() : exchange);
    return options;
}

/// What every decomposition must be, whatever it is of.
inline void check_all(const Dense& a, const Decomposed& got, const std::vector<double>& wanted) {
    CHECK(got.outcome.diagnostics.converged);
    CHECK(got.residual(a) <= fine);
    CHECK(defect(got.u) <= fine);
    CHECK(defect(transposed(got.vt)) <= fine);
    REQUIRE(got.s.size() == wanted.size());
    for (std::size_t i = 0; i < wanted.size(); ++i) {
        CHECK(std::abs(got.s[i] - wanted[i]) <= fine * std::max(wanted[0], 1e-300));
        CHECK((i == 0 || got.s[i] <= got.s[i - 1]));
        CHECK(got.s[i] >= 0);
    }
    for (std::int64_t j = 0; j < got.u.columns; ++j) {
        double most = 0, first = 0;
        for (std::int64_t i = 0; i < got.u.rows; ++i) {
            most = std::max(most, std::abs(got.u(i, j)));
        }
        for (std::int64_t i = 0; i < got.u.rows && first == 0; ++i) {
            first = std::abs(got.u(i, j)) >= (1 - 1e-6) * most ? got.u(i, j) : 0;
        }
        CHECK(first > 0);
    }
}

struct Named {
    const char* name;
    Dense matrix;
};

inline std::vector<Named> shapes() {
    return {{"square", normal(24, 24)},
            {"a few rows more", normal(31, 24)},
            {"tall", normal(97, 13)},
            {"wide", normal(11, 83)},
            {"a few columns more", normal(17, 23)},
            {"fewer columns than ranks", normal(9, 3)},
            {"two rows", normal(2, 9)},
            {"one column", normal(7, 1)},
            {"one row", normal(1, 5)},
            {"fewer rows than ranks", normal(3, 1)},
            {"two numbers", normal(1, 2)},
            {"one number", normal(1, 1)},
            {"prime", normal(37, 37)},
            {"zero", Dense(9, 6)},
            {"zero and square", Dense(5, 5)},
            {"rank 3 of 12", product(normal(20, 3), normal(3, 12, 2))},
            {"tall of rank 2", product(normal(64, 2), normal(2, 10, 2))},
            {"with columns of zeros",
             product(normal(16, 16), with_values(16, {1, 1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}))},
            {"repeated", with_values(30, {5, 5, 5, 5, 2, 2, 2, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1})},
            {"identity", with_values(16, std::vector<double>(16, 1.0))}};
}

}  // namespace tilewise::test
