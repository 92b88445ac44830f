// NEON of 64-bit Arm: 32 registers of 16 bytes, of which 24 hold a tile of C.
#if defined(__aarch64__)
#include "tilewise/kernel/isa/kernels.hpp"

namespace tilewise::kernel {

extern constinit const Backend neon = backend_of<16, 8, 3>("neon", Instructions::baseline, "tilewise NEON 8x3 vectors");

}  // namespace tilewise::kernel
#endif
