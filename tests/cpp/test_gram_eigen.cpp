// Tests of eigenvectors by all ranks together, of AᵀA and of a matrix of three diagonals, against LAPACK's.
#include <algorithm>
#include <cmath>
#include <doctest/doctest.h>
#include <functional>
#include <vector>

#include "svd_cases.hpp"
#include "tilewise/dist/column_comm.hpp"
#include "tilewise/dist/gram_eigen.hpp"
#include "tilewise/kernel/factor/lapack.hpp"

using namespace tilewise;
using namespace tilewise::test;

namespace {

using kernel::Complex;

/// What kernels ask of a test: a team of all ranks.
struct Ranks {
    const mpi::Communicator comm{MPI_COMM_WORLD};
    Ledger ledger;
    Context context{comm, ledger, 1};
    dist::RootTask root_task{context};
    dist::ColumnComm team{context, root_task};

    Ranks() { ledger.start(Phase::compute); }
};

template <class T> using Numbers = std::vector<T>;  // column by column

std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }

/// AᵀA by its definition.
template <class T> Numbers<T> square_of_columns(const Numbers<T>& a, std::int64_t rows, std::int64_t n) {
    Numbers<T> g(at(n * n));
    for (std::int64_t i = 0; i < n; ++i) {
        for (std::int64_t j = 0; j < n; ++j) {
            for (std::int64_t r = 0; r < rows; ++r) {
                g[at(i + j * n)] += kernel::conjugate(a[at(r + i * rows)]) * a[at(r + j * rows)];
            }
        }
    }
    return g;
}

/// Ascending, by LAPACK.
template <class T> std::vector<double> values_by_lapack(Numbers<T> g, std::int64_t n) {
    std::vector<double> values(at(n));
    std::vector<double> work(at(2 * kernel::lapack::syevd_reals<T>(n) + 8 * n * n + 64));
    std::vector<int> more(at(kernel::lapack::syevd_integers(static_cast<int>(n))));
    REQUIRE(kernel::lapack::syevd(static_cast<int>(n), g.data(), values.data(), work.data(), more.data()) == 0);
    return values;
}

/// How far the columns of all ranks, put together, are from orthonormal eigenvectors of G with those values.
template <class T> void check_vectors(const mpi::Communicator& comm, const Numbers<T>& g, const T* mine,
                                      std::int64_t stride, std::int64_t n, const grid::Range& columns,
                                      const std::function<double(std::int64_t)>& value, double limit) {
    Numbers<T> v(at(n * n));
    for (std::int64_t c = columns.begin; c < columns.end; ++c) {
        std::copy_n(mine + (c - columns.begin) * stride, n, v.data() + c * n);
    }
    MPI_Allreduce(MPI_IN_PLACE, v.data(), static_cast<int>(kernel::parts_of<T> * n * n), MPI_DOUBLE, MPI_SUM,
                  comm.get());
    double scale = 1e-300;
    for (std::int64_t c = 0; c < n; ++c) {
        scale = std::max(scale, std::abs(value(c)));
    }
    double left = 0, beside = 0;
    for (std::int64_t i = 0; i < n; ++i) {
        for (std::int64_t j = 0; j < n; ++j) {
            T turned{}, dot{};
            for (std::int64_t k = 0; k < n; ++k) {
                turned += g[at(i + k * n)] * v[at(k + j * n)];
                dot += kernel::conjugate(v[at(k + i * n)]) * v[at(k + j * n)];
            }
            left = std::max(left, std::abs(turned - value(j) * v[at(i + j * n)]) / scale);
            beside = std::max(beside, std::abs(dot - (i == j ? 1.0 : 0.0)));
        }
    }
    CHECK(left <= limit);
    CHECK(beside <= limit);
}

/// Columns for the ranks, the first ones for the last rank.
std::function<grid::Range(int)> backwards(std::int64_t n, int ranks) {
    return [columns = grid::Partition(n, ranks), ranks](int rank) { return columns[ranks - 1 - rank]; };
}

template <class T> void check_gram(const Numbers<T>& a, std::int64_t rows, std::int64_t n, bool shared) {
    Ranks ranks;
    const int size = ranks.comm.size(), me = ranks.comm.rank();
    const Numbers<T> g = square_of_columns(a, rows, n);
    const std::vector<double> values = values_by_lapack(g, n);
    const grid::Partition columns(n, size);
    kernel::MatrixOf<T> mine(rows, columns[me].size());
    for (std::int64_t c = 0; c < mine.count; ++c) {
        std::copy_n(a.data() + (columns[me].begin + c) * rows, rows, mine.column(c));
    }
    const dist::SpreadColumnsOf<T> spread{mine.columns(), dist::owners_of(columns)};
    dist::Tridiagonal<T> t = dist::reduce(dist::gram(spread, shared, ranks.team, 1), ranks.team, 1);
    const double limit = 2e-14 * std::sqrt(static_cast<double>(n + 20));
    if (me == 0) {
        const std::vector<double> found = dist::eigenvalues(t);
        for (std::size_t i = 0; i < values.size(); ++i) {
            CHECK(std::abs(found[i] - values[i]) <= limit * values.back());
        }
    }
    const auto wanted = backwards(n, size);
    const kernel::MatrixOf<T> v = dist::eigenvectors(std::move(t), wanted, ranks.team, 1);
    check_vectors<T>(
        ranks.comm, g, v.data(), v.stride, n, wanted(me), [&](std::int64_t c) { return values[at(n - 1 - c)]; }, limit);
}

