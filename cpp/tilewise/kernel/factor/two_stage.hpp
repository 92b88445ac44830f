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
//
// Design: docs/design/svd.md
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "tilewise/base/buffer.hpp"
#include "tilewise/kernel/factor/block_reflector.hpp"
#include "tilewise/kernel/factor/jacobi.hpp"

namespace tilewise::kernel {

/// Told on the caller's thread how much is done, from 0 to 1, as often as is convenient.
using Told = std::function<void(double done)>;
inline void ignore_progress(double) {}

// An upper band matrix made bidiagonal by chasing bulges down the diagonal, one sweep for each row:
//
//      row s  [ d e 0 0 0         ]     The reflector V(s,0) takes away what is right of e in row s. It fills the block
//             [   # # # # # . .   ]     D below the diagonal; U(s,0) takes away D's first column and fills the block E
//             [   # # # # # # .   ]     right of the band, V(s,1) takes away E's first row and fills the next D, …
//             [   # # D # # E #   ]     What is left of either is taken away by the next sweep. U(s,t) and V(s,t) act
//             [   # # # # # # #   ]     on the same rows and columns: [s + 1 + t·b, s + 1 + (t+1)·b).
//
// A sweep may follow the one before it two blocks behind: threads work on different sweeps, each with the same numbers
// as if it were alone. 8·n²·b operations.
//
// B. Lang, "A parallel algorithm for reducing symmetric banded matrices to tridiagonal form", 1993; A. Haidar,
// H. Ltaief, P. Luszczek, J. Dongarra, "A comprehensive study of task coalescing for selecting parallelism granularity
// in a two-stage bidiagonal reduction", 2012.

/// An n×n matrix that is zero but for its diagonal and `width` others above it, with room for what bulges take.
class BandMatrix {
public:
    BandMatrix(std::int64_t n, std::int64_t width);
    std::int64_t size() const { return n_; }
    std::int64_t width() const { return width_; }
    /// How far an element is from the one to its left.
    std::int64_t step() const { return 3 * width_; }
    double& at(std::int64_t row, std::int64_t column) const { return memory_[row + column * step() + 2 * width_]; }

private:
    std::int64_t n_, width_;
    Array<double> memory_;
};

/// The reflectors of all sweeps in n×n numbers: those of U below the diagonal, sweep s in column s; those of V above,
/// sweep s in column n − 1 − s. Both in the order of their rows; where a reflector begins, with 1, its τ is kept.
class ChasedReflectors {
public:
    ChasedReflectors() = default;
    ChasedReflectors(std::int64_t n, std::int64_t width) : n_(n), width_(width), memory_(n * n) {}
    std::int64_t size() const { return n_; }
    std::int64_t width() const { return width_; }
    bool kept() const { return n_ > 0; }
    /// The reflector at row `row` of a sweep, row > sweep.
    double* left(std::int64_t sweep, std::int64_t row) const { return memory_.data() + sweep * n_ + row; }
    double* right(std::int64_t sweep, std::int64_t row) const {
        return memory_.data() + (n_ - 1 - sweep) * n_ + row - sweep - 1;
    }

private:
    std::int64_t n_ = 0, width_ = 0;
    Array<double> memory_;
};

/// B = U·[d, e]·Vᵀ, d on the diagonal (n) and e above it (n − 1). B is destroyed. U = U(0,·)·U(1,·)·…, V alike, as
/// reflectors, where these have room.
void chase_bulges(const BandMatrix& band, double* d, double* e, const ChasedReflectors& reflectors, int threads,
                  const Told& told);

// The reflectors of bulge chasing, applied in blocks:
//
//      sweeps  0 1 2 3 4 5 …       A block is made of one hop of some sweeps. Its reflectors begin a row below each
//              1                   other, so that V is a parallelogram. Blocks of later sweeps come first; where blocks
//              v 1                 of different hops share rows, the one nearer to the top is of later sweeps. So hops
//      hop 0   v v 1 .             come one after the other from the top, and within a hop blocks from the last to
//              - v v . .           the first: the rows of C that are worked on move up slowly, and stay in the cache.
//              1 - v . .
//      hop 1   v 1 -
//              v v 1
//
// The "diamonds" of A. Haidar, P. Luszczek, J. Dongarra, 2014.

/// Reflectors in a block.
inline constexpr std::int64_t sweeps_in_block = 32;

class ChasedBlocks {
public:
    /// Of U or V: makes T of all blocks, `sweeps_in_block` / (2·width) of n² numbers.
    ChasedBlocks(const ChasedReflectors& reflectors, bool left, int threads);
    /// C ← U(0,·)·U(1,·)·…·C for a slab of C; `block` is for use by the caller's thread.
    void apply(BlockReflector& block, double* slab, std::int64_t stride, std::int64_t width) const;

private:
    struct Place {
        std::int64_t sweep, row, count;  ///< the first sweep, the row where its reflector begins, and how many sweeps
    };
    void load(const Place& place, BlockReflector& block, double* tau) const;

