// Transposition in registers of 32 bytes, of AVX2 (x86-64-v3).
// CMakeLists.txt has this file compiled for them; nothing that another file could share may be instantiated here.
#if defined(__x86_64__)
#include "tilewise/kernel/transpose/transpose_walk.hpp"

namespace tilewise::kernel {

void transpose_strip_32(std::size_t item, const TransposeStrip& strip) { walk<32>(item, strip); }

}  // namespace tilewise::kernel
#endif
