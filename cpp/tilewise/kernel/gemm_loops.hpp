// The products that BLAS does not do: the plain reference for every type, and tiled loops for 64-bit integers.
#pragma once

#include "tilewise/kernel/gemm.hpp"

namespace tilewise::kernel {

/// Three loops, in the order that walks B and C along their rows. The reference that fast kernels are compared with.
void plain_gemm(const Product& product);

/// 64-bit integers, signed or not (the bits of sum and product are the same). Overflow wraps: check bounds before.
void integer_gemm(const Product& product);

}  // namespace tilewise::kernel
