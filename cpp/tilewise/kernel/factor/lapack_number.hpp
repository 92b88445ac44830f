// LAPACK and BLAS on real and complex numbers by one name each: `syrk` is zherk, and transposed means conjugated too.
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include "tilewise/kernel/factor/lapack.hpp"
#include "tilewise/kernel/factor/lapack_work.hpp"
#include "tilewise/kernel/scalar.hpp"

extern "C" {
#define TILEWISE_LAPACK_OF_COMPLEX(p)                                                                                 \
    void TILEWISE_BLAS(p##herk_)(const char*, const char*, const int*, const int*, const void*, const void*,          \
                                 const int*, const void*, void*, const int*);                                         \
    void TILEWISE_BLAS(p##heevd_)(const char*, const char*, const int*, void*, const int*, void*, void*, const int*,  \
                                  void*, const int*, int*, const int*, int*);                                         \
    void TILEWISE_BLAS(p##hetrd_)(const char*, const int*, void*, const int*, void*, void*, void*, void*, const int*, \
                                  int*);                                                                              \
    void TILEWISE_BLAS(p##geqp3_)(const int*, const int*, void*, const int*, int*, void*, void*, const int*, void*,   \
                                  int*);                                                                              \
    void TILEWISE_BLAS(p##unmqr_)(const char*, const char*, const int*, const int*, const int*, const void*,          \
                                  const int*, const void*, void*, const int*, void*, const int*, int*);               \
    void TILEWISE_BLAS(p##gesvj_)(const char*, const char*, const char*, const int*, const int*, void*, const int*,   \
                                  void*, const int*, void*, const int*, void*, const int*, void*, const int*, int*);  \
    void TILEWISE_BLAS(p##gesdd_)(const char*, const int*, const int*, void*, const int*, void*, void*, const int*,   \
                                  void*, const int*, void*, const int*, void*, int*, int*);
TILEWISE_LAPACK_OF_COMPLEX(z)
#undef TILEWISE_LAPACK_OF_COMPLEX
}

