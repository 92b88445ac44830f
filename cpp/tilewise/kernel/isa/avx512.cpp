// AVX-512 (x86-64-v4): 32 registers of 64 bytes, of which 24 hold a tile of C.
#if defined(__x86_64__)
#include "tilewise/kernel/isa/kernels.hpp"

namespace tilewise::kernel {

extern constinit const Backend avx512 =
    backend_of<64, 8, 3>("avx512", Instructions::avx512, "tilewise AVX-512 8x3 vectors");

}  // namespace tilewise::kernel
#endif
