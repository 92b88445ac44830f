// The sum that makes a cell's next value, defined once for single numbers and for registers, so that both give the same
// bits.
//
//   star            centre, then west and east, then north and south, outwards:
//                   w·c + w·(0,−1) + w·(0,1) + … + w·(−1,0) + w·(1,0) + …
//   star_symmetric  cells that mirror each other are added first:
//                   w·c + w·[(0,−1)+(0,1)] + … + w·[(−1,0)+(1,0)] + …
//   box             row by row
//   box_symmetric   rows that mirror each other are added first, then their columns:
//                   Σₐ Σᵦ w·[Sₐ(−b) + Sₐ(b)],  Sₐ = row −a + row a
//
// The first product starts the sum and the others are added by fused multiplication where the instruction set has it.
// Everything here is in an unnamed namespace: it is compiled for several instruction sets, and the linker must not take
// the code of one for another.
#pragma once

#include <utility>

#include "tilewise/base/inline.hpp"
#include "tilewise/kernel/isa/registers.hpp"
#include "tilewise/kernel/sweep/sweep.hpp"

namespace tilewise::kernel {
namespace {

constexpr bool is_symmetric(SumForm form) { return form == SumForm::star_symmetric || form == SumForm::box_symmetric; }
constexpr bool is_star(SumForm form) { return form == SumForm::star_symmetric || form == SumForm::star; }

constexpr int taps_of(SumForm form, int radius) {
    const int side = is_symmetric(form) ? radius + 1 : 2 * radius + 1;
    return is_star(form) ? 2 * side - 1 : side * side;
}

/// The sum of a form without symmetry; `at(dy, dx)` is the cell there.
template <int radius, SumForm form, class V, class At> [[gnu::always_inline]] inline V sum_of_cells(const V* w,
                                                                                                    const At& at) {
    if constexpr (is_star(form)) {
        V sum = *w * at(0, 0);
#pragma GCC unroll 4
        for (int b = 1; b <= radius; ++b) {
            sum = multiply_add(*++w, at(0, -b), sum);
            sum = multiply_add(*++w, at(0, b), sum);
        }
#pragma GCC unroll 4
        for (int a = 1; a <= radius; ++a) {
            sum = multiply_add(*++w, at(-a, 0), sum);
            sum = multiply_add(*++w, at(a, 0), sum);
        }
        return sum;
    } else {
        constexpr int side = 2 * radius + 1;
        return [&]<int... tap>(std::integer_sequence<int, tap...>) TILEWISE_INLINE_LAMBDA {
            V sum = *w * at(-radius, -radius);
            ((sum = multiply_add(w[tap + 1], at((tap + 1) / side - radius, (tap + 1) % side - radius), sum)), ...);
            return sum;
        }(std::make_integer_sequence<int, side * side - 1>());
    }
}

/// The sum of a symmetric form; `pair(a, dx)` is the centre row's cell at dx for a = 0, else the sum of the two a rows
/// above and below.
template <int radius, SumForm form, class V, class Pair> [[gnu::always_inline]] inline V sum_of_pairs(
    const V* w, const Pair& pair) {
    V sum = *w * pair(0, 0);
    if constexpr (is_star(form)) {
#pragma GCC unroll 4
        for (int b = 1; b <= radius; ++b) {
            sum = multiply_add(*++w, pair(0, -b) + pair(0, b), sum);
        }
#pragma GCC unroll 4
        for (int a = 1; a <= radius; ++a) {
            sum = multiply_add(*++w, pair(a, 0), sum);
        }
    } else {
#pragma GCC unroll 4
        for (int b = 1; b <= radius; ++b) {
            sum = multiply_add(*++w, pair(0, -b) + pair(0, b), sum);
        }
#pragma GCC unroll 4
        for (int a = 1; a <= radius; ++a) {
            sum = multiply_add(*++w, pair(a, 0), sum);
#pragma GCC unroll 4
            for (int b = 1; b <= radius; ++b) {
                sum = multiply_add(*++w, pair(a, -b) + pair(a, b), sum);
            }
        }
    }
    return sum;
}

/// Calls `f.template run<T, radius, form>()` for a piece's own.
template <class T, int radius, class F> void with_form(SumForm form, const F& f) {
    switch (form) {
        case SumForm::star_symmetric:
            return f.template run<T, radius, SumForm::star_symmetric>();
        case SumForm::star:
            return f.template run<T, radius, SumForm::star>();
        case SumForm::box_symmetric:
            return f.template run<T, radius, SumForm::box_symmetric>();
        case SumForm::box:
            return f.template run<T, radius, SumForm::box>();
    }
}
template <class T, class F> void with_radius(int radius, SumForm form, const F& f) {
    switch (radius) {
        case 1:
            return with_form<T, 1>(form, f);
        case 2:
            return with_form<T, 2>(form, f);
        case 3:
            return with_form<T, 3>(form, f);
        case 4:
            return with_form<T, 4>(form, f);
        default:
            return;  // Sweeper has refused it
    }
}
template <class F> void with_sum(Dtype dtype, int radius, SumForm form, const F& f) {
    if (dtype == Dtype::float32) {
        with_radius<float>(radius, form, f);
    } else {
        with_radius<double>(radius, form, f);
    }
}

}  // namespace
}  // namespace tilewise::kernel
