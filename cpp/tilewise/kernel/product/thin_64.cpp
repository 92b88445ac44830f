// Thin products in registers of 64 bytes, of AVX-512 (x86-64-v4).
// CMakeLists.txt has this file compiled for them; nothing that another file could share may be instantiated here.
#if defined(__x86_64__)
#include "tilewise/kernel/product/thin_walk.hpp"

namespace tilewise::kernel {

#if defined(__AVX512F__)
const ThinSet thin_set_64 = thin_set<64>();
#else  // a build that does not give this file its flags
const ThinSet thin_set_64 = thin_set<16>();
#endif

}  // namespace tilewise::kernel
#endif
