// A packed, three-level blocked product with an in-register tile of 8 rows by 3 vectors.
//
//        B, packed: depth × columns of it       [ | | | ]  panels of 3 vectors, one row of a panel after the other:
//                   stay in the third-level               stays in the first- and second-level cache while all of A's
//                   cache                                  panels pass by
//
//   A, packed: rows × depth of it    [ = ]      [ # . . ]  C: a tile # of 8 × 3 vectors is in 24 of the 32 registers
//              stay in the second-   [ = ]      [ . . . ]     for the whole depth: 24 multiply-adds for 3 loads and
//              level cache           [ = ]      [ . . . ]     8 broadcasts
//
// K. Goto and R. van de Geijn, "Anatomy of high-performance matrix multiplication", 2008; F. Van Zee and R. van de
// Geijn, "BLIS", 2015.
#include "tilewise/kernel/gemm_tiled.hpp"

#include <algorithm>
#include <array>
#include <cstring>

#include "tilewise/kernel/backend.hpp"

namespace tilewise::kernel {
namespace {

constexpr std::int64_t tile_rows = 8, tile_vectors = 3;
constexpr std::int64_t depth = 384, block_rows = 128, block_columns = tiled_gemm_columns;

template <class T> constexpr std::int64_t lanes = 64 / static_cast<std::int64_t>(sizeof(T));
template <class T> constexpr std::int64_t tile_columns = tile_vectors * lanes<T>;

#if defined(__x86_64__)

template <class T> struct Vector {
    typedef T type __attribute__((vector_size(64), aligned(sizeof(T)), may_alias));
};

// C tile (8 × 3 vectors, rows `stride` apart) = or += the product of one packed panel of A and one of B.
template <class T>
__attribute__((target("avx512f,avx512vl,avx512dq,fma"), noinline)) void tile(std::int64_t k, const T* a, const T* b,
                                                                             T* c, std::int64_t stride,
                                                                             bool accumulate) {
    using V = typename Vector<T>::type;
    V sum[tile_rows][tile_vectors];
#pragma GCC unroll 8
    for (std::int64_t r = 0; r < tile_rows; ++r) {
        sum[r][0] = sum[r][1] = sum[r][2] = V{};
        __builtin_prefetch(c + r * stride, 1);
        __builtin_prefetch(c + r * stride + lanes<T>, 1);
        __builtin_prefetch(c + r * stride + 2 * lanes<T>, 1);
    }
    for (std::int64_t p = 0; p < k; ++p) {
        const V* b_row = reinterpret_cast<const V*>(b);
        const V b0 = b_row[0], b1 = b_row[1], b2 = b_row[2];
#pragma GCC unroll 8
        for (std::int64_t r = 0; r < tile_rows; ++r) {
            const V factor = V{} + a[r];
            sum[r][0] += factor * b0;
            sum[r][1] += factor * b1;
            sum[r][2] += factor * b2;
        }
        a += tile_rows;
        b += tile_columns<T>;
    }
#pragma GCC unroll 8
    for (std::int64_t r = 0; r < tile_rows; ++r) {
        V* row = reinterpret_cast<V*>(c + r * stride);
        if (accumulate) {
            sum[r][0] += row[0];
            sum[r][1] += row[1];
            sum[r][2] += row[2];
        }
        row[0] = sum[r][0];
        row[1] = sum[r][1];
        row[2] = sum[r][2];
    }
}

#else

template <class T> void tile(std::int64_t, const T*, const T*, T*, std::int64_t, bool) {}

#endif

/// Panels of `width` along the outer side, each as [depth][width], padded with zeros. `along` is the distance between
/// neighbours on the outer side, `down` between those on the inner side; one of the two is 1.
template <class T, std::int64_t width>
void pack(const T* from, std::int64_t outer, std::int64_t inner, std::int64_t along, std::int64_t down, T* to) {
    for (std::int64_t begin = 0; begin < outer; begin += width, to += width * inner) {
        const std::int64_t here = std::min(width, outer - begin);
        const T* panel = from + begin * along;
        for (std::int64_t p = 0; p < inner; ++p) {
            T* row = to + p * width;
            if (here == width && along == 1) {
                std::memcpy(row, panel + p * down, width * sizeof(T));
            } else if (here == width) {
                for (std::int64_t i = 0; i < width; ++i) {
                    row[i] = panel[i * along + p * down];
                }
            } else {
                for (std::int64_t i = 0; i < width; ++i) {
                    row[i] = i < here ? panel[i * along + p * down] : T{};
                }
            }
        }
    }
}

template <class T> void tile_at_edge(std::int64_t k, const T* a, const T* b, T* c, std::int64_t stride, bool accumulate,
                                     std::int64_t rows, std::int64_t columns) {
    alignas(64) std::array<T, static_cast<std::size_t>(tile_rows * tile_columns<T>)> whole;
    tile(k, a, b, whole.data(), tile_columns<T>, false);
    for (std::int64_t r = 0; r < rows; ++r) {
        for (std::int64_t j = 0; j < columns; ++j) {
            const T value = whole[static_cast<std::size_t>(r * tile_columns<T> + j)];
            c[r * stride + j] = accumulate ? c[r * stride + j] + value : value;
        }
    }
}

template <class T> void multiply_block(const T* a, const T* b, T* c, std::int64_t stride, std::int64_t m,
                                       std::int64_t n, std::int64_t k, bool accumulate) {
    for (std::int64_t j = 0; j < n; j += tile_columns<T>) {
        const T* b_panel = b + j * k;
        const std::int64_t columns = std::min(tile_columns<T>, n - j);
        for (std::int64_t i = 0; i < m; i += tile_rows) {
            const T* a_panel = a + i * k;
            const std::int64_t rows = std::min(tile_rows, m - i);
            if (rows == tile_rows && columns == tile_columns<T>) {
                tile(k, a_panel, b_panel, c + i * stride + j, stride, accumulate);
            } else {
                tile_at_edge(k, a_panel, b_panel, c + i * stride + j, stride, accumulate, rows, columns);
            }
        }
    }
}

template <class T> void multiply(const Product& p, T* a_panels, T* b_panels) {
    const auto *a = reinterpret_cast<const T*>(p.a.data), *b = reinterpret_cast<const T*>(p.b.data);
    auto* c = reinterpret_cast<T*>(p.c);
    const std::int64_t a_row = p.a.transposed ? 1 : p.a.stride, a_column = p.a.transposed ? p.a.stride : 1;
    const std::int64_t b_row = p.b.transposed ? 1 : p.b.stride, b_column = p.b.transposed ? p.b.stride : 1;
    for (std::int64_t j = 0; j < p.n; j += block_columns) {
        const std::int64_t n = std::min(block_columns, p.n - j);
        for (std::int64_t l = 0; l < p.k; l += depth) {
            const std::int64_t k = std::min(depth, p.k - l);
            pack<T, tile_columns<T>>(b + l * b_row + j * b_column, n, k, b_column, b_row, b_panels);
            for (std::int64_t i = 0; i < p.m; i += block_rows) {
                const std::int64_t m = std::min(block_rows, p.m - i);
                pack<T, tile_rows>(a + i * a_row + l * a_column, m, k, a_row, a_column, a_panels);
                multiply_block(a_panels, b_panels, c + i * p.c_stride + j, p.c_stride, m, n, k, p.accumulate || l > 0);
            }
        }
    }
}

}  // namespace

bool tiled_gemm_suits(const Product& p) {
#if defined(__x86_64__)
    static const bool able = backend().gemm && __builtin_cpu_is("amd") != 0;
    return able && (p.dtype == Dtype::float32 || p.dtype == Dtype::float64) && p.m >= 64 && p.n >= 96 && p.k >= 64;
#else
    return false;
#endif
}

void TiledGemm::operator()(const Product& product) {
    if (a_panels_.data() == nullptr) {
        a_panels_ = Buffer(static_cast<std::size_t>(block_rows * depth) * sizeof(double));
        b_panels_ = Buffer(static_cast<std::size_t>((block_columns + 2 * tile_columns<float>)*depth) * sizeof(double));
    }
    const auto run = [&](auto zero) {
        using T = decltype(zero);
        multiply(product, reinterpret_cast<T*>(a_panels_.data()), reinterpret_cast<T*>(b_panels_.data()));
    };
    product.dtype == Dtype::float32 ? run(float{}) : run(double{});
}

}  // namespace tilewise::kernel
