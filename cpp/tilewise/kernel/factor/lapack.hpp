// The BLAS and LAPACK that decompositions and products call, under whatever name the linked library gives them: on real
// and complex numbers by one name each, with what they cost for a simulator's clock, and how many threads they use.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "tilewise/base/error.hpp"
#include "tilewise/base/work.hpp"
#include "tilewise/kernel/scalar.hpp"

#ifndef TILEWISE_BLAS_PREFIX
#define TILEWISE_BLAS_PREFIX
#endif
#define TILEWISE_JOIN_(prefix, name) prefix##name
#define TILEWISE_JOIN(prefix, name) TILEWISE_JOIN_(prefix, name)
#define TILEWISE_BLAS(name) TILEWISE_JOIN(TILEWISE_BLAS_PREFIX, name)

extern "C" {
// The Fortran interface, because every BLAS has it; matrices are column-major there.
#define TILEWISE_BLAS_OF_TYPE(p)                                                                                    \
    void TILEWISE_BLAS(p##gemm_)(const char*, const char*, const int*, const int*, const int*, const void*,         \
                                 const void*, const int*, const void*, const int*, const void*, void*, const int*); \
    void TILEWISE_BLAS(p##syrk_)(const char*, const char*, const int*, const int*, const void*, const void*,        \
                                 const int*, const void*, void*, const int*);
TILEWISE_BLAS_OF_TYPE(s)
TILEWISE_BLAS_OF_TYPE(d)
TILEWISE_BLAS_OF_TYPE(c)
TILEWISE_BLAS_OF_TYPE(z)
#undef TILEWISE_BLAS_OF_TYPE
// Only OpenBLAS has these; a null address means another library.
void TILEWISE_BLAS(openblas_set_num_threads)(int) __attribute__((weak));
char* TILEWISE_BLAS(openblas_get_corename)() __attribute__((weak));
char* TILEWISE_BLAS(openblas_get_config)() __attribute__((weak));
#define TILEWISE_LAPACK_OF_ANY(p)                                                                                   \
    void TILEWISE_BLAS(p##potrf_)(const char*, const int*, void*, const int*, int*);                                \
    void TILEWISE_BLAS(p##geqrf_)(const int*, const int*, void*, const int*, void*, void*, const int*, int*);       \
    void TILEWISE_BLAS(p##larft_)(const char*, const char*, const int*, const int*, const void*, const int*,        \
                                  const void*, void*, const int*);                                                  \
    void TILEWISE_BLAS(p##larfb_)(const char*, const char*, const char*, const char*, const int*, const int*,       \
                                  const int*, const void*, const int*, const void*, const int*, void*, const int*,  \
                                  void*, const int*);                                                               \
    void TILEWISE_BLAS(p##gemv_)(const char*, const int*, const int*, const void*, const void*, const int*,         \
                                 const void*, const int*, const void*, void*, const int*);                          \
    void TILEWISE_BLAS(p##trmm_)(const char*, const char*, const char*, const char*, const int*, const int*,        \
                                 const void*, const void*, const int*, void*, const int*);                          \
    void TILEWISE_BLAS(p##tpqrt2_)(const int*, const int*, const int*, void*, const int*, void*, const int*, void*, \
                                   const int*, int*);
TILEWISE_LAPACK_OF_ANY(s)
TILEWISE_LAPACK_OF_ANY(d)
TILEWISE_LAPACK_OF_ANY(z)
#undef TILEWISE_LAPACK_OF_ANY
#define TILEWISE_LAPACK_OF_TYPE(p)                                                                                    \
    void TILEWISE_BLAS(p##syevd_)(const char*, const char*, const int*, void*, const int*, void*, void*, const int*,  \
                                  int*, const int*, int*);                                                            \
    void TILEWISE_BLAS(p##sytrd_)(const char*, const int*, void*, const int*, void*, void*, void*, void*, const int*, \
                                  int*);                                                                              \
    void TILEWISE_BLAS(p##sterf_)(const int*, void*, void*, int*);                                                    \
    void TILEWISE_BLAS(p##stedc_)(const char*, const int*, void*, void*, void*, const int*, void*, const int*, int*,  \
                                  const int*, int*);                                                                  \
    void TILEWISE_BLAS(p##geqp3_)(const int*, const int*, void*, const int*, int*, void*, void*, const int*, int*);   \
    void TILEWISE_BLAS(p##ormqr_)(const char*, const char*, const int*, const int*, const int*, const void*,          \
                                  const int*, const void*, void*, const int*, void*, const int*, int*);               \
    void TILEWISE_BLAS(p##gesvj_)(const char*, const char*, const char*, const int*, const int*, void*, const int*,   \
                                  void*, const int*, void*, const int*, void*, const int*, int*);                     \
    void TILEWISE_BLAS(p##gesdd_)(const char*, const int*, const int*, void*, const int*, void*, void*, const int*,   \
                                  void*, const int*, void*, const int*, int*, int*);                                  \
    void TILEWISE_BLAS(p##geqrt3_)(const int*, const int*, void*, const int*, void*, const int*, int*);               \
    void TILEWISE_BLAS(p##bdsdc_)(const char*, const char*, const int*, void*, void*, void*, const int*, void*,       \
                                  const int*, void*, int*, void*, int*, int*);                                        \
    void TILEWISE_BLAS(p##lasd0_)(const int*, const int*, void*, void*, void*, const int*, void*, const int*,         \
                                  const int*, int*, void*, int*);                                                     \
    void TILEWISE_BLAS(p##laed4_)(const int*, const int*, const void*, const void*, void*, const void*, void*, int*); \
    void TILEWISE_BLAS(p##lasd4_)(const int*, const int*, const void*, const void*, void*, const void*, void*, void*, \
                                  int*);                                                                              \
    void TILEWISE_BLAS(p##gejsv_)(const char*, const char*, const char*, const char*, const char*, const char*,       \
                                  const int*, const int*, void*, const int*, void*, void*, const int*, void*,         \
                                  const int*, void*, const int*, int*, int*);
TILEWISE_LAPACK_OF_TYPE(s)
TILEWISE_LAPACK_OF_TYPE(d)
#undef TILEWISE_LAPACK_OF_TYPE
// Only OpenBLAS has it; a null address means another library.
int TILEWISE_BLAS(openblas_get_num_threads)() __attribute__((weak));
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

namespace tilewise::kernel {

/// BLAS and LAPACK count in 32 bits: UsageError for what is more.
inline int lapack_int(std::int64_t value) {
    if (value > std::numeric_limits<int>::max()) {
        throw UsageError("BLAS and LAPACK use 32-bit indices and cannot take " + std::to_string(value) +
                         " numbers at once; use more ranks or fewer components");
    }
    return static_cast<int>(value);
}

/// What a routine says at its end: anything but 0 is a fault of ours, as all that it is given is finite.
inline void check_lapack(int info, const char* routine) {
    if (info != 0) {
        throw InternalError(std::string("LAPACK's ") + routine + " failed (info " + std::to_string(info) +
                            "), a finite matrix was expected");
    }
}

/// The BLAS uses so many threads while this object lives. The setting belongs to the whole process: make one in the
/// thread that starts others.
class BlasThreads {
public:
    explicit BlasThreads(int threads) {
        if (TILEWISE_BLAS(openblas_set_num_threads) != nullptr && TILEWISE_BLAS(openblas_get_num_threads) != nullptr) {
            before_ = TILEWISE_BLAS(openblas_get_num_threads)();
            if (before_ != threads) {
                TILEWISE_BLAS(openblas_set_num_threads)(threads);
            }
            now_ = threads;
        }
    }
    BlasThreads(const BlasThreads&) = delete;
    BlasThreads& operator=(const BlasThreads&) = delete;
    ~BlasThreads() {
        if (before_ != now_) {
            TILEWISE_BLAS(openblas_set_num_threads)(before_);
        }
    }

private:
    int before_ = 0, now_ = 0;
};

// How many operations LAPACK's and BLAS's routines take, and how many numbers they move, for a simulator's clock.
//
// Counts are those of S. Blackford, J. Dongarra, "Installation Guide for LAPACK" (LAPACK Working Note 41), appendix C,
// their leading terms; divide and conquer is reckoned without deflation: F. Tisseur, J. Dongarra, "A parallel divide
// and conquer algorithm for the symmetric eigenvalue problem", 1999, and M. Gu, S. Eisenstat, 1995, for singular
// values. A routine in blocks moves its operands once. Reductions to two diagonals, and QR with pivots, are half
// products of a matrix and a vector, which read for each column what is left of the matrix (J. Dongarra, S.
// Hammarling, D. Sorensen, "Block reduction of matrices to condensed forms", 1989).

/// Operations on real numbers, and numbers that have to come from memory or to go there.
struct Effort {
    double operations = 0, numbers = 0;
};

/// Tells a simulator. Of complex numbers each operation is four of reals. Numbers are computed all the same, as their
/// values decide what comes next.
template <class T> void tell(const Effort& effort) {
    constexpr double parts = parts_of<T>;
    static_cast<void>(stood_in_for(parts * parts * effort.operations, static_cast<double>(sizeof(T)) * effort.numbers));
}

namespace effort {

inline Effort gemm(double m, double n, double k) { return {2 * m * n * k, m * k + k * n + 2 * m * n}; }
inline Effort syrk(double n, double k) { return {n * n * k, n * k + n * n / 2}; }
/// B (m×n) and a triangle on its left, or on its right.
inline Effort trmm(bool left, double m, double n) {
    const double side = left ? m : n;
    return {m * n * side, 2 * m * n + side * side / 2};
}
inline Effort potrf(double n) { return {n * n * n / 3, n * n}; }
inline Effort geqrf(double m, double n) {
    const double k = std::min(m, n);
    return {4 * m * n * k - 2 * (m + n) * k * k + 4 * k * k * k / 3, 2 * m * n};
}
inline Effort geqp3(double m, double n) {
    const Effort plain = geqrf(m, n);
    return {plain.operations, plain.numbers + plain.operations / 4};
}
/// k reflections of m rows, for n columns.
inline Effort ormqr(double m, double n, double k) { return {4 * m * n * k - 2 * n * k * k, m * k + 2 * m * n}; }
inline Effort larft(double m, double k) { return {m * k * k - k * k * k / 3, m * k}; }
inline Effort larfb(double m, double n, double k) { return {4 * m * n * k - n * k * k, m * k + 2 * m * n}; }
/// QR of m rows under a triangle, and T.
inline Effort tpqrt2(double m, double n) { return {3 * m * n * n, 2 * m * n + 2 * n * n}; }
inline Effort geqrt3(double m, double n) { return {3 * m * n * n - n * n * n, 2 * m * n + n * n}; }
inline Effort sytrd(double n) { return {4 * n * n * n / 3, n * n * n / 6 + n * n}; }
/// Values alone by QL: some 30·n² operations (G. Golub, C. Van Loan, "Matrix Computations", 8.3).
inline Effort sterf(double n) { return {30 * n * n, 2 * n}; }
inline Effort stedc(double n) { return {4 * n * n * n / 3, 2 * n * n}; }
inline Effort syevd(double n) {
    const Effort reduced = sytrd(n), solved = stedc(n), back = ormqr(n, n, n);
    return {reduced.operations + solved.operations + back.operations, reduced.numbers + solved.numbers + back.numbers};
}
/// Two matrices of vectors where `stedc` has one.
inline Effort bdsdc(double n) { return {8 * n * n * n / 3, 4 * n * n}; }
/// One-sided rotations of an n×n matrix and of V, in so many sweeps: a product of two columns, and both of two pairs
/// rotated (Z. Drmač, K. Veselić, "New fast and accurate Jacobi SVD algorithm", 2008).
inline Effort gesvj(double n, double sweeps) { return {7 * n * n * n * sweeps, 4 * n * n}; }
inline Effort gesdd(double rows, double columns, bool vectors) {
    const double m = std::max(rows, columns), n = std::min(rows, columns);
    const bool tall = 6 * m >= 11 * n;  // then it begins with a QR
    const double high = tall ? n : m;
    Effort sum{4 * high * n * n - 4 * n * n * n / 3, high * n * n / 2 - n * n * n / 6};
    const auto add = [&sum](const Effort& part, double times) {
        sum.operations += times * part.operations;
        sum.numbers += times * part.numbers;
    };
    if (tall) {
        add(geqrf(m, n), vectors ? 2 : 1);  // and Q of it
    }
    if (vectors) {
        add(bdsdc(n), 1);
        add(ormqr(high, n, n), 1);
        add(ormqr(n, n, n), 1);
        add(gemm(m, n, n), tall ? 1 : 0);
    } else {
        add(sterf(n), 1);
    }
    return sum;
}

}  // namespace effort

// By one name each: `syrk` is zherk, and transposed means conjugated too.
namespace lapack {

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

}  // namespace lapack
}  // namespace tilewise::kernel
