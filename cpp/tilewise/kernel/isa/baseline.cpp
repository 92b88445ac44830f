// What every processor of its kind has: on x86 SSE2, 16 registers of 16 bytes, of which 12 hold a tile of C.
#include "tilewise/kernel/isa/kernels.hpp"

namespace tilewise::kernel {

extern constinit const Backend baseline =
    backend_of<16, 4, 3>("baseline", Instructions::baseline, "tilewise 4x3 vectors");

}  // namespace tilewise::kernel
