// Strassen's panels in vectors of 64 bytes, of AVX-512 (x86-64-v4).
// CMakeLists.txt has this file compiled for them; nothing that another file could share may be instantiated here.
#if defined(__x86_64__)
#include "tilewise/kernel/product/strassen_panels.hpp"

namespace tilewise::kernel {

#if defined(__AVX512F__)
const StrassenSets strassen_sets_64{Panels<float, 64, 8, 3>::set, Panels<double, 64, 8, 3>::set};
#else  // a build that does not give this file its flags
const StrassenSets strassen_sets_64{Panels<float, 16, 4, 3>::set, Panels<double, 16, 4, 3>::set};
#endif

}  // namespace tilewise::kernel
#endif
