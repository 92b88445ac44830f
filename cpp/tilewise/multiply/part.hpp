// A rank's block of a matrix, and which block it is.
#pragma once

#include "tilewise/grid/layout.hpp"
#include "tilewise/kernel/gemm.hpp"

namespace tilewise::multiply {

struct Part {
    kernel::Operand operand;
    grid::Block block;
};

}  // namespace tilewise::multiply
