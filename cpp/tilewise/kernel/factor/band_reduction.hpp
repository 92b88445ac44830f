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
#pragma once

#include <cstdint>

#include "tilewise/kernel/factor/block_reflector.hpp"
#include "tilewise/kernel/factor/bulge_chasing.hpp"
#include "tilewise/kernel/factor/jacobi.hpp"

namespace tilewise::kernel {

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
BandMatrix reduce_to_band(const Columns& a, std::int64_t width, BandReflectors& reflectors, int threads);

/// A = Q·R in place, R (count×count, column by column) as a copy: the same without the rows.
void reduce_to_triangle(const Columns& a, std::int64_t width, double* r, BandReflectors& reflectors, int threads);

}  // namespace tilewise::kernel
