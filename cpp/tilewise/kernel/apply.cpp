// Row by row where the block lies as it is, column sums where its transpose lies in memory; vectors by the compiler.
#include "tilewise/kernel/apply.hpp"

#include <algorithm>

#include "tilewise/base/clones.hpp"
#include "tilewise/base/threads.hpp"

namespace tilewise::kernel {
namespace {

template <class T> struct Task {
    const T* data;
    std::int64_t stride, n;
    std::int64_t begin, end;  // rows of the matrix that this thread does
    const Check<T>*x0, *x1;
    Check<T>*y0, *y1;
    double* squares;
};

template <class T> TILEWISE_INLINE void along_rows(const Task<T>& t) {
    for (std::int64_t i = t.begin; i < t.end; ++i) {
        const T* row = t.data + i * t.stride;
        Check<T> sum0{}, sum1{};
        double square = 0;
#pragma omp simd reduction(+ : sum0, sum1, square)
        for (std::int64_t j = 0; j < t.n; ++j) {
            const auto value = static_cast<Check<T>>(row[j]);
            sum0 += value * t.x0[j];
            sum1 += value * t.x1[j];
            if constexpr (!std::is_integral_v<T>) {
                square += value * value;
            }
        }
        t.y0[i] += sum0;
        t.y1[i] += sum1;
        t.squares[i] += square;
    }
}

template <class T> TILEWISE_INLINE void down_columns(const Task<T>& t) {
    for (std::int64_t j = 0; j < t.n; ++j) {
        const T* row = t.data + j * t.stride;
        const Check<T> x0 = t.x0[j], x1 = t.x1[j];
#pragma omp simd
        for (std::int64_t i = t.begin; i < t.end; ++i) {
            const auto value = static_cast<Check<T>>(row[i]);
            t.y0[i] += value * x0;
            t.y1[i] += value * x1;
            if constexpr (!std::is_integral_v<T>) {
                t.squares[i] += value * value;
            }
        }
    }
}

// Complex numbers as pairs of reals: without the library's care for infinities, which a check does not need.
template <class R> TILEWISE_INLINE void complex_product(const Task<std::complex<R>>& t, bool transposed) {
    for (std::int64_t outer = transposed ? 0 : t.begin; outer < (transposed ? t.n : t.end); ++outer) {
        const auto* row = reinterpret_cast<const R*>(t.data + outer * t.stride);
        for (std::int64_t inner = transposed ? t.begin : 0; inner < (transposed ? t.end : t.n); ++inner) {
            const double re = row[2 * inner], im = row[2 * inner + 1];
            const std::int64_t i = transposed ? inner : outer, j = transposed ? outer : inner;
            const auto times = [&](const std::complex<double>& x) {
                return std::complex<double>(re * x.real() - im * x.imag(), re * x.imag() + im * x.real());
            };
            t.y0[i] += times(t.x0[j]);
            t.y1[i] += times(t.x1[j]);
            t.squares[i] += re * re + im * im;
        }
    }
}

TILEWISE_CLONES void rows(const Task<float>& t) { along_rows(t); }
TILEWISE_CLONES void rows(const Task<double>& t) { along_rows(t); }
TILEWISE_CLONES void rows(const Task<std::int64_t>& t) { along_rows(t); }
TILEWISE_CLONES void rows(const Task<std::uint64_t>& t) { along_rows(t); }
void rows(const Task<std::complex<float>>& t) { complex_product(t, false); }
void rows(const Task<std::complex<double>>& t) { complex_product(t, false); }
TILEWISE_CLONES void columns(const Task<float>& t) { down_columns(t); }
TILEWISE_CLONES void columns(const Task<double>& t) { down_columns(t); }
TILEWISE_CLONES void columns(const Task<std::int64_t>& t) { down_columns(t); }
TILEWISE_CLONES void columns(const Task<std::uint64_t>& t) { down_columns(t); }
void columns(const Task<std::complex<float>>& t) { complex_product(t, true); }
void columns(const Task<std::complex<double>>& t) { complex_product(t, true); }

}  // namespace

template <class T>
void apply(const Operand& matrix, std::int64_t m, std::int64_t n, const Pair<Check<T>>& x, std::int64_t x_at,
           Pair<Check<T>>& y, std::int64_t y_at, std::vector<double>& squares, int threads) {
    const int workers = m * n < (1 << 16) ? 1 : threads;
    parallel_ranges(workers, m, [&](std::int64_t begin, std::int64_t end, int) {
        const Task<T> task{reinterpret_cast<const T*>(matrix.data),
                           matrix.stride,
                           n,
                           begin,
                           end,
                           x.first.data() + x_at,
                           x.second.data() + x_at,
                           y.first.data() + y_at,
                           y.second.data() + y_at,
                           squares.data() + y_at};
        matrix.transposed ? columns(task) : rows(task);
    });
}

#define TILEWISE_APPLY(T)                                                                                   \
    template void apply<T>(const Operand&, std::int64_t, std::int64_t, const Pair<Check<T>>&, std::int64_t, \
                           Pair<Check<T>>&, std::int64_t, std::vector<double>&, int);
TILEWISE_APPLY(float)
TILEWISE_APPLY(double)
TILEWISE_APPLY(std::int64_t)
TILEWISE_APPLY(std::uint64_t)
TILEWISE_APPLY(std::complex<float>)
TILEWISE_APPLY(std::complex<double>)
#undef TILEWISE_APPLY

}  // namespace tilewise::kernel
