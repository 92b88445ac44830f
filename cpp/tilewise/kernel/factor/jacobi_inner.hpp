// The small problem of a pair of blocks: from norms and cosines of w columns the orthogonal W that makes them
// orthogonal.
#pragma once

#include <cstdint>
#include <vector>

#include "tilewise/base/array.hpp"
#include "tilewise/kernel/factor/jacobi_pair.hpp"

namespace tilewise::kernel {

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

}  // namespace tilewise::kernel
