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
#pragma once

#include <cstdint>

#include "tilewise/base/array.hpp"

namespace tilewise::kernel {

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
void chase_bulges(const BandMatrix& band, double* d, double* e, const ChasedReflectors& reflectors, int threads);

}  // namespace tilewise::kernel
