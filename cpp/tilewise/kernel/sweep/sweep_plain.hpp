// The sums of the reference of stencil sweeps, along a row: term after term, of a few registers of cells at a time.
#pragma once

#include "tilewise/kernel/sweep/sweep_strip.hpp"
#include "tilewise/kernel/sweep/sweep_sum.hpp"

namespace tilewise::kernel {
namespace {

/// The sums of `across` consecutive `V`, each a register of cells or one cell, from cell j on.
template <class V, int across, class T>
[[gnu::always_inline]] inline void sum_terms(const SweepTerm* terms, int term_count, const void* const* lines, T* to,
                                             std::int64_t j) {
    constexpr std::int64_t lanes = sizeof(V) / sizeof(T);
    typedef V Loose __attribute__((aligned(sizeof(T)), may_alias));
    V sum[across];
    const auto add = [&](const SweepTerm& term, const auto& added) TILEWISE_INLINE_LAMBDA {
        const V w = static_cast<T>(term.weight) - V{};  // −0 stays −0
        const T* cell[4];
        for (int k = 0; k < 4; ++k) {
            cell[k] = static_cast<const T*>(lines[term.cell[k].line]) + term.cell[k].shift + j;
        }
        const auto at = [&](int k, int x) TILEWISE_INLINE_LAMBDA -> V {
            return *reinterpret_cast<const Loose*>(cell[k] + x * lanes);
        };
        if (term.cells == 1) {
#pragma GCC unroll 8
            for (int x = 0; x < across; ++x) {
                sum[x] = added(w, at(0, x), sum[x]);
            }
        } else if (term.cells == 2) {
#pragma GCC unroll 8
            for (int x = 0; x < across; ++x) {
                sum[x] = added(w, at(0, x) + at(1, x), sum[x]);
            }
        } else {
#pragma GCC unroll 8
            for (int x = 0; x < across; ++x) {
                sum[x] = added(w, (at(0, x) + at(1, x)) + (at(2, x) + at(3, x)), sum[x]);
            }
        }
    };
    add(terms[0], [](V w, V cells, V) TILEWISE_INLINE_LAMBDA { return w * cells; });
    for (int t = 1; t < term_count; ++t) {
        add(terms[t], [](V w, V cells, V before) TILEWISE_INLINE_LAMBDA { return multiply_add(w, cells, before); });
    }
#pragma GCC unroll 8
    for (int x = 0; x < across; ++x) {
        *reinterpret_cast<Loose*>(to + j + x * lanes) = sum[x];
    }
}

template <class T, std::size_t width>
void plain_row(const SweepTerm* terms, int term_count, const void* const* lines, void* to, std::int64_t count) {
    using V = typename Vector<T, width>::type;
    constexpr int across = 8;
    constexpr std::int64_t lanes = width / sizeof(T);
    std::int64_t j = 0;
    for (; j + across * lanes <= count; j += across * lanes) {
        sum_terms<V, across>(terms, term_count, lines, static_cast<T*>(to), j);
    }
    for (; j + lanes <= count; j += lanes) {
        sum_terms<V, 1>(terms, term_count, lines, static_cast<T*>(to), j);
    }
    for (; j < count; ++j) {
        sum_terms<T, 1>(terms, term_count, lines, static_cast<T*>(to), j);
    }
}

}  // namespace
}  // namespace tilewise::kernel
