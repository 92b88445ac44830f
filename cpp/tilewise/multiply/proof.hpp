// Proves that C = A·B without computing it again: Freivalds' check, and the plain product on one rank for those who want to see it.
#pragma once

#include <cstdint>
#include <string>

#include "tilewise/grid/layout.hpp"
#include "tilewise/io/region.hpp"
#include "tilewise/kernel/gemm.hpp"
#include "tilewise/mpi/context.hpp"

namespace tilewise::multiply {

struct Verification {
    std::string method;
    bool passed = false;
    double error = 0;                 ///< the largest scaled residual
    double tolerance = 0;             ///< what it may be at most
    std::int64_t unchecked_rows = 0;  ///< rows whose numbers are not finite, or beyond what the check can scale
};

/// One rank's part in a check: a block of A and one of B (together the ranks have each block once) and its own part of C.
struct Exhibit {
    Dtype dtype;
    grid::Shape shape;
    kernel::Kernel kernel;
    kernel::Operand a, b, c;
    grid::Block a_block, b_block, c_block;
};

/// A·(B·x) against C·x for two random vectors x, row by row: |residual_i| ≤ tolerance · ‖A_i‖ · ‖B‖. Exact for integers. A single wrong
/// element is found unless it is wrong by less than that. Costs one pass over A, B and C.
///
/// R. Freivalds, "Probabilistic machines can use less running time", 1977. @note Collective.
Verification check_randomly(Context& context, const Exhibit& exhibit);

/// Rank 0 alone reads A, B and the written C back, multiplies with three plain loops and compares element by element: |difference_ij| ≤
/// tolerance · ‖A_i‖ · ‖B_j‖. Needs all of A and B in rank 0's memory and 2·m·n·k plain operations. @note Collective.
Verification check_serially(Context& context, Dtype dtype, const io::Region& a, const io::Region& b,
                            const io::Region& c);

/// How many rounding errors may add up in an element: the fast kernels sum k in slices, the plain one in one go.
double error_growth(const grid::Shape& shape, kernel::Kernel kernel, Dtype dtype);

}  // namespace tilewise::multiply
