// The left half of the columns, its reflections applied to the right half, the right half; T joins the two.
#include "tilewise/kernel/factor/stacked_qr.hpp"

#include <algorithm>

#include "tilewise/kernel/factor/lapack.hpp"

namespace tilewise::kernel {
namespace {

/// Columns up to which LAPACK takes them one by one.
constexpr std::int64_t narrow = 16;

/// Of columns of a larger problem: all triangles are `step` apart.
template <class T> struct Stacked {
    std::int64_t rows, stride, step;

    void factor(std::int64_t n, T* r, T* b, T* t, Reflectors wanted) const {
        const int high = lapack_int(rows), ldb = lapack_int(stride), ld = lapack_int(step);
        if (n <= narrow) {
            check_lapack(lapack::tpqrt2(high, lapack_int(n), r, ld, b, ldb, t, ld), "tpqrt2");
            return;
        }
        const std::int64_t half = (n / 2 + narrow - 1) / narrow * narrow;
        const int left = lapack_int(half), right = lapack_int(n - half);
        T *above = r + half * step, *next = b + half * stride, *corner = t + half * step;
        factor(half, r, b, t, Reflectors::whole);
        // The place of T's corner is free until the end: W = Tᴴ·(R₁₂ + V₁ᴴ·B₂).
        for (std::int64_t j = 0; j < right; ++j) {
            std::copy_n(above + j * step, left, corner + j * step);
        }
        lapack::gemm(lapack::adjoint<T>, "N", left, right, high, 1.0, b, ldb, next, ldb, 1.0, corner, ld);
        lapack::trmm("L", lapack::adjoint<T>, left, right, 1.0, t, ld, corner, ld);
        for (std::int64_t j = 0; j < right; ++j) {
            std::transform(above + j * step, above + j * step + left, corner + j * step, above + j * step,
                           [](const T& value, const T& less) { return value - less; });
        }
        lapack::gemm("N", "N", high, right, left, -1.0, b, ldb, corner, ld, 1.0, next, ldb);
        factor(n - half, above + half, next, corner + half, wanted);
        if (wanted == Reflectors::whole) {  // −T₁·V₁ᴴ·V₂·T₂
            lapack::gemm(lapack::adjoint<T>, "N", left, right, high, 1.0, b, ldb, next, ldb, 0.0, corner, ld);
            lapack::trmm("L", "N", left, right, -1.0, t, ld, corner, ld);
            lapack::trmm("R", "N", left, right, 1.0, corner + half, ld, corner, ld);
        }
    }
};

}  // namespace

template <class T> void stacked_qr(std::int64_t n, T* r, std::int64_t rows, T* b, std::int64_t stride, T* t,
                                   Reflectors wanted) {
    if (n > 0 && rows > 0) {
        Stacked<T>{rows, stride, n}.factor(n, r, b, t, wanted);
    }
}

template <class T> void stacked_top(std::int64_t n, std::int64_t count, const T* t, T* top, T* c) {
    if (n == 0 || count == 0) {
        return;
    }
    std::copy_n(top, n * count, c);
    lapack::trmm("L", "N", lapack_int(n), lapack_int(count), 1.0, t, lapack_int(n), c, lapack_int(n));
    std::transform(top, top + n * count, c, top, [](const T& value, const T& less) { return value - less; });
}

template void stacked_qr(std::int64_t, double*, std::int64_t, double*, std::int64_t, double*, Reflectors);
template void stacked_qr(std::int64_t, Complex*, std::int64_t, Complex*, std::int64_t, Complex*, Reflectors);
template void stacked_top(std::int64_t, std::int64_t, const double*, double*, double*);
template void stacked_top(std::int64_t, std::int64_t, const Complex*, Complex*, Complex*);

}  // namespace tilewise::kernel
