// A matrix times a few vectors, at the speed at which the matrix comes from memory: each number of X is loaded once.
//
//     X row by row: sums of products along rows           X transposed: rows of memory, added up with factors
//
//        X  ────────▶ depth      Y  │││                      X  ────────▶ outer        z  ────────▶
//        8  ────────▶         ·     │││   in registers:      4  ────────▶    times y_l    a sum for each column,
//      rows ────────▶               ▼▼▼   8 × 3 sums       rows ────────▶    added to     in the caches
//
// An element of Z is summed in one order, whichever part of X a thread has: lane by lane in the first form, number by
// number in the second, in runs short enough for rounding errors to stay few. What a row's last numbers lack to fill a
// register is zero.
#pragma once

#include <algorithm>
#include <cstring>

#include "tilewise/kernel/isa/registers.hpp"
#include "tilewise/kernel/isa/shuffle.hpp"
#include "tilewise/kernel/product/thin_strip.hpp"

namespace tilewise::kernel {
namespace {

constexpr std::size_t extent(std::int64_t n) { return static_cast<std::size_t>(n); }

template <class T, std::size_t width> class Thin {
    using V = typename Vector<T, width>::type;
    static constexpr std::int64_t lanes = width / sizeof(T);
#if defined(__x86_64__) && !defined(__AVX512VL__)
    static constexpr bool many_registers = false;
#else
    static constexpr bool many_registers = true;
#endif
    static constexpr std::int64_t rows_at_once = many_registers ? 8 : 4, columns_at_once = many_registers ? 3 : 2;
    static constexpr std::int64_t run = 384;      // additions one after the other, before a sum begins again from zero
    static constexpr std::int64_t in_cache = 32;  // registers of so many rows of X stay in the first-level cache
    static constexpr std::int64_t y_bytes = 192 << 10, sums_bytes = 32 << 10;

public:
    /// X row by row.
    static void rows(const ThinPiece<T>& p) {
        alignas(64) V sums[extent(most_thin_columns * rows_at_once + lanes)];
        const std::int64_t groups = (p.columns + columns_at_once - 1) / columns_at_once;
        const std::int64_t steps_at_once = groups > 1 ? in_cache : run;
        const std::int64_t ahead = groups > 1 ? steps_at_once * lanes : 8 * lanes;
        // Of Y so much stays in the second-level cache while all rows pass by.
        const std::int64_t span = groups > 1 ? std::min(run, y_bytes / (p.columns * static_cast<std::int64_t>(width)) /
                                                                 steps_at_once * steps_at_once) *
                                                   lanes
                                             : run * lanes;
        for (std::int64_t begin = 0; begin < p.depth; begin += span) {
            const std::int64_t end = std::min(begin + span, p.depth);
            for (std::int64_t row = 0; row < p.outer; row += rows_at_once) {
                const std::int64_t rows = std::min(rows_at_once, p.outer - row);
                std::fill(sums, sums + p.columns * rows_at_once + lanes, V{});
                for (std::int64_t at = begin; at < end; at += steps_at_once * lanes) {
                    const std::int64_t count = std::min(steps_at_once * lanes, end - at);
                    const T* x[extent(rows_at_once)];
                    for (std::int64_t r = 0; r < rows_at_once; ++r) {
                        x[r] = p.x + std::min(row + r, p.outer - 1) * p.x_stride + at;
                    }
                    for (std::int64_t group = 0; group < groups; ++group) {
                        const std::int64_t first = p.columns * group / groups,
                                           columns = p.columns * (group + 1) / groups - first;
                        const T* y = p.y + first * p.y_stride + at;
                        V* to = sums + first * rows_at_once;
                        // Of the next rows' numbers, each group asks for its share.
                        const std::int64_t asks = rows_at_once * group / groups,
                                           asked = rows_at_once * (group + 1) / groups;
                        const auto call = groups == 1 ? dots<true> : dots<false>;
                        call(rows, columns, x, y, p.y_stride, count, to, {asks, asked, ahead});
                    }
                }
                add_lanes(p, row, rows, begin > 0 || p.accumulate, sums);
            }
        }
    }

    /// X as its transpose lies.
    static void transposed(const ThinPiece<T>& p) {
        constexpr std::int64_t all = sums_bytes / static_cast<std::int64_t>(sizeof(T));
        alignas(64) T sums[extent(all)];
        const std::int64_t height = all / p.columns / lanes * lanes;
        const std::int64_t groups = (p.columns + columns_at_once - 1) / columns_at_once;
        const std::int64_t at_once = p.columns == 1 && many_registers ? 8 : 4;
        for (std::int64_t row = 0; row < p.outer; row += height) {
            const std::int64_t rows = std::min(height, p.outer - row);
            for (std::int64_t begin = 0; begin < p.depth; begin += run) {
                const std::int64_t end = std::min(begin + run, p.depth);
                std::fill(sums, sums + p.columns * height, T{});
                for (std::int64_t at = begin; at < end;) {
                    const std::int64_t taken = end - at >= at_once ? at_once : 1;
                    const T* x = p.x + at * p.x_stride + row;
                    const std::int64_t ahead = at + 2 * taken <= p.depth ? taken * p.x_stride : 0;
                    for (std::int64_t group = 0; group < groups; ++group) {
                        const std::int64_t first = p.columns * group / groups,
                                           columns = p.columns * (group + 1) / groups - first;
                        add_rows(taken, columns, x, p.x_stride, p.y + first * p.y_stride + at, p.y_stride,
                                 sums + first * height, height, rows, group == 0 ? ahead : 0);
                    }
                    at += taken;
                }
                const bool accumulate = begin > 0 || p.accumulate;
                for (std::int64_t c = 0; c < p.columns; ++c) {
                    store(p.z + row * p.z_row + c * p.z_column, p.z_row, sums + c * height, rows, accumulate);
                }
            }
        }
    }

private:
    static V load_some(const T* from, std::int64_t count) {
        V value{};
        std::memcpy(&value, from, static_cast<std::size_t>(count) * sizeof(T));
        return value;
    }

    static void store(T* to, std::int64_t stride, const T* from, std::int64_t count, bool accumulate) {
        if (accumulate) {
            for (std::int64_t i = 0; i < count; ++i) {
                to[i * stride] += from[i];
            }
        } else {
            for (std::int64_t i = 0; i < count; ++i) {
                to[i * stride] = from[i];
            }
        }
    }

    /// Rows [begin, end) of those at hand, of which numbers `ahead` are wanted soon.
    struct Asking {
        std::int64_t begin, end, ahead;
    };

    template <bool alone> static void dots(std::int64_t rows, std::int64_t columns, const T* const* x, const T* y,
                                           std::int64_t y_stride, std::int64_t count, V* sums, const Asking& asking) {
        constexpr std::int64_t all = rows_at_once, half = all / 2;
        const auto call = rows <= half   ? columns == 1   ? dot<half, 1, alone>
                                           : columns == 2 ? dot<half, 2, alone>
                                                          : dot<half, 3, alone>
                          : columns == 1 ? dot<all, 1, alone>
                          : columns == 2 ? dot<all, 2, alone>
                                         : dot<all, 3, alone>;
        call(x, y, y_stride, count, sums, asking);
    }

    /// sums[c][r] += Σ x_r·y_c over `count` numbers.
    /// `alone`: there is one group, which asks for all.
    template <std::int64_t rows, std::int64_t columns, bool alone>
    static void dot(const T* const* x, const T* y, std::int64_t y_stride, std::int64_t count, V* sums,
                    const Asking& asking) {
        V sum[extent(columns)][extent(rows)];
        V factor[extent(columns)];
#pragma GCC unroll 4
        for (std::int64_t c = 0; c < columns; ++c) {
#pragma GCC unroll 8
            for (std::int64_t r = 0; r < rows; ++r) {
                sum[c][r] = sums[c * rows_at_once + r];
            }
        }
        const std::int64_t whole = count / lanes * lanes;
        for (std::int64_t at = 0; at < whole; at += lanes) {
            if constexpr (!alone) {
                for (std::int64_t r = asking.begin; r < asking.end; ++r) {
                    __builtin_prefetch(x[r] + at + asking.ahead);
                }
            }
#pragma GCC unroll 4
            for (std::int64_t c = 0; c < columns; ++c) {
                factor[c] = load<T, width>(y + c * y_stride + at);
            }
#pragma GCC unroll 8
            for (std::int64_t r = 0; r < rows; ++r) {
                const V value = load<T, width>(x[r] + at);
                if constexpr (alone) {
                    __builtin_prefetch(x[r] + at + asking.ahead);
                }
#pragma GCC unroll 4
                for (std::int64_t c = 0; c < columns; ++c) {
                    sum[c][r] = multiply_add(value, factor[c], sum[c][r]);
                }
            }
        }
        if (whole < count) {
#pragma GCC unroll 4
            for (std::int64_t c = 0; c < columns; ++c) {
                factor[c] = load_some(y + c * y_stride + whole, count - whole);
            }
#pragma GCC unroll 8
            for (std::int64_t r = 0; r < rows; ++r) {
                const V value = load_some(x[r] + whole, count - whole);
#pragma GCC unroll 4
                for (std::int64_t c = 0; c < columns; ++c) {
                    sum[c][r] = multiply_add(value, factor[c], sum[c][r]);
                }
            }
        }
#pragma GCC unroll 4
        for (std::int64_t c = 0; c < columns; ++c) {
#pragma GCC unroll 8
            for (std::int64_t r = 0; r < rows; ++r) {
                sums[c * rows_at_once + r] = sum[c][r];
            }
        }
    }

    /// Registers a, b → a0 + a1, a2 + a3, …, b0 + b1, …
    template <std::size_t... position> static V pairs(const V& a, const V& b, Positions<position...>) {
        return shuffled(a, b, Positions<(2 * position)...>{}) + shuffled(a, b, Positions<(2 * position + 1)...>{});
    }

    static void add_lanes(const ThinPiece<T>& p, std::int64_t row, std::int64_t rows, bool accumulate, V* sums) {
        constexpr typename UpTo<static_cast<std::size_t>(lanes)>::type positions;
        const std::int64_t all = p.columns * rows_at_once;
        alignas(64) T totals[extent(most_thin_columns * rows_at_once + lanes)];
        for (std::int64_t at = 0; at < all; at += lanes) {
#pragma GCC unroll 4
            for (std::int64_t left = lanes; left > 1; left /= 2) {
                for (std::int64_t i = 0; i < left / 2; ++i) {
                    sums[at + i] = pairs(sums[at + 2 * i], sums[at + 2 * i + 1], positions);
                }
            }
            std::memcpy(totals + at, sums + at, sizeof(V));
        }
        for (std::int64_t c = 0; c < p.columns; ++c) {
            store(p.z + row * p.z_row + c * p.z_column, p.z_row, totals + c * rows_at_once, rows, accumulate);
        }
    }

    static void add_rows(std::int64_t taken, std::int64_t columns, const T* x, std::int64_t x_stride, const T* y,
                         std::int64_t y_stride, T* sums, std::int64_t height, std::int64_t rows, std::int64_t ahead) {
        const auto call = taken == 8     ? add<8, 1>
                          : taken == 4   ? columns == 1   ? add<4, 1>
                                           : columns == 2 ? add<4, 2>
                                                          : add<4, 3>
                          : columns == 1 ? add<1, 1>
                          : columns == 2 ? add<1, 2>
                                         : add<1, 3>;
        call(x, x_stride, y, y_stride, sums, height, rows, ahead);
    }

    /// sums[c] += Σ x_l·y_lc over `taken` rows of memory. Asks for the rows `ahead` of each.
    template <std::int64_t taken, std::int64_t columns>
    static void add(const T* x, std::int64_t x_stride, const T* y, std::int64_t y_stride, T* sums, std::int64_t height,
                    std::int64_t rows, std::int64_t ahead) {
        T factor[extent(columns)][extent(taken)];
        V factors[extent(columns)][extent(taken)];
#pragma GCC unroll 4
        for (std::int64_t c = 0; c < columns; ++c) {
#pragma GCC unroll 8
            for (std::int64_t l = 0; l < taken; ++l) {
                factor[c][l] = y[c * y_stride + l];
                factors[c][l] = everywhere<V>(factor[c][l]);
            }
        }
        std::int64_t at = 0;
        for (; at + lanes <= rows; at += lanes) {
            V value[extent(taken)];
#pragma GCC unroll 8
            for (std::int64_t l = 0; l < taken; ++l) {
                value[l] = load<T, width>(x + l * x_stride + at);
                if (ahead != 0) {
                    __builtin_prefetch(x + l * x_stride + at + ahead);
                }
            }
#pragma GCC unroll 4
            for (std::int64_t c = 0; c < columns; ++c) {
                V* to = reinterpret_cast<V*>(sums + c * height + at);
                V sum = *to;
#pragma GCC unroll 8
                for (std::int64_t l = 0; l < taken; ++l) {
                    sum = multiply_add(value[l], factors[c][l], sum);
                }
                *to = sum;
            }
        }
        for (; at < rows; ++at) {
            for (std::int64_t c = 0; c < columns; ++c) {
                T sum = sums[c * height + at];
                for (std::int64_t l = 0; l < taken; ++l) {
                    sum = multiply_add(x[l * x_stride + at], factor[c][l], sum);
                }
                sums[c * height + at] = sum;
            }
        }
    }
};

}  // namespace
}  // namespace tilewise::kernel
