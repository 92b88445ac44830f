// Transposition in registers of 16 bytes, that every processor of its kind has.
#include "tilewise/kernel/transpose/transpose_walk.hpp"

namespace tilewise::kernel {

void transpose_strip_16(std::size_t item, const TransposeStrip& strip) { walk<16>(item, strip); }

}  // namespace tilewise::kernel
