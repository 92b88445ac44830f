// QR and LQ factorisations by LAPACK's reflectors, with their work space, and their orthogonal factors applied in wide blocks.
#pragma once

#include <vector>

#include "tilewise/kernel/jacobi.hpp"

namespace tilewise::kernel {

/// A = Q·R: R in the upper triangle, the reflectors of Q below it.
void qr(const Columns& a, std::vector<double>& tau);

/// A·P = Q·R with the longest remaining column first; column j of A·P is column permutation[j] of A.
void pivoted_qr(const Columns& a, std::vector<int>& permutation, std::vector<double>& tau);

/// A = L·Q: L in the lower triangle, the reflectors of Q above it.
void lq(const Columns& a, std::vector<double>& tau);

/// C ← Q·C with the Q of a QR. 4·rows·columns·c.count operations at most, on the BLAS's threads.
void apply_q(const Columns& q, const std::vector<double>& tau, const Columns& c, int threads);

/// C ← Qᵀ·C with the Q of an LQ.
void apply_q_transposed_of_lq(const Columns& q, const std::vector<double>& tau, const Columns& c, int threads);

}  // namespace tilewise::kernel
