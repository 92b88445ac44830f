// Rank 0 alone holds everything, and compares with LAPACK.
#include <algorithm>
#include <cmath>

#include "tilewise/kernel/factor/gesdd.hpp"
#include "tilewise/kernel/product/gemm.hpp"
#include "tilewise/mpi/together.hpp"
#include "tilewise/svd/proof.hpp"

namespace tilewise::svd {
namespace {

using Numbers = std::vector<double>;

/// A matrix in memory, row by row.
template <class T> struct Whole {
    std::int64_t rows = 0, columns = 0;
    std::vector<T> numbers;

    kernel::Operand operand(bool transposed = false) const {
        return kernel::operand(numbers.data(), columns, transposed);
    }
    Numbers lengths_of_columns() const {
        Numbers sums(index_of(columns));
        for (std::size_t i = 0; i < numbers.size(); ++i) {
            sums[i % sums.size()] += kernel::square_of(numbers[i]);
        }
        std::transform(sums.begin(), sums.end(), sums.begin(), [](double sum) { return std::sqrt(sum); });
        return sums;
    }
    double norm() const {
        double sum = 0;
        for (const T& value : numbers) {
            sum += kernel::square_of(value);
        }
        return std::sqrt(sum);
    }
};

template <class T>
Whole<T> read_whole(Context& alone, const io::Region& region, io::StrategyKind strategy, const io::Hints& hints) {
    const std::int64_t m = region.logical_rows(), n = region.logical_columns();
    Whole<T> matrix{m, n, std::vector<T>(index_of(m * n))};
    const io::Input input(alone, region, strategy, hints);
    input.load(
        alone, kernel::is_complex_number<T> ? Dtype::complex128 : Dtype::float64,
        [&](int) -> grid::Share { return grid::Block{{0, m}, {0, n}}; },
        reinterpret_cast<std::byte*>(matrix.numbers.data()));
    if (region.stored_transposed()) {
        std::vector<T> by_rows(matrix.numbers.size());
        for (std::int64_t i = 0; i < m; ++i) {
            for (std::int64_t j = 0; j < n; ++j) {
                by_rows[index_of(i * n + j)] = matrix.numbers[index_of(j * m + i)];
            }
        }
        matrix.numbers = std::move(by_rows);
    }
    return matrix;
}

/// Conjugated, into `copy`; a real one is itself.
template <class T> const Whole<T>& conjugated(const Whole<T>& matrix, Whole<T>& copy) {
    if constexpr (kernel::is_complex_number<T>) {
        copy = matrix;
        kernel::conjugate_all(copy.numbers.data(), std::ssize(copy.numbers));
        return copy;
    }
    return matrix;
}

/// C −= A·B, where C is given, else A·B − I.
template <class T>
Whole<T> difference(std::int64_t m, std::int64_t n, std::int64_t k, const kernel::Operand& a, const kernel::Operand& b,
                    const Whole<T>* from, int threads) {
    Whole<T> c{m, n, std::vector<T>(index_of(m * n))};
    kernel::multiply(m, n, k, a, b, c.numbers.data(), false, threads);
    for (std::int64_t i = 0; i < m; ++i) {
        for (std::int64_t j = 0; j < n; ++j) {
            c.numbers[index_of(i * n + j)] -=
                from != nullptr ? from->numbers[index_of(i * n + j)] : T(i == j ? 1.0 : 0.0);
        }
    }
    return c;
}

/// `u` and `vt` are those of Aᵀ·U̅ = V̅·Σ, A·V = U·Σ: `vt` holds Vᴴ.
template <class T>
void measure_vectors(Context& alone, const Whole<T>& a, const Whole<T>& u, const Whole<T>& vt, const Numbers& sigma,
                     bool sampled, Measures& found) {
    const std::int64_t m = a.rows, n = a.columns, count = std::ssize(sigma);
    const double root = std::sqrt(static_cast<double>(count)), norm = a.norm(), scale = norm > 0 ? norm : 1;
    Whole<T> us = u, svt = vt;
    Whole<T> u_copy, v_copy;
    const Whole<T>&u_bar = conjugated(u, u_copy), &v_bar = conjugated(vt, v_copy);
    for (std::int64_t j = 0; j < count; ++j) {
        for (std::int64_t i = 0; i < m; ++i) {
            us.numbers[index_of(i * count + j)] *= sigma[index_of(j)];
        }
        for (std::int64_t i = 0; i < n; ++i) {
            svt.numbers[index_of(j * n + i)] *= sigma[index_of(j)];
        }
    }
    const int threads = alone.threads;
    found.residual = difference<T>(m, n, count, us.operand(), vt.operand(), &a, threads).norm() / scale;
    found.orthogonality_u =
        difference<T>(count, count, m, u_bar.operand(true), u.operand(), nullptr, threads).norm() / root;
    found.orthogonality_v =
        difference<T>(count, count, n, vt.operand(), v_bar.operand(true), nullptr, threads).norm() / root;
    const auto by_left = [&] {
        Whole<T> vs{n, count, std::vector<T>(svt.numbers.size())};
        for (std::int64_t i = 0; i < n; ++i) {
            for (std::int64_t j = 0; j < count; ++j) {
                vs.numbers[index_of(i * count + j)] = svt.numbers[index_of(j * n + i)];
            }
        }
        return difference<T>(n, count, m, a.operand(true), u_bar.operand(), &vs, threads);
    };
    const auto by_right = [&] { return difference<T>(m, count, n, a.operand(), v_bar.operand(true), &us, threads); };
    if (!sampled) {
        found.pairs = (m < n ? by_left() : by_right()).norm() / scale / root;
        return;
    }
    // One of both holds by construction, which depends on how the file is read; the other says how exact the vectors
    // are.
    const Whole<T> left = by_left(), right = by_right();
    const bool left_is_exact = left.norm() < right.norm();
    found.pairs = (left_is_exact ? left : right).norm() / scale / root;
    found.residuals = (left_is_exact ? right : left).lengths_of_columns();
}

template <class T>
Measures measure(Context& alone, const io::Region& a, const Files& files, const Options& options) {
    Measures found;
    found.sigma = read_sigma(alone, files.s);
    constexpr auto positioned = io::StrategyKind::positioned;
    const auto strategy = a.tiles.empty() ? positioned : io::StrategyKind::per_rank;
    Whole<T> matrix = read_whole<T>(alone, a, strategy, options.hints);
    const double factor = safe_factor(found.sigma, Dtype::float64);
    for (T& value : matrix.numbers) {
        value *= factor;
    }
    if (files.u && files.vt) {
        Numbers sigma = found.sigma;
        for (double& value : sigma) {
            value *= factor;
        }
        measure_vectors<T>(alone, matrix, read_whole<T>(alone, *files.u, positioned, {}),
                           read_whole<T>(alone, *files.vt, positioned, {}), sigma,
                           options.algorithm == AlgorithmKind::randomized, found);
        found.norm = matrix.norm() / factor;
        for (double& residual : found.residuals) {
            residual /= factor;
        }
    }
    const std::int64_t least = std::min(matrix.rows, matrix.columns);
    found.expected.emplace(index_of(least));
    kernel::gesdd(matrix.columns, matrix.rows, matrix.numbers.data(), std::max<std::int64_t>(1, matrix.columns),
                  found.expected->data(), nullptr, nullptr, alone.threads);
    for (double& value : *found.expected) {
        value /= factor;
    }
    return found;
}

}  // namespace

Measures measure_exactly(Context& context, const io::Region& a, const Files& files, const Options& options) {
    Measures found;
    const mpi::Communicator self(MPI_COMM_SELF);
    mpi::together(context.comm, [&] {
        if (context.comm.rank() == 0) {
            Context alone{self, context.ledger, context.threads};
            found = is_complex(a.dtype) ? measure<kernel::Complex>(alone, a, files, options)
                                        : measure<double>(alone, a, files, options);
        }
    });
    return found;
}

}  // namespace tilewise::svd
