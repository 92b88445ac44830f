// One-sided Jacobi rotation by rotation: the reference for solving by matrix products.
#pragma once

#include "tilewise/kernel/factor/jacobi_pair.hpp"

namespace tilewise::kernel {

/// Meets each pair of columns once, row by row of the triangle of pairs; of two the longer goes left, and they are
/// rotated unless their cosine is below the tolerance. V (which may be empty) follows. Some 8·rows operations a pair.
template <class T>
PairOutcome rotate_columns(const ColumnPair<T>& x, const ColumnPair<T>& v, double tolerance, PairTally& tally);

#define TILEWISE_ROTATE(form, T) \
    form template PairOutcome rotate_columns(const ColumnPair<T>&, const ColumnPair<T>&, double, PairTally&);
TILEWISE_ROTATE(extern, double)
TILEWISE_ROTATE(extern, Complex)

}  // namespace tilewise::kernel
