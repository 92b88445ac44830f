// Row by row where the block lies as it is, column sums where its transpose lies in memory; vectors by the compiler.
#include "tilewise/kernel/product/apply.hpp"

#include <cmath>

#include "tilewise/base/threads.hpp"
#include "tilewise/base/work.hpp"
#include "tilewise/kernel/isa/versions.hpp"

namespace tilewise::kernel {
namespace {

template <class T> struct Task {
    const T* data;
    std::int64_t stride, n;
    std::int64_t begin, end;  // rows of the matrix that this thread does
    const Check<T>*x0, *x1;
    const double* weights;
    Check<T>*y0, *y1;
    double *sums, *squares;
};

template <class T> TILEWISE_INLINE void along_rows(const Task<T>& t) {
    for (std::int64_t i = t.begin; i < t.end; ++i) {
        const T* row = t.data + i * t.stride;
        Check<T> sum0{}, sum1{};
        double sum = 0, square = 0;
#pragma omp simd reduction(+ : sum0, sum1, sum, square)
        for (std::int64_t j = 0; j < t.n; ++j) {
            auto value = static_cast<Check<T>>(row[j]);
            if constexpr (!std::is_integral_v<T>) {
                value = t.weights[j] == 0 ? 0 : value;
                const double weighted = std::abs(value) * t.weights[j];
                sum += weighted;
                square += weighted * weighted;
            }
            sum0 += value * t.x0[j];
            sum1 += value * t.x1[j];
        }
        t.y0[i] += sum0;
        t.y1[i] += sum1;
        t.sums[i] += sum;
        t.squares[i] += square;
    }
}

template <class T> TILEWISE_INLINE void down_columns(const Task<T>& t) {
    for (std::int64_t j = 0; j < t.n; ++j) {
        const T* row = t.data + j * t.stride;
        const Check<T> x0 = t.x0[j], x1 = t.x1[j];
        const double weight = t.weights[j];
        if (!std::is_integral_v<T> && weight == 0) {
            continue;
        }
#pragma omp simd
        for (std::int64_t i = t.begin; i < t.end; ++i) {
            const auto value = static_cast<Check<T>>(row[i]);
            t.y0[i] += value * x0;
            t.y1[i] += value * x1;
            if constexpr (!std::is_integral_v<T>) {
                const double weighted = std::abs(value) * weight;
                t.sums[i] += weighted;
                t.squares[i] += weighted * weighted;
            }
        }
    }
}

// Complex numbers as pairs of reals: without the library's care for infinities, which a check does not need.
template <class R> TILEWISE_INLINE void complex_product(const Task<std::complex<R>>& t, bool transposed) {
    for (std::int64_t outer = transposed ? 0 : t.begin; outer < (transposed ? t.n : t.end); ++outer) {
        const auto* row = reinterpret_cast<const R*>(t.data + outer * t.stride);
        for (std::int64_t inner = transposed ? t.begin : 0; inner < (transposed ? t.end : t.n); ++inner) {
            const std::int64_t i = transposed ? inner : outer, j = transposed ? outer : inner;
            if (t.weights[j] == 0) {
                continue;
            }
            const double re = row[2 * inner], im = row[2 * inner + 1];
            const auto times = [&](const std::complex<double>& x) {
                return std::complex<double>(re * x.real() - im * x.imag(), re * x.imag() + im * x.real());
            };
            t.y0[i] += times(t.x0[j]);
            t.y1[i] += times(t.x1[j]);
            const double weighted_re = std::abs(re) * t.weights[j], weighted_im = std::abs(im) * t.weights[j];
            t.sums[i] += weighted_re + weighted_im;
            t.squares[i] += weighted_re * weighted_re + weighted_im * weighted_im;
        }
    }
}

template <class T> void multiply(const Task<T>& t, bool transposed) {
    transposed ? in_versions<down_columns<T>>(t) : in_versions<along_rows<T>>(t);
}
template <class R> void multiply(const Task<std::complex<R>>& t, bool transposed) { complex_product(t, transposed); }

/// Sizes of columns of real numbers, `parts` of them (2 of a complex number) to a column.
template <class R> struct Measured {
    const R* data;
    std::int64_t stride, m;
    std::int64_t begin, end;  // columns that this thread does
    double *largest, *squares;
};

template <class R, int parts> TILEWISE_INLINE void walk(const Measured<R>& t, bool transposed) {
    const auto count = [&](std::int64_t j, const R* number) {
        for (int part = 0; part < parts; ++part) {
            const double size = std::abs(static_cast<double>(number[part]));
            t.largest[j] = size > t.largest[j] ? size : t.largest[j];
            t.squares[j] += size * size;
        }
    };
    for (std::int64_t outer = transposed ? t.begin : 0; outer < (transposed ? t.end : t.m); ++outer) {
        const R* line = t.data + outer * t.stride * parts;
        if (transposed) {
            double largest = t.largest[outer], squares = t.squares[outer];
#pragma omp simd reduction(max : largest) reduction(+ : squares)
            for (std::int64_t i = 0; i < t.m * parts; ++i) {
                const double size = std::abs(static_cast<double>(line[i]));
                largest = size > largest ? size : largest;
                squares += size * size;
            }
            t.largest[outer] = largest;
            t.squares[outer] = squares;
        } else {
#pragma omp simd
            for (std::int64_t j = t.begin; j < t.end; ++j) {
                count(j, line + j * parts);
            }
        }
    }
}

int workers(std::int64_t m, std::int64_t n, int threads) { return m * n < (1 << 16) ? 1 : threads; }

}  // namespace

template <class T>
void apply(const Operand& matrix, std::int64_t m, std::int64_t n, const Probe<Check<T>>& x, std::int64_t x_at,
           Image<Check<T>>& y, std::int64_t y_at, int threads) {
    // Two sums of products, of sizes, and of their squares.
    const auto numbers = static_cast<double>(m * n);
    if (stood_in_for(8 * numbers, static_cast<double>(sizeof(T)) * numbers)) {
        return;
    }
    parallel_ranges(workers(m, n, threads), m, [&](std::int64_t begin, std::int64_t end, int) {
        const Task<T> task{reinterpret_cast<const T*>(matrix.data),
                           matrix.stride,
                           n,
                           begin,
                           end,
                           x.first.data() + x_at,
                           x.second.data() + x_at,
                           x.weights.data() + x_at,
                           y.first.data() + y_at,
                           y.second.data() + y_at,
                           y.sums.data() + y_at,
                           y.squares.data() + y_at};
        multiply(task, matrix.transposed);
    });
}

template <class T>
void measure_columns(const Operand& matrix, std::int64_t m, std::int64_t n, ColumnSizes& sizes, std::int64_t at,
                     int threads) {
    const auto numbers = static_cast<double>(m * n);
    if (stood_in_for(3 * numbers, static_cast<double>(sizeof(T)) * numbers)) {
        return;
    }
    constexpr bool pairs = !std::is_floating_point_v<T>;
    using R = decltype(std::abs(T{}));
    parallel_ranges(workers(m, n, threads), n, [&](std::int64_t begin, std::int64_t end, int) {
        const Measured<R> task{reinterpret_cast<const R*>(matrix.data),
                               matrix.stride,
                               m,
                               begin,
                               end,
                               sizes.largest.data() + at,
                               sizes.squares.data() + at};
        in_versions<walk<R, pairs ? 2 : 1>>(task, matrix.transposed);
    });
}

#define TILEWISE_APPLY(T)                                                                                    \
    template void apply<T>(const Operand&, std::int64_t, std::int64_t, const Probe<Check<T>>&, std::int64_t, \
                           Image<Check<T>>&, std::int64_t, int);
#define TILEWISE_MEASURE(T) \
    template void measure_columns<T>(const Operand&, std::int64_t, std::int64_t, ColumnSizes&, std::int64_t, int);
TILEWISE_APPLY(float)
TILEWISE_APPLY(double)
TILEWISE_APPLY(std::int64_t)
TILEWISE_APPLY(std::uint64_t)
TILEWISE_APPLY(std::complex<float>)
TILEWISE_APPLY(std::complex<double>)
TILEWISE_MEASURE(float)
TILEWISE_MEASURE(double)
TILEWISE_MEASURE(std::complex<float>)
TILEWISE_MEASURE(std::complex<double>)
#undef TILEWISE_APPLY
#undef TILEWISE_MEASURE

}  // namespace tilewise::kernel
