// The singular value decomposition in two stages, on one rank: full to band, band to bidiagonal, and back.
//
//      A = Q₁·B·P₁ᵀ     band_reduction    products of matrices
//      B = Q₂·D·P₂ᵀ     bulge_chasing     n²·b operations in the cache
//      D = U₀·Σ·V₀ᵀ     divide and conquer
//      U = Q₁·(Q₂·U₀),  V = P₁·(P₂·V₀)    block_reflector, a slab of columns after the other
//
// Where A is tall, A = Q₀·R is before that, and Q₀ after it.
//
// A. Haidar, P. Luszczek, J. Dongarra, "New algorithm for computing eigenvectors of the symmetric eigenvalue problem",
// 2014; T. Auckenthaler et al., "Parallel solution of partial symmetric eigenvalue problems", 2011.
#pragma once

#include <cstdint>
#include <vector>

#include "tilewise/kernel/factor/band_reduction.hpp"

namespace tilewise::kernel {

/// Diagonals above the main one, as usual, and columns of U or V that a thread makes at a time: a slab of them stays in
/// the caches of second and third level.
inline constexpr std::int64_t band_width = 96, slab_columns = 240;

class TwoStageSvd {
public:
    /// Singular values of A (rows×columns, column by column without gaps, rows ≥ columns ≥ 1), which becomes the
    /// reflectors, and what vectors are made of, where these are wanted. Memory beside A: 4·columns² numbers (none
    /// without vectors), columns² more where rows ≥ 5/3·columns, and some times `width` numbers for each row and
    /// column. `width` 0: as usual.
    TwoStageSvd(Array<double> a, std::int64_t rows, std::int64_t columns, bool vectors, int threads,
                std::int64_t width = 0);

    /// Descending.
    const std::vector<double>& sigma() const { return sigma_; }
    /// The first `count` columns of U or V, row by row or column by column. Each once at most.
    Array<double> left(std::int64_t count, bool by_rows);
    Array<double> right(std::int64_t count, bool by_rows);

    struct Seconds {
        double band = 0, chase = 0, divide = 0, back = 0;
    };
    const Seconds& seconds() const { return seconds_; }

private:
    int scale_down() const;
    Array<double> back(bool left, std::int64_t count, bool by_rows);

    std::int64_t rows_, columns_;
    int threads_;
    Array<double> a_, triangle_, u_, vt_;
    BandReflectors tall_, band_;
    ChasedReflectors chased_;
    std::vector<double> sigma_;
    Seconds seconds_;
};

}  // namespace tilewise::kernel
