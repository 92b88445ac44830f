// Transposition in registers of 64 bytes, of AVX-512 (x86-64-v4).
// CMakeLists.txt has this file compiled for them; nothing that another file could share may be instantiated here.
#if defined(__x86_64__)
#include "tilewise/kernel/transpose/transpose_walk.hpp"

namespace tilewise::kernel {

void transpose_strip_64(std::size_t item, const TransposeStrip& strip) { walk<64>(item, strip); }

}  // namespace tilewise::kernel
#endif
