// Thin products in registers of 16 bytes, that every processor of its kind has.
#include "tilewise/kernel/product/thin_walk.hpp"

namespace tilewise::kernel {

const ThinSet thin_set_16 = thin_set<16>();

}  // namespace tilewise::kernel