void check_tridiagonal(const std::vector<double>& diagonal, const std::vector<double>& beside, std::int64_t leaf) {
    Ranks ranks;
    const auto n = std::ssize(diagonal);
    Numbers<double> dense(at(n * n));
    for (std::int64_t i = 0; i < n; ++i) {
        dense[at(i * (n + 1))] = diagonal[at(i)];
        if (i + 1 < n) {
            dense[at(i * (n + 1) + 1)] = dense[at((i + 1) * (n + 1) - 1)] = beside[at(i)];
        }
    }
    const std::vector<double> values = values_by_lapack(dense, n);
    const auto wanted = backwards(n, ranks.comm.size());
    const Array<double> mine = dist::distributed_stedc(diagonal, beside, wanted, ranks.team, 1, leaf);
    check_vectors<double>(
        ranks.comm, dense, mine.data(), n, n, wanted(ranks.comm.rank()), [&](std::int64_t c) { return values[at(c)]; },
        1e-14 * std::sqrt(static_cast<double>(n + 20)));
}

}  // namespace

TEST_CASE(
    "all ranks reduce a Gram matrix and find its eigenvectors as rank 0 alone does: any rank, fewer columns too") {
    const auto columns_of = [](const Dense& a) { return transposed(a).values; };
    std::vector<double> clustered(70, 1.0);
    std::fill_n(clustered.begin(), 20, 3.0);
    for (std::size_t i = 0; i < 10; ++i) {
        clustered[i] += 1e-13 * static_cast<double>(i);
    }
    for (const Dense& a : {normal(170, 131), normal(9, 9, 2), normal(5, 1), normal(4, 2), normal(7, 3), normal(33, 33),
                           Dense(20, 6), with_values(90, clustered), product(normal(140, 5), normal(5, 66, 2))}) {
        for (const bool shared : {false, true}) {
            CAPTURE(a.columns);
            CAPTURE(shared);
            check_gram<double>(columns_of(a), a.rows, a.columns, shared);
        }
    }
}

TEST_CASE("the same of complex numbers") {
    for (const std::int64_t n : {1, 2, 5, 37, 70}) {
        const Dense real = normal(n + 3, n, 5), imaginary = normal(n + 3, n, 6);
        Numbers<Complex> a;
        for (std::int64_t c = 0; c < n; ++c) {
            for (std::int64_t r = 0; r < n + 3; ++r) {
                a.emplace_back(real(r, c), imaginary(r, c));
            }
        }
        for (const bool shared : {false, true}) {
            CAPTURE(n);
            CAPTURE(shared);
            check_gram<Complex>(a, n + 3, n, shared);
        }
    }
}

TEST_CASE("ranks divide and conquer a tridiagonal matrix: clusters, parts without a connection, zeros, any size") {
    const Dense numbers = normal(2, 131, 8);
    for (const std::int64_t n : {1, 2, 3, 4, 5, 6, 7, 12, 31, 131}) {
        const auto all = at(n);
        std::vector<double> glued(all), chaos(all), beside_chaos(all), spread(all);
        for (std::int64_t i = 0; i < n; ++i) {
            glued[at(i)] = std::abs(static_cast<double>(i % 21) - 10);  // Wilkinson's W21+, one after the other
            chaos[at(i)] = numbers(0, i);
            beside_chaos[at(i)] = i % 5 == 3 ? 1e-9 * numbers(1, i) : numbers(1, i);
            spread[at(i)] = std::pow(10.0, -static_cast<double>(i % 17));
        }
        const std::vector<double> ones(all, 1.0), zeros(all), twos(all, 2.0), less(all, -1.0), tiny(all, 1e-13),
            huge(all, 1e150), beside_huge(all, -3e149);
        for (const std::int64_t leaf : {2, 5, 25}) {
            CAPTURE(n);
            CAPTURE(leaf);
            check_tridiagonal(twos, less, leaf);
            check_tridiagonal(chaos, beside_chaos, leaf);
            check_tridiagonal(glued, ones, leaf);
            check_tridiagonal(ones, zeros, leaf);
            check_tridiagonal(zeros, zeros, leaf);
            check_tridiagonal(zeros, ones, leaf);
            check_tridiagonal(ones, tiny, leaf);
            check_tridiagonal(spread, spread, leaf);
            check_tridiagonal(huge, beside_huge, leaf);
        }
    }
}
