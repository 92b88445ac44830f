// Products in registers of 32 bytes, of AVX2 and FMA (x86-64-v3): 16 of them, of which 12 hold a tile of C.
// CMakeLists.txt has this file compiled for them; nothing that another file could share may be instantiated here.
#if defined(__x86_64__)
#include "tilewise/kernel/product/gemm_block.hpp"

namespace tilewise::kernel {

constinit const GemmSet gemm_set_32 = gemm_set<32, 4, 3>("tilewise AVX2 4x3 vectors");

}  // namespace tilewise::kernel
#endif
