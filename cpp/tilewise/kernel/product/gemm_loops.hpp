// The plain product of every type, which all others are compared with.
#pragma once

#include "tilewise/kernel/product/gemm.hpp"

namespace tilewise::kernel {

/// Three loops, in the order that walks B and C along their rows. The reference that fast kernels are compared with.
void plain_gemm(const Product& product);

}  // namespace tilewise::kernel
