// Strassen's panels in vectors of 32 bytes, of AVX2 (x86-64-v3).
// CMakeLists.txt has this file compiled for them; nothing that another file could share may be instantiated here.
#if defined(__x86_64__)
#include "tilewise/kernel/product/strassen_panels.hpp"

namespace tilewise::kernel {

#if defined(__FMA__)
const StrassenSets strassen_sets_32{Panels<float, 32, 4, 3>::set, Panels<double, 32, 4, 3>::set};
#else  // a build that does not give this file its flags
const StrassenSets strassen_sets_32{Panels<float, 16, 4, 3>::set, Panels<double, 16, 4, 3>::set};
#endif

}  // namespace tilewise::kernel
#endif
