// One-sided Jacobi on two blocks of columns: makes all of them orthogonal to each other, one rotation after another or
// by matrix products.
//
//            left  right                     W: orthogonal or unitary, from the Gram matrix of both blocks
//          [ |||    ||| ]
//      X = [ |||    ||| ]     [L R] ← [L R]·W,  the same for the columns of V, so that A·V = X stays true
//          [ |||    ||| ]
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "tilewise/base/array.hpp"
#include "tilewise/kernel/scalar.hpp"

namespace tilewise::kernel {

/// Some columns of a matrix, column-major, `stride` elements from one to the next. No rows: the matrix is not wanted.
template <class T> struct ColumnsOf {
    T* data = nullptr;
    std::int64_t rows = 0, count = 0, stride = 0;

    T* column(std::int64_t index) const { return data + index * stride; }
    ColumnsOf part(std::int64_t begin, std::int64_t width) const { return {column(begin), rows, width, stride}; }
};
using Columns = ColumnsOf<double>;

/// The same columns as the reals that they are made of.
inline Columns as_reals(const Columns& columns) { return columns; }
inline Columns as_reals(const ColumnsOf<Complex>& columns) {
    return {reals_of(columns.data), 2 * columns.rows, columns.count, 2 * columns.stride};
}

/// A column-major matrix that owns its memory, zero at first.
template <class T> struct MatrixOf {
    MatrixOf() = default;
    MatrixOf(std::int64_t row_count, std::int64_t column_count);

    std::int64_t rows = 0, count = 0, stride = 0;
    Array<T> memory;

    T* data() const { return memory.data(); }
    T* column(std::int64_t index) const { return data() + index * stride; }
    ColumnsOf<T> columns() const { return {data(), rows, count, stride}; }
};
using Matrix = MatrixOf<double>;

/// How a pair of blocks is solved: `blocks` by matrix products, `rotations` column by column, kept as reference.
enum class Inner { blocks, rotations };

/// How many solves (of `rotations`: rotations) went which way; `skipped` were orthogonal already.
struct PairTally {
    std::int64_t small_angles = 0, eigen = 0, cholesky = 0, rotations = 0, skipped = 0;

    PairTally& operator+=(const PairTally& other);
};

/// What a call found and did.
struct PairOutcome {
    /// The largest |xi·xj| / (|xi|·|xj|) found before rotating; columns of zeros count as orthogonal.
    double off = 0;
    /// Frobenius norms over the pair: of those cosines, and of the angles (each times the ratio of the two columns'
    /// norms, the larger over the smaller); infinite where rotations were not all small or columns changed places, and
    /// for `rotations` wherever there was one; 0 where nothing was done. See `certainly_converged`.
    double cosines = 0, angles = 0;
    /// What they have of off(XᵀX), the sum of |xi·xj|² over all i ≠ j, as found before rotating: of columns of
    /// different blocks, and of those within one.
    double across = 0, within = 0;

    /// The sum of norms and the larger `off`: of a sweep from its pairs, of all ranks from each.
    PairOutcome& operator+=(const PairOutcome& other);
    double off_squares() const { return across + within; }
};

/// Whether a whole sweep, the sum of its pairs being `sweep`, found nothing to do, or leaves every cosine below
/// `tolerance`, so that another would only confirm it: rotations by small angles cancel cosines but for products of
/// angles and cosines.
bool certainly_converged(const PairOutcome& sweep, double tolerance);

/// The same, or that off(XᵀX) was below `off_squares` (0: never) in that sweep.
bool is_done(const PairOutcome& sweep, double tolerance, double off_squares);

/// Whether sweeps that found these `off`, one after another, no longer come nearer to the end: from then on pairs are
/// to be solved by rotations, one after another, which always converge.
bool has_stalled(const std::vector<double>& off);

/// The largest cosine with which two columns of so many elements count as orthogonal. `blocks`: some 5·ε·√rows, within
/// 1.5e-14 … 5e-14. `rotations`: less, as each pair of columns is judged by itself, so that all together are orthogonal
/// to 1e-13·√columns in the Frobenius norm.
double jacobi_tolerance(std::int64_t rows, Inner inner);

/// Makes the columns of two blocks orthogonal. Owns its scratch memory: one object for each thread that calls.
template <class T> class PairSolverOf {
public:
    /// Uses `threads` threads; with 1 the caller sets the BLAS to one thread (`BlasThreads`), as other solvers may run
    /// beside this one.
    PairSolverOf(Inner inner, double tolerance, int threads = 1);
    PairSolverOf(PairSolverOf&&) noexcept;
    PairSolverOf& operator=(PairSolverOf&&) noexcept;
    ~PairSolverOf();

    /// Replaces the columns of X and V by their rotated ones. A pair that a sum of small angles solves keeps its order,
    /// any other has larger norms to the left after. A block may be empty; V with no columns is not wanted. A wide pair
    /// may need several calls. Columns count as orthogonal where every cosine is below the tolerance, and all of
    /// `count` columns in the Frobenius norm below √count times it. No element of X may be larger than 1e100.
    PairOutcome operator()(ColumnsOf<T> x_left, ColumnsOf<T> x_right, ColumnsOf<T> v_left, ColumnsOf<T> v_right);
    /// From now on by rotations; see `has_stalled`.
    void use_rotations();
    const PairTally& tally() const;

private:
    struct State;
    std::unique_ptr<State> state_;
};
using PairSolver = PairSolverOf<double>;

extern template struct MatrixOf<double>;
extern template struct MatrixOf<Complex>;
extern template class PairSolverOf<double>;
extern template class PairSolverOf<Complex>;

}  // namespace tilewise::kernel
