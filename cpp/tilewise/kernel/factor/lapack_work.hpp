// How many operations LAPACK's and BLAS's routines take, and how many numbers they move, for a simulator's clock.
//
// Counts are those of S. Blackford, J. Dongarra, "Installation Guide for LAPACK" (LAPACK Working Note 41), appendix C,
// their leading terms; divide and conquer is reckoned without deflation: F. Tisseur, J. Dongarra, "A parallel divide
// and conquer algorithm for the symmetric eigenvalue problem", 1999, and M. Gu, S. Eisenstat, 1995, for singular
// values. A routine in blocks moves its operands once. Reductions to two diagonals, and QR with pivots, are half
// products of a matrix and a vector, which read for each column what is left of the matrix (J. Dongarra, S.
// Hammarling, D. Sorensen, "Block reduction of matrices to condensed forms", 1989).
#pragma once

#include <algorithm>

#include "tilewise/base/work.hpp"
#include "tilewise/kernel/scalar.hpp"

namespace tilewise::kernel {

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
}  // namespace tilewise::kernel
