// Rank 0 alone holds everything, and compares with LAPACK.
#include <algorithm>
#include <cmath>

#include "tilewise/kernel/product.hpp"
#include "tilewise/kernel/svd_local.hpp"
#include "tilewise/mpi/together.hpp"
#include "tilewise/svd/proof_measures.hpp"

namespace tilewise::svd {
namespace {

using Numbers = std::vector<double>;

std::size_t index_of(std::int64_t value) { return static_cast<std::size_t>(value); }

/// A matrix in memory, row by row.
struct Whole {
    std::int64_t rows = 0, columns = 0;
    Numbers numbers;

    kernel::Operand operand(bool transposed = false) const {
        return kernel::operand(numbers.data(), columns, transposed);
    }
    Numbers lengths_of_columns() const {
        Numbers sums(index_of(columns));
        for (std::size_t i = 0; i < numbers.size(); ++i) {
            sums[i % sums.size()] += numbers[i] * numbers[i];
        }
        std::transform(sums.begin(), sums.end(), sums.begin(), [](double sum) { return std::sqrt(sum); });
        return sums;
    }
    double norm() const {
        double sum = 0;
        for (const double value : numbers) {
            sum += value * value;
        }
        return std::sqrt(sum);
    }
};

Whole read_whole(Context& alone, const io::Region& region, io::StrategyKind strategy, const io::Hints& hints) {
    const std::int64_t m = region.logical_rows(), n = region.logical_columns();
    Whole matrix{m, n, Numbers(index_of(m * n))};
    const io::Input input(alone, region, strategy, hints);
    input.load(
        alone, Dtype::float64, [&](int) -> grid::Share { return grid::Block{{0, m}, {0, n}}; },
        reinterpret_cast<std::byte*>(matrix.numbers.data()));
    if (region.stored_transposed()) {
        Numbers by_rows(matrix.numbers.size());
        for (std::int64_t i = 0; i < m; ++i) {
            for (std::int64_t j = 0; j < n; ++j) {
                by_rows[index_of(i * n + j)] = matrix.numbers[index_of(j * m + i)];
            }
        }
        matrix.numbers = std::move(by_rows);
    }
    return matrix;
}

/// C −= A·B, where C is given, else A·B − I.
Whole difference(std::int64_t m, std::int64_t n, std::int64_t k, const kernel::Operand& a, const kernel::Operand& b,
                 const Whole* from, int threads) {
    Whole c{m, n, Numbers(index_of(m * n))};
    kernel::multiply(m, n, k, a, b, c.numbers.data(), false, threads);
    for (std::int64_t i = 0; i < m; ++i) {
        for (std::int64_t j = 0; j < n; ++j) {
            c.numbers[index_of(i * n + j)] -= from != nullptr ? from->numbers[index_of(i * n + j)] : i == j ? 1 : 0;
        }
    }
    return c;
}

void measure_vectors(Context& alone, const Whole& a, const Whole& u, const Whole& vt, const Numbers& sigma,
                     bool sampled, Measures& found) {
    const std::int64_t m = a.rows, n = a.columns, count = std::ssize(sigma);
    const double root = std::sqrt(static_cast<double>(count)), norm = a.norm(), scale = norm > 0 ? norm : 1;
    Whole us = u, svt = vt;
    for (std::int64_t j = 0; j < count; ++j) {
        for (std::int64_t i = 0; i < m; ++i) {
            us.numbers[index_of(i * count + j)] *= sigma[index_of(j)];
        }
        for (std::int64_t i = 0; i < n; ++i) {
            svt.numbers[index_of(j * n + i)] *= sigma[index_of(j)];
        }
    }
    const int threads = alone.threads;
    found.residual = difference(m, n, count, us.operand(), vt.operand(), &a, threads).norm() / scale;
    found.orthogonality_u = difference(count, count, m, u.operand(true), u.operand(), nullptr, threads).norm() / root;
    found.orthogonality_v = difference(count, count, n, vt.operand(), vt.operand(true), nullptr, threads).norm() / root;
    const auto by_left = [&] {
        Whole vs{n, count, Numbers(svt.numbers.size())};
        for (std::int64_t i = 0; i < n; ++i) {
            for (std::int64_t j = 0; j < count; ++j) {
                vs.numbers[index_of(i * count + j)] = svt.numbers[index_of(j * n + i)];
            }
        }
        return difference(n, count, m, a.operand(true), u.operand(), &vs, threads);
    };
    const auto by_right = [&] { return difference(m, count, n, a.operand(), vt.operand(true), &us, threads); };
    if (!sampled) {
        found.pairs = (m < n ? by_left() : by_right()).norm() / scale / root;
        return;
    }
    // One of both holds by construction, which depends on how the file is read; the other says how exact the vectors
    // are.
    const Whole left = by_left(), right = by_right();
    const bool left_is_exact = left.norm() < right.norm();
    found.pairs = (left_is_exact ? left : right).norm() / scale / root;
    found.residuals = (left_is_exact ? right : left).lengths_of_columns();
}

}  // namespace

Measures measure_exactly(Context& context, const io::Region& a, const Files& files, const Options& options) {
    Measures found;
    const mpi::Communicator self(MPI_COMM_SELF);
    mpi::together(context.comm, [&] {
        if (context.comm.rank() != 0) {
            return;
        }
        Context alone{self, context.ledger, context.threads};
        found.sigma = read_sigma(alone, files.s);
        constexpr auto positioned = io::StrategyKind::positioned;
        const auto strategy = a.tiles.empty() ? positioned : io::StrategyKind::per_rank;
        Whole matrix = read_whole(alone, a, strategy, options.hints);
        const double factor = safe_factor(found.sigma, Dtype::float64);
        for (double& value : matrix.numbers) {
            value *= factor;
        }
        if (files.u && files.vt) {
            Numbers sigma = found.sigma;
            for (double& value : sigma) {
                value *= factor;
            }
            measure_vectors(alone, matrix, read_whole(alone, *files.u, positioned, {}),
                            read_whole(alone, *files.vt, positioned, {}), sigma,
                            options.algorithm == AlgorithmKind::randomized, found);
            found.norm = matrix.norm() / factor;
            for (double& residual : found.residuals) {
                residual /= factor;
            }
        }
        const std::int64_t least = std::min(matrix.rows, matrix.columns);
        found.expected.emplace(index_of(least));
        kernel::gesdd(matrix.columns, matrix.rows, matrix.numbers.data(), std::max<std::int64_t>(1, matrix.columns),
                      found.expected->data(), nullptr, nullptr, context.threads);
        for (double& value : *found.expected) {
            value /= factor;
        }
    });
    return found;
}

}  // namespace tilewise::svd
