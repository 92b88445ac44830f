// A rank's block of a matrix, and which block it is.
#pragma once

#include "tilewise/grid/layout.hpp"
#include "tilewise/kernel/product/gemm.hpp"

namespace tilewise::multiply {

struct Part {
    kernel::Operand operand;
    grid::Block block;

    /// The same numbers as a block of the transpose.
    Part transposed() const { return {{operand.data, operand.stride, !operand.transposed}, block.transposed()}; }
};

/// Rows of an operand, from the one at `begin` on, as columns of its transpose.
inline kernel::Operand rows_transposed(const kernel::Operand& a, Dtype dtype, std::int64_t begin) {
    const std::int64_t numbers = a.transposed ? begin : begin * a.stride;
    return {a.data + numbers * static_cast<std::int64_t>(size_of(dtype)), a.stride, !a.transposed};
}

}  // namespace tilewise::multiply
