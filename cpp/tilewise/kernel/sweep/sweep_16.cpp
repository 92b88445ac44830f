// Stencil sweeps in registers of 16 bytes, that every processor of its kind has.
#include "tilewise/kernel/sweep/sweep_plain.hpp"
#include "tilewise/kernel/sweep/sweep_wave.hpp"

namespace tilewise::kernel {

const SweepSet sweep_set_16{.width = 16, .plain32 = plain_row<float>, .plain64 = plain_row<double>, .wave = wave<16>};

}  // namespace tilewise::kernel
