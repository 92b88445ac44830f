// Strassen's panels in vectors of 16 bytes, which every processor has.
#include "tilewise/kernel/product/strassen_panels.hpp"

namespace tilewise::kernel {

#if defined(__aarch64__)  // with twice as many registers
const StrassenSets strassen_sets_16{Panels<float, 16, 8, 3>::set, Panels<double, 16, 8, 3>::set};
#else
const StrassenSets strassen_sets_16{Panels<float, 16, 4, 3>::set, Panels<double, 16, 4, 3>::set};
#endif

}  // namespace tilewise::kernel
