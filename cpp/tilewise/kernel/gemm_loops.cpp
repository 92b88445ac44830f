// Plain loops for every type, and the integer product in tiles that stay in the first-level cache.
#include "tilewise/kernel/gemm_loops.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "tilewise/kernel/versions.hpp"

namespace tilewise::kernel {
namespace {

template <class T> T element(const Operand& operand, std::int64_t row, std::int64_t column) {
    const auto* data = reinterpret_cast<const T*>(operand.data);
    return operand.transposed ? data[column * operand.stride + row] : data[row * operand.stride + column];
}

constexpr std::int64_t tile_rows = 4, tile_depth = 128, tile_columns = 512;

// c[r][j] += Σ a[r][p]·b[p][j] for 4 rows at once, so that each loaded vector of b is used four times.
TILEWISE_INLINE void integer_tile(std::int64_t rows, std::int64_t columns, std::int64_t depth, const std::uint64_t* a,
                                  const std::uint64_t* b, std::uint64_t* c, std::int64_t c_stride) {
    for (std::int64_t p = 0; p < depth; ++p) {
        const std::uint64_t* b_row = b + p * tile_columns;
        if (rows == tile_rows) {
            const std::uint64_t a0 = a[p], a1 = a[tile_depth + p], a2 = a[2 * tile_depth + p],
                                a3 = a[3 * tile_depth + p];
            std::uint64_t *c0 = c, *c1 = c + c_stride, *c2 = c1 + c_stride, *c3 = c2 + c_stride;
#pragma omp simd
            for (std::int64_t j = 0; j < columns; ++j) {
                c0[j] += a0 * b_row[j];
                c1[j] += a1 * b_row[j];
                c2[j] += a2 * b_row[j];
                c3[j] += a3 * b_row[j];
            }
        } else {
            for (std::int64_t r = 0; r < rows; ++r) {
                const std::uint64_t factor = a[r * tile_depth + p];
                std::uint64_t* c_row = c + r * c_stride;
#pragma omp simd
                for (std::int64_t j = 0; j < columns; ++j) {
                    c_row[j] += factor * b_row[j];
                }
            }
        }
    }
}

}  // namespace

void plain_gemm(const Product& p) {
    const Dtype dtype = p.dtype == Dtype::int64 ? Dtype::uint64 : p.dtype;  // the same bits, and it may wrap
    with_compute_type(dtype, [&](auto tag) {
        using T = typename decltype(tag)::type;
        for (std::int64_t i = 0; i < p.m; ++i) {
            T* c_row = reinterpret_cast<T*>(p.c) + i * p.c_stride;
            if (!p.accumulate) {
                std::fill(c_row, c_row + p.n, T{});
            }
            for (std::int64_t l = 0; l < p.k; ++l) {
                const T factor = element<T>(p.a, i, l);
                for (std::int64_t j = 0; j < p.n; ++j) {
                    c_row[j] += factor * element<T>(p.b, l, j);
                }
            }
        }
    });
}

void integer_gemm(const Product& p) {
    using T = std::uint64_t;
    auto* c = reinterpret_cast<T*>(p.c);
    if (!p.accumulate) {
        for (std::int64_t i = 0; i < p.m; ++i) {
            std::fill(c + i * p.c_stride, c + i * p.c_stride + p.n, T{0});
        }
    }
    std::vector<T> b(static_cast<std::size_t>(tile_depth * tile_columns));
    std::array<T, static_cast<std::size_t>(tile_rows * tile_depth)> a{};
    for (std::int64_t l = 0; l < p.k; l += tile_depth) {
        const std::int64_t depth = std::min(tile_depth, p.k - l);
        for (std::int64_t j = 0; j < p.n; j += tile_columns) {
            const std::int64_t columns = std::min(tile_columns, p.n - j);
            for (std::int64_t q = 0; q < depth; ++q) {
                for (std::int64_t r = 0; r < columns; ++r) {
                    b[static_cast<std::size_t>(q * tile_columns + r)] = element<T>(p.b, l + q, j + r);
                }
            }
            for (std::int64_t i = 0; i < p.m; i += tile_rows) {
                const std::int64_t rows = std::min(tile_rows, p.m - i);
                for (std::int64_t r = 0; r < rows; ++r) {
                    for (std::int64_t q = 0; q < depth; ++q) {
                        a[static_cast<std::size_t>(r * tile_depth + q)] = element<T>(p.a, i + r, l + q);
                    }
                }
                in_versions<integer_tile>(rows, columns, depth, a.data(), b.data(), c + i * p.c_stride + j, p.c_stride);
            }
        }
    }
}

}  // namespace tilewise::kernel
