// Products in registers of 16 bytes: 32 of them in 64-bit Arm's NEON, of which 24 hold a tile of C.
#if defined(__aarch64__)
#include "tilewise/kernel/gemm_block.hpp"

namespace tilewise::kernel {

constinit const GemmSet gemm_set_16 = gemm_set<16, 8, 3>("tilewise NEON 8x3 vectors");

}  // namespace tilewise::kernel
#endif
