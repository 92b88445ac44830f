// Products of a matrix and a few vectors, from either side: bound by memory, not by arithmetic.
#pragma once

#include "tilewise/kernel/product/gemm.hpp"

namespace tilewise::kernel {

/// Whether `thin_gemm` is the kernel for this product: real numbers, and C with few columns or few rows. Depends on the
/// shape alone.
bool thin_gemm_suits(const Product& product);

/// Rows of C (columns, where these are the many) that threads share out: for less than some of them for each thread, k
/// is better cut.
std::int64_t thin_gemm_parts(const Product& product);

/// Each thread has its own rows of the large operand. The bits of the result do not depend on how many threads there
/// are. The plain reference is `plain_gemm`.
void thin_gemm(const Product& product, int threads, const Between& between = {});

}  // namespace tilewise::kernel
