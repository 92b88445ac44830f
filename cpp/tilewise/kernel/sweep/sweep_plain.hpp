// The sums of the reference of stencil sweeps, a row at a time: term after term over a few hundred cells that stay in
// the first cache.
#pragma once

#include "tilewise/kernel/sweep/sweep_strip.hpp"
#include "tilewise/kernel/sweep/sweep_sum.hpp"

namespace tilewise::kernel {
namespace {

template <class T> void plain_row(const SweepTerm* terms, int term_count, const void* const* lines, void* to,
                                  std::int64_t count) {
    constexpr std::int64_t cells_at_once = 512;
    for (std::int64_t begin = 0; begin < count; begin += cells_at_once) {
        const std::int64_t cells = least(cells_at_once, count - begin);
        T* __restrict sum = static_cast<T*>(to) + begin;
        for (int t = 0; t < term_count; ++t) {
            const SweepTerm& term = terms[t];
            const T w = static_cast<T>(term.weight);
            const auto from = [&](int k) {
                return static_cast<const T*>(lines[term.cell[k].line]) + begin + term.cell[k].shift;
            };
            const auto add = [&](const auto& value) {
                if (t == 0) {
                    for (std::int64_t j = 0; j < cells; ++j) {
                        sum[j] = w * value(j);
                    }
                } else {
                    for (std::int64_t j = 0; j < cells; ++j) {
                        sum[j] = multiply_add(w, value(j), sum[j]);
                    }
                }
            };
            const T *a = from(0), *b = from(1), *c = from(2), *d = from(3);
            if (term.cells == 1) {
                add([=](std::int64_t j) { return a[j]; });
            } else if (term.cells == 2) {
                add([=](std::int64_t j) { return a[j] + b[j]; });
            } else {
                add([=](std::int64_t j) { return (a[j] + b[j]) + (c[j] + d[j]); });
            }
        }
    }
}

}  // namespace
}  // namespace tilewise::kernel