    const ChasedReflectors& reflectors_;
    bool left_;
    std::vector<Place> places_;  ///< in the sequence in which they are applied
    Array<double> t_;
};

// A tall matrix made an upper band of so many diagonals, by panels of reflectors from both sides:
//
//      [ R L         ]     a panel of columns: QR, reflectors Y₁ stay below R
//      [ y R L       ]     then the same rows: LQ, reflectors Y₂ stay right of L
//      [ y y R z z z ]     and what is left of A:  A ← (I − Y₁·T₁·Y₁ᵀ)ᵀ·A·(I − Y₂·T₂·Y₂ᵀ)
//      [ y y y a a a ]                               = A − [Y₁ X]·[W; Y₂ᵀ],
//      [ y y y a a a ]     one product, with W = T₁ᵀ·Y₁ᵀ·A and X = (A − Y₁·W)·Y₂·T₂.
//
// R is an upper triangle and L a lower one, so that all that is not 0 is on the diagonal and the `width` above it.
// 4·m·n² − 4/3·n³ operations, all but O(m·n·width) of them in products.
//
// B. Großer, B. Lang, "Efficient parallel reduction to bidiagonal form", 1999.

/// Reflectors of panels, which lie in `a` where they were found, with ones and zeros in place of R and L.
struct BandReflectors {
    Columns a;
    std::int64_t width = 0;
    Array<double> left_t, right_t;  ///< of each panel T, width×width, column by column

    std::int64_t panels() const { return (a.count + width - 1) / width; }
    /// Columns of Y₁ and Y₂ of a panel, which may be fewer at the end.
    std::int64_t left_count(std::int64_t panel) const;
    std::int64_t right_count(std::int64_t panel) const;
    /// The panel's reflectors for BlockReflector, and the row where they begin.
    std::int64_t left(std::int64_t panel, BlockReflector& block) const;
    std::int64_t right(std::int64_t panel, BlockReflector& block) const;
};

/// A = U·B·Vᵀ in place; A (rows ≥ count) becomes the reflectors. Besides: 4·width numbers for each row and column.
BandMatrix reduce_to_band(const Columns& a, std::int64_t width, BandReflectors& reflectors, int threads,
                          const Told& told);

/// A = Q·R in place, R (count×count, column by column) as a copy: the same without the rows.
void reduce_to_triangle(const Columns& a, std::int64_t width, double* r, BandReflectors& reflectors, int threads);

// Singular values and vectors of a bidiagonal matrix by divide and conquer, with threads and little memory.
//
//      [ B₁      ]   B₁ = U₁·[D₁ 0]·V₁ᵀ, B₂ alike, so that         [ z₁ z₂ z₃ … ]
//      [   α β   ]   B = U'·M·V'ᵀ with an arrow M of the old       [    d₂      ]  = M
//      [      B₂ ]   values, of which σ are roots of one           [       d₃   ]
//                    equation: 1 + Σ zᵢ²/(dᵢ² − σ²) = 0            [          … ]
//
// What has a z that is too small, and all but one of equal d, leave M unchanged. Vectors of M are those of a z that
// fits the roots exactly, which makes them orthogonal. Threads share what is independent, and products by blocks of
// fixed size: no number depends on how many they are.
//
// M. Gu, S. Eisenstat, "A divide-and-conquer algorithm for the bidiagonal SVD", 1995; as in LAPACK's bdsdc, whose small
// problems and roots these are.

/// B = U·diag(d)·Vᵀ, B upper bidiagonal with diagonal d (n) and e above it (n − 1; n numbers have to be there).
/// Descending. U and Vᵀ (n×n, column by column) have zeros at first, or no data: no vectors are wanted. Memory: theirs
/// and n² numbers more. e is destroyed.
void bidiagonal_svd(std::int64_t n, double* d, double* e, double* u, double* vt, int threads);

/// Diagonals above the main one, as usual, and columns of U or V that a thread makes at a time: a slab of them stays in
/// the caches of second and third level.
inline constexpr std::int64_t band_width = 96, slab_columns = 240;

class TwoStageSvd {
public:
    /// Singular values of A (rows×columns, column by column without gaps, rows ≥ columns ≥ 1), which becomes the
    /// reflectors, and what vectors are made of, where these are wanted. Memory beside A: 4·columns² numbers (none
    /// without vectors), columns² more where rows ≥ 5/3·columns, and some times `width` numbers for each row and
    /// column. `width` 0: as usual. `told` is called until the last vectors are made.
    TwoStageSvd(Array<double> a, std::int64_t rows, std::int64_t columns, bool vectors, int threads,
                std::int64_t width = 0, Told told = ignore_progress);

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
    void tell(std::size_t stage, double share) const;
    Array<double> back(bool left, std::int64_t count, bool by_rows);

    std::int64_t rows_, columns_;
    bool vectors_;
    int threads_;
    Told told_;
    Array<double> a_, triangle_, u_, vt_;
    BandReflectors tall_, band_;
    ChasedReflectors chased_;
    std::vector<double> sigma_;
    Seconds seconds_;
    std::size_t stage_ = 3;
};

}  // namespace tilewise::kernel
