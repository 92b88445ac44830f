// One-sided Jacobi on two blocks of columns: makes all of them orthogonal to each other, one rotation after another or
// by matrix products.
//
//            left  right                     W: orthogonal or unitary, from the Gram matrix of both blocks
//          [ |||    ||| ]
//      X = [ |||    ||| ]     [L R] ← [L R]·W,  the same for the columns of V, so that A·V = X stays true
//          [ |||    ||| ]
//
// Design: docs/design/svd.md
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "tilewise/base/buffer.hpp"
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

// Two blocks of columns taken as one matrix: their norms and cosines, and their product with a small matrix.

/// The columns of two blocks, numbered through; the blocks lie anywhere in memory.
template <class T> struct ColumnPair {
    ColumnsOf<T> left, right;

    std::int64_t rows() const { return left.count > 0 ? left.rows : right.rows; }
    std::int64_t count() const { return left.count + right.count; }
    T* column(std::int64_t index) const {
        return index < left.count ? left.column(index) : right.column(index - left.count);
    }
};

/// Below this norm a column has too few digits left for a direction: it counts as one of zeros, from the sweeps to the
/// singular values.
constexpr double least_norm = 1e-290;

/// What a pair solver works on: cosines (w×w, upper triangle, diagonal 1, or 0 for a column of zeros) and norms of w
/// columns.
template <class T> struct Cosines {
    T* values = nullptr;
    std::int64_t count = 0;  ///< w, and the stride
    std::vector<double> norms{}, inverses{};

    T* column(std::int64_t index) const { return values + index * count; }
    /// That of two different columns in either sequence: xiᴴ·xj / (|xi|·|xj|).
    T between(std::int64_t i, std::int64_t j) const { return i < j ? column(j)[i] : conjugate(column(i)[j]); }
};

/// Fills `cosines` (values: count×count elements) from the columns' Gram matrix; neither large nor tiny columns
/// overflow in it: they are scaled meanwhile, exactly. Throws Error for columns that are not finite. rows·count²
/// operations, on the BLAS's threads; `threads` for the rest.
template <class T> void find_cosines(const ColumnPair<T>& x, Cosines<T>& cosines, int threads);

/// The norm of a column, whatever its scale; NaN where it has one.
double norm_of(const double* column, std::int64_t rows);
inline double norm_of(const Complex* column, std::int64_t rows) { return norm_of(reals_of(column), 2 * rows); }

/// Columns that a rotation mixes with each other alone.
struct RotationBlock {
    std::int64_t begin = 0, end = 0;
};

/// An orthogonal W that mixes columns within blocks only, after they have been put in another order: X ← X·P·W.
template <class T> struct Rotation {
    using Block = RotationBlock;
    const T* w = nullptr;               ///< count×count; only its diagonal blocks are read
    std::vector<Block> blocks{};        ///< they cover all columns
    std::vector<std::int64_t> order{};  ///< column c of X·P is column order[c] of X; empty: P = I

    std::int64_t from(std::int64_t c) const { return order.empty() ? c : order[static_cast<std::size_t>(c)]; }
};

/// Rows that are multiplied at a time: the copy of them stays small, and W is packed once for each.
inline constexpr std::int64_t rotated_rows = 2048;

/// X ← X·P·W, or X ← X + X·P·W (`add`). `scratch` grows as needed. 2·rows·(block's columns)² operations a block, on the
/// BLAS's threads; `threads` for the rest.
template <class T>
void multiply_columns(const ColumnPair<T>& x, const Rotation<T>& rotation, bool add, Array<T>& scratch, int threads);

#define TILEWISE_PAIR(form, T)                                               \
    form template void find_cosines(const ColumnPair<T>&, Cosines<T>&, int); \
    form template void multiply_columns(const ColumnPair<T>&, const Rotation<T>&, bool, Array<T>&, int);
TILEWISE_PAIR(extern, double)
TILEWISE_PAIR(extern, Complex)

// The small problem of a pair of blocks: from norms and cosines of w columns the orthogonal W that makes them
// orthogonal.

/// Workspace of the inner solves: grows as needed, kept between calls.
template <class T> class InnerWork {
public:
    /// `index`-th square of count×count elements.
    T* square(int index, std::int64_t count);
    double* reals(std::int64_t count);
    int* integers(std::int64_t count);

private:
    Array<T> squares_[3];
    Array<double> reals_;
    std::vector<int> integers_;
};

/// What the cosines say about a pair.
struct Angles {
    double off = 0;      ///< the largest cosine
    double cosines = 0;  ///< Frobenius norm of all cosines
    double scaled = 0;  ///< Frobenius norm of the Jacobi angles, each times the ratio of the larger norm to the smaller
    bool small = false;  ///< whether a sum of rotations is as good as their product, see `small_rotation`
};