namespace tilewise::kernel::lapack {

/// What BLAS calls the adjoint.
template <class T> inline constexpr const char* adjoint = is_complex_number<T> ? "C" : "T";

#define TILEWISE_OF_BOTH(T, p)                                                                                         \
    inline void gemm(const char* a_form, const char* b_form, int m, int n, int k, T alpha, const T* a, int lda,        \
                     const T* b, int ldb, T beta, T* c, int ldc) {                                                     \
        tell<T>(effort::gemm(m, n, k));                                                                                \
        TILEWISE_BLAS(p##gemm_)(a_form, b_form, &m, &n, &k, &alpha, a, &lda, b, &ldb, &beta, c, &ldc);                 \
    }                                                                                                                  \
    /* y ← factor·op(A)·x + kept·y; tells nobody, since small ones are in a cache. */                                  \
    inline void gemv(const char* form, int m, int n, T factor, const T* a, int lda, const T* x, int step, T kept,      \
                     T* y) {                                                                                           \
        const int one = 1;                                                                                             \
        TILEWISE_BLAS(p##gemv_)(form, &m, &n, &factor, a, &lda, x, &step, &kept, y, &one);                             \
    }                                                                                                                  \
    inline int potrf(int n, T* a, int lda) {                                                                           \
        int info = 0;                                                                                                  \
        tell<T>(effort::potrf(n));                                                                                     \
        TILEWISE_BLAS(p##potrf_)("U", &n, a, &lda, &info);                                                             \
        return info;                                                                                                   \
    }                                                                                                                  \
    inline int geqrf(int m, int n, T* a, int lda, T* tau, T* work, int size) {                                         \
        int info = 0;                                                                                                  \
        tell<T>(effort::geqrf(m, n));                                                                                  \
        TILEWISE_BLAS(p##geqrf_)(&m, &n, a, &lda, tau, work, &size, &info);                                            \
        return info;                                                                                                   \
    }                                                                                                                  \
    inline void larft(int m, int k, const T* v, int ldv, const T* tau, T* t, int ldt) {                                \
        tell<T>(effort::larft(m, k));                                                                                  \
        TILEWISE_BLAS(p##larft_)("F", "C", &m, &k, v, &ldv, tau, t, &ldt);                                             \
    }                                                                                                                  \
    inline void larfb(const char* form, int m, int n, int k, const T* v, int ldv, const T* t, int ldt, T* c, int ldc,  \
                      T* work) {                                                                                       \
        tell<T>(effort::larfb(m, n, k));                                                                               \
        TILEWISE_BLAS(p##larfb_)("L", form, "F", "C", &m, &n, &k, v, &ldv, t, &ldt, c, &ldc, work, &n);                \
    }                                                                                                                  \
    /* B (m×n) ← factor·op(T)·B, or B·op(T) where `side` is "R"; T an upper triangle. */                               \
    inline void trmm(const char* side, const char* form, int m, int n, T factor, const T* t, int ldt, T* b, int ldb) { \
        tell<T>(effort::trmm(*side == 'L', m, n));                                                                     \
        TILEWISE_BLAS(p##trmm_)(side, "U", form, "N", &m, &n, &factor, t, &ldt, b, &ldb);                              \
    }                                                                                                                  \
    inline int tpqrt2(int m, int n, T* r, int ldr, T* b, int ldb, T* t, int ldt) {                                     \
        const int zero = 0;                                                                                            \
        int info = 0;                                                                                                  \
        tell<T>(effort::tpqrt2(m, n));                                                                                 \
        TILEWISE_BLAS(p##tpqrt2_)(&m, &n, &zero, r, &ldr, b, &ldb, t, &ldt, &info);                                    \
        return info;                                                                                                   \
    }
TILEWISE_OF_BOTH(double, d)
TILEWISE_OF_BOTH(Complex, z)
#undef TILEWISE_OF_BOTH

/// C = factor·AᴴA, upper triangle; A has k rows.
inline void syrk(int n, int k, double factor, const double* a, int lda, double* c, int ldc) {
    const double zero = 0;
    tell<double>(effort::syrk(n, k));
    TILEWISE_BLAS(dsyrk_)("U", "T", &n, &k, &factor, a, &lda, &zero, c, &ldc);
}
inline void syrk(int n, int k, double factor, const Complex* a, int lda, Complex* c, int ldc) {
    const double zero = 0;
    tell<Complex>(effort::syrk(n, k));
    TILEWISE_BLAS(zherk_)("U", "C", &n, &k, &factor, a, &lda, &zero, c, &ldc);
}

/// Reals of work space for `syevd`, and integers.
template <class T> std::int64_t syevd_reals(std::int64_t n) {
    return is_complex_number<T> ? 1 + 9 * n + 4 * n * n : 1 + 6 * n + 2 * n * n;
}
inline int syevd_integers(int n) { return 3 + 5 * n; }
inline int syevd(int n, double* a, double* values, double* work, int* more) {
    const int reals = lapack_int(syevd_reals<double>(n)), integers = syevd_integers(n);
    int info = 0;
    tell<double>(effort::syevd(n));
    TILEWISE_BLAS(dsyevd_)("V", "U", &n, a, &n, values, work, &reals, more, &integers, &info);
    return info;
}
inline int syevd(int n, Complex* a, double* values, double* work, int* more) {
    const int reals = 1 + 5 * n + 2 * n * n, numbers = 2 * n + n * n, integers = syevd_integers(n);
    int info = 0;
    tell<Complex>(effort::syevd(n));
    TILEWISE_BLAS(zheevd_)
    ("V", "U", &n, a, &n, values, work, &numbers, work + 2 * static_cast<std::int64_t>(numbers), &reals, more,
     &integers, &info);
    return info;
}

inline int sytrd(int n, double* a, int lda, double* d, double* e, double* tau, double* work, int size) {
    int info = 0;
    tell<double>(effort::sytrd(n));
    TILEWISE_BLAS(dsytrd_)("L", &n, a, &lda, d, e, tau, work, &size, &info);
    return info;
}
inline int sytrd(int n, Complex* a, int lda, double* d, double* e, Complex* tau, Complex* work, int size) {
    int info = 0;
    tell<Complex>(effort::sytrd(n));
    TILEWISE_BLAS(zhetrd_)("L", &n, a, &lda, d, e, tau, work, &size, &info);
    return info;
}

inline int geqp3(int m, int n, double* a, int lda, int* pivots, double* tau, double* work, int size) {
    int info = 0;
    tell<double>(effort::geqp3(m, n));
    TILEWISE_BLAS(dgeqp3_)(&m, &n, a, &lda, pivots, tau, work, &size, &info);
    return info;
}
inline int geqp3(int m, int n, Complex* a, int lda, int* pivots, Complex* tau, Complex* work, int size) {
    std::vector<double> norms(2 * static_cast<std::size_t>(n));
    int info = 0;
    tell<Complex>(effort::geqp3(m, n));
    TILEWISE_BLAS(zgeqp3_)(&m, &n, a, &lda, pivots, tau, work, &size, norms.data(), &info);
    return info;
}

/// C ← Q·C, Q of k reflections.
inline int ormqr(int m, int n, int k, const double* a, int lda, const double* tau, double* c, int ldc, double* work,
                 int size) {
    int info = 0;
    tell<double>(effort::ormqr(m, n, k));
    TILEWISE_BLAS(dormqr_)("L", "N", &m, &n, &k, a, &lda, tau, c, &ldc, work, &size, &info);
    return info;
}
inline int ormqr(int m, int n, int k, const Complex* a, int lda, const Complex* tau, Complex* c, int ldc, Complex* work,
                 int size) {
    int info = 0;
    tell<Complex>(effort::ormqr(m, n, k));
    TILEWISE_BLAS(zunmqr_)("L", "N", &m, &n, &k, a, &lda, tau, c, &ldc, work, &size, &info);
    return info;
}

/// QR with T of its block reflector, by halves.
inline int geqrt3(int m, int n, double* a, int lda, double* t, int ldt) {
    int info = 0;
    tell<double>(effort::geqrt3(m, n));
    TILEWISE_BLAS(dgeqrt3_)(&m, &n, a, &lda, t, &ldt, &info);
    return info;
}

/// Singular values and V of an upper triangle; `work` has 4·n + 20 numbers.
inline int gesvj(int n, double* a, double* values, double* v, double* work) {
    int zero = 0, info = 0;
    const int reals = std::max(6, 2 * n + 10);
    work[0] = 0;
    TILEWISE_BLAS(dgesvj_)("U", "N", "V", &n, &n, a, &n, values, &zero, v, &n, work, &reals, &info);
    tell<double>(effort::gesvj(n, work[3]));  // where it leaves how many sweeps it took
    return info;
}
inline int gesvj(int n, Complex* a, double* values, Complex* v, Complex* work) {
    int zero = 0, info = 0;
    const int size = std::max(6, 2 * n + 10);
    Complex* reals = work + size;
    *reals_of(reals) = 0;
    TILEWISE_BLAS(zgesvj_)
    ("U", "N", "V", &n, &n, a, &n, values, &zero, v, &n, work, &size, reals_of(reals), &size, &info);
    tell<Complex>(effort::gesvj(n, reals_of(reals)[3]));
    return info;
}

}  // namespace tilewise::kernel::lapack
