// Several lines of memory at a time, so that what a number meets is loaded once for all of them.
//
//     lines are rows:                                    lines are columns:
//        x₀ x₁ w  ──────────▶  loaded once                  y₀ y₁ sums squares  ──────▶  loaded and stored once
//        line 0   ──────────▶  y₀ y₁ sum squares            line 0  · x₀ x₁ w   ──────▶  added to all four
//        line 1   ──────────▶  y₀ y₁ sum squares            line 1  · x₀ x₁ w   ──────▶
//        …                     in registers                 …
//
// Complex numbers are pairs of reals, without the library's care for infinities, which a check does not need. Along a
// line, x·z is two sums of reals, of Re(x)·Re(z) − Im(x)·Im(z) and of Im(x)·Re(z) + Re(x)·Im(z): so there are four
// vectors of reals in the place of two of complex numbers.
#pragma once

#include <cstdint>
#include <cstring>

#include "tilewise/base/inline.hpp"
#include "tilewise/kernel/isa/registers.hpp"
#include "tilewise/kernel/isa/shuffle.hpp"
#include "tilewise/kernel/product/apply_strip.hpp"

namespace tilewise::kernel {
namespace {

/// Registers of `width` bytes of the type that is summed in.
template <class R, std::size_t width> struct Summed {
    using Number = SummedIn<R>;
    using V = typename Vector<Number, width>::type;
    using Bits = typename Vector<std::int64_t, width>::type;
    static constexpr std::int64_t lanes = width / sizeof(Number);
    /// Lines that are taken together: as many as registers hold sums of.
    static constexpr int together = width == 64 ? 4 : 2;

    /// The next numbers of a line, of which there are `count`; zeros stand for those that are not.
    [[gnu::always_inline]] static V next(const R* from, std::int64_t count = lanes) {
        if constexpr (std::is_same_v<R, Number>) {
            return some(from, count);
        } else if (count >= lanes) {
            return load_widened<width>(from);
        } else {
            R numbers[static_cast<std::size_t>(lanes)] = {};
            std::memcpy(numbers, from, static_cast<std::size_t>(count) * sizeof(R));
            return load_widened<width>(numbers);
        }
    }
    [[gnu::always_inline]] static V some(const Number* from, std::int64_t count) {
        if (count >= lanes) {
            return load<Number, width>(from);
        }
        V numbers{};
        std::memcpy(&numbers, from, static_cast<std::size_t>(count) * sizeof(Number));
        return numbers;
    }
    [[gnu::always_inline]] static void put(Number* to, const V& numbers, std::int64_t count) {
        if (count >= lanes) {
            std::memcpy(to, &numbers, width);
        } else {
            std::memcpy(to, &numbers, static_cast<std::size_t>(count) * sizeof(Number));
        }
    }
    /// Calls `step(k, count)` for each register of [from, to), of which the last may hold fewer numbers.
    template <class Step> [[gnu::always_inline]] static void walk_over(std::int64_t from, std::int64_t to,
                                                                       const Step& step) {
        std::int64_t k = from;
        for (; k + lanes <= to; k += lanes) {
            step(k, lanes);
        }
        if (k < to) {
            step(k, to - k);
        }
    }
    [[gnu::always_inline]] static V size(const V& numbers) { return (V)((Bits)numbers & INT64_MAX); }
    [[gnu::always_inline]] static Number total(const V& numbers) {
        Number all[static_cast<std::size_t>(lanes)], sum{};
        std::memcpy(all, &numbers, sizeof all);
        for (const Number one : all) {
            sum += one;
        }
        return sum;
    }
};

constexpr std::int64_t strip = 512;  // reals of a line: what belongs to them stays in the first-level cache

template <class R, std::size_t width, int probes, int together>
TILEWISE_INLINE void along(const CheckRows<R>& t, std::int64_t first, std::int64_t from, std::int64_t to) {
    using S = Summed<R, width>;
    using V = typename S::V;
    using Number = typename S::Number;
    V image[together][probes] = {}, sums[together] = {}, squares[together] = {};
    const Number* probe_at[probes];
    const R* line[together];
    const double* weights = t.weights;
#pragma GCC unroll 4
    for (int p = 0; p < probes; ++p) {
        probe_at[p] = t.probe[p];
    }
#pragma GCC unroll 4
    for (int l = 0; l < together; ++l) {
        line[l] = t.lines[first + l];
    }
    S::walk_over(from, to, [&](std::int64_t k, std::int64_t left) TILEWISE_INLINE_LAMBDA {
        V probe[probes], weight{};
#pragma GCC unroll 4
        for (int p = 0; p < probes; ++p) {
            probe[p] = S::some(probe_at[p] + k, left);
        }
        if constexpr (!std::is_integral_v<R>) {
            weight = S::some(weights + k, left);
        }
#pragma GCC unroll 4
        for (int l = 0; l < together; ++l) {
            const V value = S::next(line[l] + k, left);
            if constexpr (!std::is_integral_v<R>) {
                const V weighted = S::size(value) * weight;
                sums[l] += weighted;
                squares[l] = multiply_add(weighted, weighted, squares[l]);
            }
#pragma GCC unroll 4
            for (int p = 0; p < probes; ++p) {
                image[l][p] = multiply_add(value, probe[p], image[l][p]);
            }
        }
    });
#pragma GCC unroll 4
    for (int l = 0; l < together; ++l) {
#pragma GCC unroll 4
        for (int p = 0; p < probes; ++p) {
            t.image[p][(first + l) * t.step] += S::total(image[l][p]);
        }
        if constexpr (!std::is_integral_v<R>) {
            t.sums[first + l] += S::total(sums[l]);
            t.squares[first + l] += S::total(squares[l]);
        }
    }
}

template <class R, int probes, std::size_t width> void along_rows(const CheckRows<R>& t) {
    constexpr int together = Summed<R, width>::together / (probes == 4 ? 2 : 1);
    for (std::int64_t i = t.begin; i < t.end;) {
        const bool all = i + together <= t.end;
        for (const CheckRun* run = t.runs; run < t.runs + t.run_count; ++run) {
            all ? along<R, width, probes, together>(t, i, run->begin, run->end)
                : along<R, width, probes, 1>(t, i, run->begin, run->end);
        }
        i += all ? together : 1;
    }
}

/// Neighbours change places.
template <class V, std::size_t... lane> TILEWISE_INLINE V in_pairs(const V& v, Positions<lane...>) {
    return shuffled(v, v, Positions<(lane ^ 1U)...>{});
}

template <class R, std::size_t width, int parts, int together>
TILEWISE_INLINE void across(const CheckColumns<R>& t, const std::int64_t* columns, std::int64_t from, std::int64_t to) {
    using S = Summed<R, width>;
    using V = typename S::V;
    V probe[together][2], turned[together][2], weight[together];
    const R* line[together];
    typename S::Number *const first_at = t.image[0], *const second_at = t.image[1];
    double *const sums_at = t.sums, *const squares_at = t.squares;
    typename S::Number signs[S::lanes];  // of products of imaginary parts
    for (std::int64_t lane = 0; lane < S::lanes; ++lane) {
        signs[lane] = static_cast<typename S::Number>(lane % 2 == 0 ? -1 : 1);
    }
    const V sign = load<typename S::Number, width>(signs);
#pragma GCC unroll 4
    for (int l = 0; l < together; ++l) {
        const std::int64_t j = columns[l];
        line[l] = t.lines[j];
        weight[l] = V{};
        if constexpr (!std::is_integral_v<R>) {
            weight[l] = everywhere<V>(t.weights[j]);
        }
#pragma GCC unroll 2
        for (std::size_t p = 0; p < 2; ++p) {
            probe[l][p] = everywhere<V>(t.probe[p][j * parts]);
            if constexpr (parts == 2) {
                turned[l][p] = everywhere<V>(t.probe[p][j * parts + 1]) * sign;
            }
        }
    }
    S::walk_over(from, to, [&](std::int64_t k, std::int64_t left) TILEWISE_INLINE_LAMBDA {
        V first = S::some(first_at + k, left), second = S::some(second_at + k, left), sums{}, squares{};
        if constexpr (!std::is_integral_v<R>) {
            sums = S::some(sums_at + k, left);
            squares = S::some(squares_at + k, left);
        }
#pragma GCC unroll 4
        for (int l = 0; l < together; ++l) {
            const V value = S::next(line[l] + k, left);
            first = multiply_add(value, probe[l][0], first);
            second = multiply_add(value, probe[l][1], second);
            if constexpr (parts == 2) {
                const V other = in_pairs(value, typename UpTo<static_cast<std::size_t>(S::lanes)>::type{});
                first = multiply_add(other, turned[l][0], first);
                second = multiply_add(other, turned[l][1], second);
            }
            if constexpr (!std::is_integral_v<R>) {
                const V weighted = S::size(value) * weight[l];
                sums += weighted;
                squares = multiply_add(weighted, weighted, squares);
            }
        }
        S::put(first_at + k, first, left);
        S::put(second_at + k, second, left);
        if constexpr (!std::is_integral_v<R>) {
            S::put(sums_at + k, sums, left);
            S::put(squares_at + k, squares, left);
        }
    });
}

template <class R, int parts, std::size_t width> void down_columns(const CheckColumns<R>& t) {
    constexpr int together = Summed<R, width>::together / parts;
    for (std::int64_t from = t.begin; from < t.end; from += strip) {
        const std::int64_t to = from + strip < t.end ? from + strip : t.end;
        std::int64_t some[static_cast<std::size_t>(together)];
        int found = 0;
        for (std::int64_t j = 0; j < t.lines.count; ++j) {
            if (std::is_integral_v<R> || t.weights[j] != 0) {
                some[found++] = j;
            }
            if (found == together) {
                across<R, width, parts, together>(t, some, from, to);
                found = 0;
            }
        }
        for (int l = 0; l < found; ++l) {
            across<R, width, parts, 1>(t, some + l, from, to);
        }
    }
}

template <class R, std::size_t width> void measure_lines(const CheckSizes<R>& t) {
    using S = Summed<R, width>;
    using V = typename S::V;
    for (std::int64_t line = t.begin; line < t.end; ++line) {
        constexpr std::int64_t chains = 4;
        const R* numbers = t.lines[line];
        V largest[chains] = {}, squares[chains] = {};
        const auto take = [&](std::int64_t k, std::int64_t left, std::int64_t q) TILEWISE_INLINE_LAMBDA {
            const V size = S::size(S::next(numbers + k, left));
            largest[q] = size > largest[q] ? size : largest[q];  // past NaN
            squares[q] = multiply_add(size, size, squares[q]);
        };
        std::int64_t k = 0;
        for (; k + chains * S::lanes <= t.lines.count; k += chains * S::lanes) {
#pragma GCC unroll 4
            for (std::int64_t q = 0; q < chains; ++q) {
                take(k + q * S::lanes, S::lanes, q);
            }
        }
        S::walk_over(k, t.lines.count, [&](std::int64_t at, std::int64_t left) { take(at, left, 0); });
        for (const V& some : largest) {
            for (std::int64_t lane = 0; lane < S::lanes; ++lane) {
                t.largest[line] = some[lane] > t.largest[line] ? some[lane] : t.largest[line];
            }
        }
        t.squares[line] += S::total(squares[0] + squares[1] + squares[2] + squares[3]);
    }
}

template <class R, std::size_t width> void measure_across(const CheckSizes<R>& t) {
    using S = Summed<R, width>;
    using V = typename S::V;
    constexpr std::int64_t together = 4;
    for (std::int64_t from = t.begin; from < t.end; from += strip) {
        const std::int64_t to = from + strip < t.end ? from + strip : t.end;
        for (std::int64_t line = 0; line < t.lines.count; line += together) {
            const std::int64_t last = line + together < t.lines.count ? line + together : t.lines.count;
            S::walk_over(from, to, [&](std::int64_t k, std::int64_t left) TILEWISE_INLINE_LAMBDA {
                V largest = S::some(t.largest + k, left), squares = S::some(t.squares + k, left);
                for (std::int64_t l = line; l < last; ++l) {
                    const V size = S::size(S::next(t.lines[l] + k, left));
                    largest = size > largest ? size : largest;
                    squares = multiply_add(size, size, squares);
                }
                S::put(t.largest + k, largest, left);
                S::put(t.squares + k, squares, left);
            });
        }
    }
}

template <class R, std::size_t width> constexpr CheckLoops<R> check_loops() {
    if constexpr (std::is_integral_v<R>) {
        return {.rows = along_rows<R, 2, width>, .columns = down_columns<R, 1, width>};
    } else {
        return {.rows = along_rows<R, 2, width>,
                .columns = down_columns<R, 1, width>,
                .complex_rows = along_rows<R, 4, width>,
                .complex_columns = down_columns<R, 2, width>,
                .sizes_of_lines = measure_lines<R, width>,
                .sizes_across = measure_across<R, width>};
    }
}

}  // namespace
}  // namespace tilewise::kernel
