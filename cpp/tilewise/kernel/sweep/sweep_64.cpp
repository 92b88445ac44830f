// Stencil sweeps in registers of 64 bytes, of AVX-512 (x86-64-v4).
// CMakeLists.txt has this file compiled for them; nothing that another file could share may be instantiated here.
#if defined(__x86_64__)
#include "tilewise/kernel/sweep/sweep_plain.hpp"
#include "tilewise/kernel/sweep/sweep_wave.hpp"

namespace tilewise::kernel {

#if defined(__AVX512F__)
const SweepSet sweep_set_64{.width = 64, .plain32 = plain_row<float>, .plain64 = plain_row<double>, .wave = wave<64>};
#else  // a build that does not give this file its flags
const SweepSet sweep_set_64{.width = 16, .plain32 = plain_row<float>, .plain64 = plain_row<double>, .wave = wave<16>};
#endif

}  // namespace tilewise::kernel
#endif
