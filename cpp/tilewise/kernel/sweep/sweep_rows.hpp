// The inner loop of stencil sweeps: a few rows of the next level from the rows around them, a register of columns at a
// time.
//
// Rows lie in lanes (see sweep_lanes.hpp), so the neighbour to the west or east of a whole register is simply the
// register before or behind it. What neighbouring registers share is kept from one to the next: the cells of the centre
// rows, or sums of mirrored rows.
#pragma once

#include <cstdint>

#include "tilewise/kernel/sweep/sweep_sum.hpp"

namespace tilewise::kernel {
namespace {

/// Rows computed together: as many as the registers hold cells of, so that a row is loaded once for several results.
template <int radius, SumForm form, bool many_registers> constexpr int rows_together() {
    if (form == SumForm::star_symmetric || form == SumForm::star) {
        return radius == 1 ? (many_registers ? 4 : 2) : (radius == 2 && many_registers ? 2 : 1);
    }
    if (form == SumForm::box) {
        return many_registers && radius <= 2 ? 4 : 2;
    }
    return radius == 1 && many_registers ? 2 : 1;
}

/// Whether the registers hold the sums of mirrored rows for all columns that a cell's sum takes.
template <class V, int radius, SumForm form> constexpr bool keeps_pairs() {
    return form == SumForm::box_symmetric && radius <= (sizeof(V) == 64 ? 2 : 1);
}

/// Whether sum_rows takes every cell to the west of x from registers and not from memory, so that out[q] may be in[q +
/// 2·radius].
template <class V, int radius, SumForm form> constexpr bool sums_in_place() {
    return is_star(form) || keeps_pairs<V, radius, form>();
}

constexpr int registers_across = 4;  ///< of a row, whose sums are made side by side where sum_registers makes them

/// The sums of `across` registers of each row from x on, where there are more cells than registers. Cells (or sums of
/// mirrored rows) go into all sums that take them while they are in a register, and there are so many sums that none
/// waits for its last addition.
template <int radius, SumForm form, int together, int across, class V>
[[gnu::always_inline]] inline void sum_registers(const V* w, const V* const* row, V* const* to, std::int64_t x) {
    constexpr int around = 2 * radius, all = together + around;
    V sum[together][across];
    if constexpr (is_symmetric(form)) {
#pragma GCC unroll 4
        for (int q = 0; q < together; ++q) {
#pragma GCC unroll 5
            for (int a = 0; a <= radius; ++a) {
                V pair[across + around];
#pragma GCC unroll 12
                for (int d = 0; d < across + around; ++d) {
                    const std::int64_t at = x + d - radius;
                    pair[d] = a == 0 ? row[q + radius][at] : row[q + radius - a][at] + row[q + radius + a][at];
                }
#pragma GCC unroll 5
                for (int b = 0; b <= radius; ++b) {
                    const V weight = w[a * (radius + 1) + b];
#pragma GCC unroll 4
                    for (int k = 0; k < across; ++k) {
                        const V* centre = pair + k + radius;
                        const V both = b == 0 ? *centre : centre[-b] + centre[b];
                        sum[q][k] = a == 0 && b == 0 ? weight * both : multiply_add(weight, both, sum[q][k]);
                    }
                }
            }
        }
    } else {
#pragma GCC unroll 12
        for (int i = 0; i < all; ++i) {
#pragma GCC unroll 9
            for (int d = 0; d <= around; ++d) {
#pragma GCC unroll 4
                for (int q = 0; q < together; ++q) {
                    const int tap = (i - q) * (around + 1) + d;  // taken in order, as sum_of_cells does
                    if (i < q || i > q + around) {
                        continue;
                    }
                    const V weight = w[tap];
#pragma GCC unroll 4
                    for (int k = 0; k < across; ++k) {
                        const V cell = row[i][x + k + d - radius];
                        sum[q][k] = tap == 0 ? weight * cell : multiply_add(weight, cell, sum[q][k]);
                    }
                }
            }
        }
    }
#pragma GCC unroll 4
    for (int q = 0; q < together; ++q) {
#pragma GCC unroll 4
        for (int k = 0; k < across; ++k) {
            to[q][x + k] = sum[q][k];
        }
    }
}

/// `in[i]` is row i − radius, each with `radius` registers before and behind its `count` ones; `out[q]` is row q. No
/// other out is an in.
template <int radius, SumForm form, int together, class V> [[gnu::noinline]] void sum_rows(const V* weights,
                                                                                           const V* const* in,
                                                                                           V* const* out,
                                                                                           std::int64_t count) {
    constexpr int taps = taps_of(form, radius), around = 2 * radius, all = together + around;
    V w[taps];
#pragma GCC unroll 81
    for (int tap = 0; tap < taps; ++tap) {
        w[tap] = weights[tap];
    }
    const V* row[all];
    V* to[together];
#pragma GCC unroll 12
    for (int i = 0; i < all; ++i) {
        row[i] = in[i];
    }
#pragma GCC unroll 4
    for (int q = 0; q < together; ++q) {
        to[q] = out[q];
    }
    if constexpr (is_star(form)) {
        V centre[together][around + 1];  // of each row the cells x − radius … x + radius
#pragma GCC unroll 4
        for (int q = 0; q < together; ++q) {
#pragma GCC unroll 8
            for (int d = 0; d < around; ++d) {
                centre[q][d + 1] = row[q + radius][d - radius];
            }
        }
        for (std::int64_t x = 0; x < count; ++x) {
            V edge[all];  // the cells at x of the rows above and below
#pragma GCC unroll 4
            for (int q = 0; q < together; ++q) {
#pragma GCC unroll 8
                for (int d = 0; d < around; ++d) {
                    centre[q][d] = centre[q][d + 1];
                }
                centre[q][around] = row[q + radius][x + radius];
            }
#pragma GCC unroll 4
            for (int a = 0; a < radius; ++a) {
                edge[a] = row[a][x];
                edge[all - 1 - a] = row[all - 1 - a][x];
            }
#pragma GCC unroll 4
            for (int q = 0; q < together; ++q) {
                const auto at = [&](int dy, int dx) TILEWISE_INLINE_LAMBDA {
                    const int i = q + dy + radius;
                    return dy == 0                           ? centre[q][dx + radius]
                           : i < radius || i >= all - radius ? edge[i]
                                                             : centre[i - radius][radius];
                };
                if constexpr (is_symmetric(form)) {
                    to[q][x] = sum_of_pairs<radius, form>(w, [&](int a, int dx) TILEWISE_INLINE_LAMBDA {
                        return a == 0 ? at(0, dx) : at(-a, dx) + at(a, dx);
                    });
                } else {
                    to[q][x] = sum_of_cells<radius, form>(w, at);
                }
            }
        }
    } else if constexpr (keeps_pairs<V, radius, form>()) {
        V pairs[together][radius + 1]
               [around + 1];  // of each row the centre and the sums of mirrored rows, x − radius … x + radius
        const auto take = [&](std::int64_t x) TILEWISE_INLINE_LAMBDA {
            V cell[all];
#pragma GCC unroll 12
            for (int i = 0; i < all; ++i) {
                cell[i] = row[i][x];
            }
#pragma GCC unroll 4
            for (int q = 0; q < together; ++q) {
                pairs[q][0][around] = cell[q + radius];
#pragma GCC unroll 4
                for (int a = 1; a <= radius; ++a) {
                    pairs[q][a][around] = cell[q + radius - a] + cell[q + radius + a];
                }
            }
        };
        const auto shift = [&]() TILEWISE_INLINE_LAMBDA {
#pragma GCC unroll 4
            for (int q = 0; q < together; ++q) {
#pragma GCC unroll 4
                for (int a = 0; a <= radius; ++a) {
#pragma GCC unroll 8
                    for (int d = 0; d < around; ++d) {
                        pairs[q][a][d] = pairs[q][a][d + 1];
                    }
                }
            }
        };
#pragma GCC unroll 8
        for (int d = 0; d < around; ++d) {
            take(d - radius);
            shift();
        }
        for (std::int64_t x = 0; x < count; ++x) {
            take(x + radius);
#pragma GCC unroll 4
            for (int q = 0; q < together; ++q) {
                to[q][x] = sum_of_pairs<radius, form>(
                    w, [&](int a, int dx) TILEWISE_INLINE_LAMBDA { return pairs[q][a][dx + radius]; });
            }
            shift();
        }
    } else {
        std::int64_t x = 0;
        for (; x + registers_across <= count; x += registers_across) {
            sum_registers<radius, form, together, registers_across>(w, row, to, x);
        }
        for (; x < count; ++x) {
            sum_registers<radius, form, together, 1>(w, row, to, x);
        }
    }
}

/// The loops for one form and radius, chosen once a piece.
template <class T, std::size_t width> struct RowSums {
    using V = typename Vector<T, width>::type;
    void (*several)(const V*, const V* const*, V* const*, std::int64_t);  ///< `together` rows
    void (*one)(const V*, const V* const*, V* const*, std::int64_t);
    int together;
    bool in_place;
};
template <class T, std::size_t width, int radius, SumForm form> constexpr RowSums<T, width> row_sums() {
    using V = typename Vector<T, width>::type;
    constexpr int together = rows_together<radius, form, width == 64>();
    return {.several = sum_rows<radius, form, together>,
            .one = sum_rows<radius, form, 1>,
            .together = together,
            .in_place = sums_in_place<V, radius, form>()};
}

}  // namespace
}  // namespace tilewise::kernel
