// QR of a triangle with a panel of rows below it: the step of a QR whose rows arrive one panel after another.
//
//     [ R ]       [ R' ]                  [ I ]                     R, R', T: n×n, upper triangles
//     [ B ]  = Q  [ 0  ],        Q = I −  [ V ] · T · [ I  Vᴴ ]     B, V: rows×n, V takes the place of B
//
// Householder's reflections throughout: Q is orthonormal to rounding whatever R and B are.
#pragma once

#include <cstdint>

#include "tilewise/kernel/scalar.hpp"

namespace tilewise::kernel {

/// What a panel of a stacked QR needs to become: R' alone, or also all of T, of which `triangle` makes no use.
enum class Reflectors { triangle, whole };

/// Factors in place, all column by column: r becomes R', what is below its diagonal is not looked at; b, `stride`
/// apart, becomes V; t (n×n) becomes T with `whole`, else holds nothing of use. By halves of the columns, so that
/// nearly all is products: 2·rows·n² operations with `whole` for V and as many more as half of that for T, and 2⅓
/// rows·n² without. BLAS's threads are the caller's affair.
template <class T> void stacked_qr(std::int64_t n, T* r, std::int64_t rows, T* b, std::int64_t stride, T* t,
                                   Reflectors wanted);

/// Q times `top` with zeros below: with C = T·top (n×count), `top` becomes top − C, and the rows below would be −V·C,
/// which is left to the caller. `t` as `stacked_qr` made it with `whole`; top and c are n×count without gaps.
template <class T> void stacked_top(std::int64_t n, std::int64_t count, const T* t, T* top, T* c);

extern template void stacked_qr(std::int64_t, double*, std::int64_t, double*, std::int64_t, double*, Reflectors);
extern template void stacked_qr(std::int64_t, Complex*, std::int64_t, Complex*, std::int64_t, Complex*, Reflectors);
extern template void stacked_top(std::int64_t, std::int64_t, const double*, double*, double*);
extern template void stacked_top(std::int64_t, std::int64_t, const Complex*, Complex*, Complex*);

}  // namespace tilewise::kernel
