// Products in registers of 64 bytes, of AVX-512 (x86-64-v4): 32 of them, of which 24 hold a tile of C.
// CMakeLists.txt has this file compiled for them; nothing that another file could share may be instantiated here.
#if defined(__x86_64__)
#include "tilewise/kernel/product/gemm_block.hpp"

namespace tilewise::kernel {

constinit const GemmSet gemm_set_64 = gemm_set<64, 8, 3>("tilewise AVX-512 8x3 vectors");

}  // namespace tilewise::kernel
#endif
