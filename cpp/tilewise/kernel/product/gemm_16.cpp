// Products in registers of 16 bytes: 32 of them in 64-bit Arm's NEON, of which 24 hold a tile of C, 16 in SSE2.
#include "tilewise/kernel/product/gemm_block.hpp"

namespace tilewise::kernel {

#if defined(__aarch64__)
constinit const GemmSet gemm_set_16 = gemm_set<16, 8, 3>("tilewise NEON 8x3 vectors");
#else
constinit const GemmSet gemm_set_16 = gemm_set<16, 4, 3>("tilewise 4x3 vectors");
#endif

}  // namespace tilewise::kernel
