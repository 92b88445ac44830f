// The space that the readings span: an orthonormal basis V of it, what AᵀA is there, and the vectors that Rayleigh and
// Ritz take out of it.
//
//     V = [ V0  V1  V2 ]     T = VᵀAᵀAV
//
// A reading of X = V2 gives the last rows and columns of T: W = AᵀA·X = V·(VᵀW) + what is outside.
//
// All of it is in float64 and the same on all ranks; what LAPACK decides is decided on rank 0: processors that round
// differently must not disagree.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "tilewise/mpi/context.hpp"

namespace tilewise::svd {

/// Readings after which the space begins to grow.
inline constexpr std::int64_t warm_readings = 2;
/// Blocks that the space has room for: the usual number as long as that makes no more columns than this, since its
/// eigenvalue problem is to stay small, but never fewer than the least.
inline constexpr std::int64_t basis_blocks = 8, basis_columns = 1000, least_basis_blocks = 3;
/// Columns of the space where the plan does not say.
inline std::int64_t usual_basis(std::int64_t block) {
    return std::clamp<std::int64_t>(basis_columns, least_basis_blocks * block, basis_blocks * block);
}

/// A matrix, row by row without gaps.
struct Columns {
    std::int64_t rows = 0, columns = 0;
    std::vector<double> numbers;

    Columns() = default;
    Columns(std::int64_t high, std::int64_t wide)
        : rows(high),
          columns(wide),
          numbers(static_cast<std::size_t>(high * wide)) {}

    /// Euclid's length of each column.
    std::vector<double> lengths() const;
    void scale(const std::vector<double>& factors);
};

/// A·B of the first `count` columns of B (A.columns rows, row by row, `stride` apart).
Columns times(const Columns& a, const double* b, std::int64_t count, std::int64_t stride, int threads);

/// What `orthonormalize` found on its way: the triangle R (column by column) and its singular values, which descend.
struct Triangle {
    std::vector<double> r, sigma;
};

/// Rows that `orthonormalize` factors at once, at least.
inline constexpr std::int64_t least_chunk_rows = 512;

/// The columns of `some` (as many as rows, or fewer) become an orthonormal basis of their span, the direction that they
/// have most of first; there are as many as before, whatever their rank. Memory: the size of `some`, and a quarter.
/// @note Collective.
Triangle orthonormalize(Context& context, Columns& some);

/// Rank 0's numbers on all ranks. @note Collective.
void from_rank_0(Context& context, std::vector<double>& numbers);

/// Ritz values and vectors: θ descends behind the locked ones; S is size × size, row by row.
struct Ritz {
    std::vector<double> theta, s;
};

class Basis {
public:
    explicit Basis(int threads) : threads_(threads) {}

    std::int64_t size() const { return size_; }
    /// Columns [0, …) of V that came first and have not been combined since.
    const Columns& front() const { return parts_.front(); }
    void clear();
    /// More columns of V, orthonormal to the others.
    void add(Columns some);
    /// VᵀW, size() × W's columns, row by row; what of W lies in V is taken out of it.
    std::vector<double> project(Columns& w) const;
    /// V times the first `count` columns of S (size() rows, row by row, `stride` apart).
    Columns combine(const double* s, std::int64_t count, std::int64_t stride) const;
    /// Tells T of the columns that were added last: C = VᵀAᵀAX as `project` gives it.
    void tell(const std::vector<double>& c);
    /// Of T without the first `locked` rows and columns, which are known to be eigenvectors. @note Collective.
    Ritz ritz(Context& context, std::int64_t locked) const;
    /// The first `count` Ritz vectors take the place of V. Memory: they are there beside V for a moment.
    void restart(const Ritz& ritz, std::int64_t count);

private:
    int threads_;
    std::int64_t size_ = 0;
    std::vector<Columns> parts_;
    std::vector<double> t_;  ///< told × told, row by row
    std::int64_t told_ = 0;
};

}  // namespace tilewise::svd
