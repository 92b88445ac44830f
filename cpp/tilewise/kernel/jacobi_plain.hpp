// One-sided Jacobi rotation by rotation: the reference for solving by matrix products.
#pragma once

#include "tilewise/kernel/jacobi_pair.hpp"

namespace tilewise::kernel {

/// Meets each pair of columns once, row by row of the triangle of pairs; of two the longer goes left, and they are
/// rotated unless their cosine is below the tolerance. V (which may be empty) follows. Some 8·rows operations a pair.
PairOutcome rotate_columns(const ColumnPair& x, const ColumnPair& v, double tolerance, PairTally& tally);

}  // namespace tilewise::kernel
