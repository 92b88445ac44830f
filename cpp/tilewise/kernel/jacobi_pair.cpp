// The Gram matrix by syrk and gemm, the product by gemm on panels of rows that are copied aside. Threads are those of
// the BLAS, so that they do not compete with it for cores: after each call it keeps its own awake for a while.
#include "tilewise/kernel/jacobi_pair.hpp"

#include <algorithm>
#include <cmath>
#include <optional>

#include "tilewise/base/threads.hpp"
#include "tilewise/kernel/lapack.hpp"

namespace tilewise::kernel {
namespace {

// Squares between these limits keep all their digits in a sum.
constexpr double least_square = 1e-280, largest_square = 1e280;

// More columns than this are worth a thread's start.
constexpr std::int64_t wide = 256;

void syrk(const Columns& x, double* g, std::int64_t stride) {
    const double one = 1, zero = 0;
    const int n = lapack_int(x.count), k = lapack_int(x.rows), lda = lapack_int(std::max(x.stride, x.rows)),
              ldc = lapack_int(stride);
    if (n > 0) {
        TILEWISE_BLAS(dsyrk_)("U", "T", &n, &k, &one, x.data, &lda, &zero, g, &ldc);
    }
}

/// Both blocks as one, where the right one begins where the left one ends.
std::optional<Columns> adjacent(const ColumnPair& x) {
    if (x.right.count == 0 || x.left.count == 0) {
        return x.right.count == 0 ? x.left : x.right;
    }
    const bool follows = x.left.stride == x.right.stride && x.left.column(x.left.count) == x.right.data;
    return follows ? std::optional<Columns>({x.left.data, x.left.rows, x.count(), x.left.stride}) : std::nullopt;
}

void gram(const ColumnPair& x, double* g) {
    const std::int64_t count = x.count();
    if (const auto whole = adjacent(x)) {
        return syrk(*whole, g, count);
    }
    syrk(x.left, g, count);
    syrk(x.right, g + x.left.count * (count + 1), count);
    if (x.left.count > 0 && x.right.count > 0) {
        const double one = 1, zero = 0;
        const int m = lapack_int(x.left.count), n = lapack_int(x.right.count), k = lapack_int(x.left.rows),
                  lda = lapack_int(x.left.stride), ldb = lapack_int(x.right.stride), ldc = lapack_int(count);
        TILEWISE_BLAS(dgemm_)
        ("T", "N", &m, &n, &k, &one, x.left.data, &lda, x.right.data, &ldb, &zero, g + x.left.count * count, &ldc);
    }
}

double largest_of(const double* column, std::int64_t rows) {
    double largest = 0;
    for (std::int64_t i = 0; i < rows; ++i) {
        largest = std::max(largest, std::abs(column[i]));
    }
    return largest;
}

void scale(double* column, std::int64_t rows, int exponent) {
    // In two steps: 2^exponent itself may be out of range.
    const double half = std::ldexp(1.0, exponent / 2), rest = std::ldexp(1.0, exponent - exponent / 2);
    for (std::int64_t i = 0; i < rows; ++i) {
        column[i] = column[i] * half * rest;
    }
}

/// The power of two that brings the largest element of a column near 1, where its squares need it; else 0.
int exponent_for(const double* column, std::int64_t rows, double square) {
    if (square >= least_square && square <= largest_square) {
        return 0;
    }
    const double largest = largest_of(column, rows);
    int exponent = 0;
    std::frexp(largest, &exponent);
    return largest == 0 ? 0 : -exponent;
}

}  // namespace

double norm_of(const double* column, std::int64_t rows) {
    double sum = 0;
    for (std::int64_t i = 0; i < rows; ++i) {
        sum += column[i] * column[i];
    }
    if ((sum >= least_square && sum <= largest_square) || std::isnan(sum)) {
        return std::sqrt(sum);
    }
    const double largest = largest_of(column, rows);
    if (largest == 0) {
        return 0;
    }
    int exponent = 0;
    std::frexp(largest, &exponent);
    sum = 0;
    for (std::int64_t i = 0; i < rows; ++i) {
        const double value = std::ldexp(column[i], -exponent);
        sum += value * value;
    }
    return std::ldexp(std::sqrt(sum), exponent);
}

void find_cosines(const ColumnPair& x, Cosines& cosines, int threads) {
    const std::int64_t count = cosines.count = x.count(), rows = x.rows();
    const auto size = static_cast<std::size_t>(count);
    cosines.norms.assign(size, 0);
    cosines.inverses.assign(size, 0);
    double* g = cosines.values;
    gram(x, g);
    std::vector<int> exponents(size);
    for (std::int64_t c = 0; c < count; ++c) {
        exponents[static_cast<std::size_t>(c)] = exponent_for(x.column(c), rows, g[c * (count + 1)]);
    }
    if (std::any_of(exponents.begin(), exponents.end(), [](int exponent) { return exponent != 0; })) {
        for (std::int64_t c = 0; c < count; ++c) {
            scale(x.column(c), rows, exponents[static_cast<std::size_t>(c)]);
        }
        gram(x, g);
        for (std::int64_t c = 0; c < count; ++c) {
            scale(x.column(c), rows, -exponents[static_cast<std::size_t>(c)]);
        }
    }
    std::vector<double> scaled_inverses(size);
    for (std::size_t c = 0; c < size; ++c) {
        const double norm = std::sqrt(g[static_cast<std::int64_t>(c) * (count + 1)]);
        if (!std::isfinite(norm)) {  // which no comparison after this one would notice
            throw InternalError("a column became infinite or NaN during the sweeps");
        }
        if (const double unscaled = std::ldexp(norm, -exponents[c]); unscaled >= least_norm) {
            scaled_inverses[c] = 1 / norm;
            cosines.norms[c] = unscaled;
            cosines.inverses[c] = 1 / cosines.norms[c];
        }
    }
    const double* inverses = scaled_inverses.data();
    parallel_tasks(count > wide ? threads : 1, (count + 63) / 64, [&](std::int64_t task, int) {
        for (std::int64_t c = 64 * task; c < std::min(count, 64 * task + 64); ++c) {
            double* column = g + c * count;
            const double inverse = inverses[c];
            for (std::int64_t r = 0; r < c; ++r) {
                column[r] *= inverse * inverses[r];
            }
            column[c] = inverse > 0 ? 1 : 0;
        }
    });
}

void multiply_columns(const ColumnPair& x, const Rotation& rotation, bool add, Array<double>& scratch, int threads) {
    const std::int64_t count = x.count(), rows = x.rows(), stride = (std::min(rows, rotated_rows) + 7) / 8 * 8;
    double* copy = scratch.grow(stride * count);
    const double one = 1, beta = add ? 1 : 0;
    const int lda = lapack_int(stride), ldb = lapack_int(count);
    const auto whole = adjacent(x);
    for (std::int64_t row = 0; row < rows; row += rotated_rows) {
        const std::int64_t here = std::min(rows - row, rotated_rows);
        parallel_ranges(count > wide ? threads : 1, count, [&](std::int64_t first, std::int64_t last, int) {
            for (std::int64_t c = first; c < last; ++c) {
                std::copy_n(x.column(rotation.from(c)) + row, here, copy + c * stride);
            }
        });
        const int m = lapack_int(here);
        // Of a block's columns those that lie in `to`, whose first column is number `first` of the pair.
        const auto product = [&](const Rotation::Block& block, const Columns& to, std::int64_t first) {
            const std::int64_t begin = std::max(block.begin, first), end = std::min(block.end, first + to.count);
            if (begin < end) {
                const int n = lapack_int(end - begin), k = lapack_int(block.end - block.begin),
                          ldc = lapack_int(std::max(to.stride, to.rows));
                TILEWISE_BLAS(dgemm_)
                ("N", "N", &m, &n, &k, &one, copy + block.begin * stride, &lda,
                 rotation.w + begin * count + block.begin, &ldb, &beta, to.column(begin - first) + row, &ldc);
            }
        };
        for (const Rotation::Block& block : rotation.blocks) {
            if (whole) {
                product(block, *whole, 0);
            } else {
                product(block, x.left, 0);
                product(block, x.right, x.left.count);
            }
        }
    }
}

}  // namespace tilewise::kernel