struct NormGroups;

/// E, skew (of complex numbers E = −Eᴴ): the Jacobi angle of each pair of columns as if it were alone. Columns that
/// count as orthogonal get none where it would be large; nor do those of one group, where `groups` are given, whose
/// columns lie side by side. Fills the upper triangle of `e` (count×count) only.
template <class T>
Angles find_angles(const Cosines<T>& cosines, double tolerance, T* e, int threads, const NormGroups* groups = nullptr);

/// W − I: W = I + E + E²/2, orthogonal to rounding where |E| is at most 1e-4; times I − E⁴/8 above, up to the limit by
/// which find_angles calls angles small. Reads the upper triangle of E in work.square(0); memory of `work`.
template <class T> Rotation<T> small_rotation(InnerWork<T>& work, std::int64_t count, double size, int threads);

/// Eigenvectors are orthogonal, but by rounding small columns get a share of large ones: only columns whose norms
/// differ by less are mixed.
constexpr double eigen_ratio = 300;

/// Columns by descending norm, and groups of them: cut wherever the angles across are small, and where norms differ by
/// more than `eigen_ratio`.
///
///     norms   ▇▇▇▇ ▆▆▆   ▃▃▃▃▃   ▂      cosines 10⁻³     ▇▇▇▇ ▆▆▆   ▃▃▃▃▃   ▂      cosines 10⁻¹⁰
///     groups  [          one         ]                   [  ] [ ]   [   ]   [      the clusters of equal norms
///
/// Eigenvectors leave cosines of ε times the square of a group's range of norms, which in a wide group is more than a
/// tolerance, and equal columns in it would need large angles for ever. But the smaller the cosines are, the nearer
/// norms must be for an angle to be large: groups become clusters of nearly equal norms, in which eigenvectors leave ε
/// alone.
struct NormGroups {
    std::vector<std::int64_t> order;
    std::vector<std::size_t> begins;  ///< where in `order` each group begins
    std::vector<bool> rotated;        ///< of each group: whether it has columns that are not orthogonal
    std::size_t used = 0;             ///< columns of zeros come from here on, in no group
    /// Whether the angles within all groups, and between them, are small; those of cosines up to `negligible` do not
    /// count.
    bool small_within = false, small_across = false;

    std::size_t end_of(std::size_t group) const { return group + 1 < begins.size() ? begins[group + 1] : used; }
};
template <class T> NormGroups norm_groups(const Cosines<T>& cosines, double negligible);

/// W: eigenvectors of the Gram matrix of each group, larger values first. Memory of `work`.
template <class T>
Rotation<T> eigen_rotation(const Cosines<T>& cosines, const NormGroups& groups, InnerWork<T>& work);

/// W for columns of any scale: Cosines = RᵀR, then rotations on the columns of R·diag(norms) by LAPACK's gesvj. Columns
/// of zeros go last. Memory of `work`.
template <class T>
Rotation<T> cholesky_rotation(const Cosines<T>& cosines, const NormGroups& groups, InnerWork<T>& work);

#define TILEWISE_INNER(form, T)                                                                    \
    form template class InnerWork<T>;                                                              \
    form template Angles find_angles(const Cosines<T>&, double, T*, int, const NormGroups*);       \
    form template Rotation<T> small_rotation(InnerWork<T>&, std::int64_t, double, int);            \
    form template NormGroups norm_groups(const Cosines<T>&, double);                               \
    form template Rotation<T> eigen_rotation(const Cosines<T>&, const NormGroups&, InnerWork<T>&); \
    form template Rotation<T> cholesky_rotation(const Cosines<T>&, const NormGroups&, InnerWork<T>&);
TILEWISE_INNER(extern, double)
TILEWISE_INNER(extern, Complex)

// One-sided Jacobi rotation by rotation: the reference for solving by matrix products.

/// Meets each pair of columns once, row by row of the triangle of pairs; of two the longer goes left, and they are
/// rotated unless their cosine is below the tolerance. V (which may be empty) follows. Some 8·rows operations a pair.
template <class T>
PairOutcome rotate_columns(const ColumnPair<T>& x, const ColumnPair<T>& v, double tolerance, PairTally& tally);

#define TILEWISE_ROTATE(form, T) \
    form template PairOutcome rotate_columns(const ColumnPair<T>&, const ColumnPair<T>&, double, PairTally&);
TILEWISE_ROTATE(extern, double)
TILEWISE_ROTATE(extern, Complex)

}  // namespace tilewise::kernel
