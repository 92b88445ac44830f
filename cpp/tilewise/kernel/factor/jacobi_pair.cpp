// The Gram matrix by syrk and gemm, the product by gemm on panels of rows that are copied aside. Threads are those of
// the BLAS, so that they do not compete with it for cores: after each call it keeps its own awake for a while.
#include <algorithm>
#include <cmath>
#include <optional>

#include "tilewise/base/threads.hpp"
#include "tilewise/kernel/factor/jacobi.hpp"
#include "tilewise/kernel/factor/lapack.hpp"

namespace tilewise::kernel {
namespace {

// Squares between these limits keep all their digits in a sum.
constexpr double least_square = 1e-280, largest_square = 1e280;

// More columns than this are worth a thread's start.
constexpr std::int64_t wide = 256;

template <class T> void syrk(const ColumnsOf<T>& x, T* g, std::int64_t stride) {
    if (x.count > 0) {
        lapack::syrk(lapack_int(x.count), lapack_int(x.rows), 1.0, x.data, lapack_int(std::max(x.stride, x.rows)), g,
                     lapack_int(stride));
    }
}

/// Both blocks as one, where the right one begins where the left one ends.
template <class T> std::optional<ColumnsOf<T>> adjacent(const ColumnPair<T>& x) {
    if (x.right.count == 0 || x.left.count == 0) {
        return x.right.count == 0 ? x.left : x.right;
    }
    const bool follows = x.left.stride == x.right.stride && x.left.column(x.left.count) == x.right.data;
    return follows ? std::optional<ColumnsOf<T>>({x.left.data, x.left.rows, x.count(), x.left.stride}) : std::nullopt;
}

template <class T> void gram(const ColumnPair<T>& x, T* g) {
    const std::int64_t count = x.count();
    if (const auto whole = adjacent(x)) {
        return syrk(*whole, g, count);
    }
    syrk(x.left, g, count);
    syrk(x.right, g + x.left.count * (count + 1), count);
    if (x.left.count > 0 && x.right.count > 0) {
        lapack::gemm(lapack::adjoint<T>, "N", lapack_int(x.left.count), lapack_int(x.right.count),
                     lapack_int(x.left.rows), T{1}, x.left.data, lapack_int(x.left.stride), x.right.data,
                     lapack_int(x.right.stride), T{}, g + x.left.count * count, lapack_int(count));
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

template <class T> void find_cosines(const ColumnPair<T>& x, Cosines<T>& cosines, int threads) {
    const std::int64_t count = cosines.count = x.count(), reals = parts_of<T> * x.rows();
    const auto size = static_cast<std::size_t>(count);
    cosines.norms.assign(size, 0);
    cosines.inverses.assign(size, 0);
    T* g = cosines.values;
    gram(x, g);
    std::vector<int> exponents(size);
    for (std::int64_t c = 0; c < count; ++c) {
        exponents[static_cast<std::size_t>(c)] =
            exponent_for(reals_of(x.column(c)), reals, real_part(g[c * (count + 1)]));
    }
    if (std::any_of(exponents.begin(), exponents.end(), [](int exponent) { return exponent != 0; })) {
        for (std::int64_t c = 0; c < count; ++c) {
            scale(reals_of(x.column(c)), reals, exponents[static_cast<std::size_t>(c)]);
        }
        gram(x, g);
        for (std::int64_t c = 0; c < count; ++c) {
            scale(reals_of(x.column(c)), reals, -exponents[static_cast<std::size_t>(c)]);
        }
    }
    std::vector<double> scaled_inverses(size);
    for (std::size_t c = 0; c < size; ++c) {
        const double norm = std::sqrt(real_part(g[static_cast<std::int64_t>(c) * (count + 1)]));
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
            T* column = g + c * count;
            const double inverse = inverses[c];
            for (std::int64_t r = 0; r < c; ++r) {
                column[r] *= inverse * inverses[r];
            }
            column[c] = inverse > 0 ? 1.0 : 0.0;
        }
    });
}

template <class T>
void multiply_columns(const ColumnPair<T>& x, const Rotation<T>& rotation, bool add, Array<T>& scratch, int threads) {
    const std::int64_t count = x.count(), rows = x.rows(), stride = (std::min(rows, rotated_rows) + 7) / 8 * 8;
    T* copy = scratch.grow(stride * count);
    tell<T>({0, static_cast<double>(rows * count)});
    const T beta = add ? 1.0 : 0.0;
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
        const auto product = [&](const RotationBlock& block, const ColumnsOf<T>& to, std::int64_t first) {
            const std::int64_t begin = std::max(block.begin, first), end = std::min(block.end, first + to.count);
            if (begin < end) {
                const int n = lapack_int(end - begin), k = lapack_int(block.end - block.begin),
                          ldc = lapack_int(std::max(to.stride, to.rows));
                lapack::gemm("N", "N", m, n, k, T{1}, copy + block.begin * stride, lda,
                             rotation.w + begin * count + block.begin, ldb, beta, to.column(begin - first) + row, ldc);
            }
        };
        for (const RotationBlock& block : rotation.blocks) {
            if (whole) {
                product(block, *whole, 0);
            } else {
                product(block, x.left, 0);
                product(block, x.right, x.left.count);
            }
        }
    }
}

TILEWISE_PAIR(, double)
TILEWISE_PAIR(, Complex)

}  // namespace tilewise::kernel
