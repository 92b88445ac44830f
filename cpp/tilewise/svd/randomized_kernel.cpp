// Tiles of 8 rows by up to 3 registers, held for the whole of k: one load for each register of B, and one broadcast for
// each row of A.
//
//     A, where it lies        B          C
//     [ a → ]                [ | | ]    [ # # ]      for p = 0 … k−1:  #[r] += A(r, p)·B(p, :)
//     [ a → ]                [ | | ]    [ # # ]
//     [ a → ]                           [ # # ]
#include "tilewise/svd/randomized_kernel.hpp"

#include <algorithm>
#include <type_traits>

#include "tilewise/kernel/backend.hpp"
#include "tilewise/kernel/factor/lapack_work.hpp"
#include "tilewise/kernel/product/gemm.hpp"

namespace tilewise::svd {
namespace {

constexpr std::int64_t most_registers = 3;

#if defined(__x86_64__)

template <class T> struct Register {
    typedef T type __attribute__((vector_size(64), aligned(sizeof(T)), may_alias));
};

template <class T, int rows, int registers>
__attribute__((target("avx512f,avx512vl,avx512dq,fma"), noinline)) void tile(std::int64_t k, const Strided<T>& a,
                                                                             const T* b, T* c, std::int64_t vectors) {
    using R = typename Register<T>::type;
    constexpr auto lanes = static_cast<std::int64_t>(64 / sizeof(T));
    R sum[rows][registers];
#pragma GCC unroll 8
    for (int r = 0; r < rows; ++r) {
#pragma GCC unroll 3
        for (int j = 0; j < registers; ++j) {
            sum[r][j] = *reinterpret_cast<const R*>(c + r * vectors + j * lanes);
        }
    }
    const T* row[rows];
#pragma GCC unroll 8
    for (int r = 0; r < rows; ++r) {
        row[r] = a.data + r * a.row_step;
    }
    for (std::int64_t p = 0; p < k; ++p, b += vectors) {
        R factors[registers];
#pragma GCC unroll 3
        for (int j = 0; j < registers; ++j) {
            factors[j] = *reinterpret_cast<const R*>(b + j * lanes);
        }
#pragma GCC unroll 8
        for (int r = 0; r < rows; ++r) {
            const R number = R{} + row[r][p * a.column_step];
#pragma GCC unroll 3
            for (int j = 0; j < registers; ++j) {
                sum[r][j] += number * factors[j];
            }
        }
    }
#pragma GCC unroll 8
    for (int r = 0; r < rows; ++r) {
#pragma GCC unroll 3
        for (int j = 0; j < registers; ++j) {
            *reinterpret_cast<R*>(c + r * vectors + j * lanes) = sum[r][j];
        }
    }
}

/// All rows, of so many registers' width.
template <class T, int registers>
void strip(std::int64_t m, std::int64_t k, const Strided<T>& a, const T* b, T* c, std::int64_t vectors) {
    std::int64_t i = 0;
    const auto some = [&](auto rows) {
        constexpr int count = decltype(rows)::value;
        for (; i + count <= m; i += count) {
            tile<T, count, registers>(k, {a.data + i * a.row_step, a.row_step, a.column_step}, b, c + i * vectors,
                                      vectors);
        }
    };
    some(std::integral_constant<int, 8>{});
    some(std::integral_constant<int, 4>{});
    some(std::integral_constant<int, 2>{});
    some(std::integral_constant<int, 1>{});
}

#endif

bool able_to() {
#if defined(__x86_64__)
    return kernel::backend().versions == kernel::Instructions::avx512;
#else
    return false;
#endif
}

template <class T>
void by_blas(std::int64_t m, std::int64_t k, std::int64_t vectors, const Strided<T>& a, const T* b, T* c) {
    const bool by_rows = a.column_step == 1;
    kernel::gemm({.dtype = sizeof(T) == 4 ? Dtype::float32 : Dtype::float64,
                  .m = m,
                  .n = vectors,
                  .k = k,
                  .a = {reinterpret_cast<const std::byte*>(a.data), by_rows ? a.row_step : a.column_step, !by_rows},
                  .b = {reinterpret_cast<const std::byte*>(b), vectors, false},
                  .c = reinterpret_cast<std::byte*>(c),
                  .c_stride = vectors,
                  .accumulate = true},
                 1);
}

}  // namespace

template <class T>
void multiply_few(std::int64_t m, std::int64_t k, std::int64_t vectors, const Strided<T>& a, const T* b, T* c) {
#if defined(__x86_64__)
    if (able_to()) {
        kernel::tell<T>(
            kernel::effort::gemm(static_cast<double>(m), static_cast<double>(vectors), static_cast<double>(k)));
        constexpr auto lanes = static_cast<std::int64_t>(64 / sizeof(T));
        const std::int64_t all = vectors / lanes, strips = (all + most_registers - 1) / most_registers;
        for (std::int64_t index = 0; index < strips; ++index) {
            const std::int64_t first = all * index / strips, width = all * (index + 1) / strips - first,
                               offset = first * lanes;
            if (width == 1) {
                strip<T, 1>(m, k, a, b + offset, c + offset, vectors);
            } else if (width == 2) {
                strip<T, 2>(m, k, a, b + offset, c + offset, vectors);
            } else {
                strip<T, 3>(m, k, a, b + offset, c + offset, vectors);
            }
        }
        return;
    }
#endif
    by_blas(m, k, vectors, a, b, c);
}

template void multiply_few(std::int64_t, std::int64_t, std::int64_t, const Strided<float>&, const float*, float*);
template void multiply_few(std::int64_t, std::int64_t, std::int64_t, const Strided<double>&, const double*, double*);

}  // namespace tilewise::svd
