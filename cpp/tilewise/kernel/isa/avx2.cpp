// AVX2 and FMA (x86-64-v3): 16 registers of 32 bytes, of which 12 hold a tile of C.
#if defined(__x86_64__)
#include "tilewise/kernel/isa/kernels.hpp"

namespace tilewise::kernel {

extern constinit const Backend avx2 = backend_of<32, 4, 3>("avx2", Instructions::avx2, "tilewise AVX2 4x3 vectors");

}  // namespace tilewise::kernel
#endif
