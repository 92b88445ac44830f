// How often a product is halved by Strassen's way, and the operands for which that would lose too much.
#pragma once

#include "tilewise/grid/layout.hpp"
#include "tilewise/kernel/product/gemm.hpp"
#include "tilewise/mpi/context.hpp"
#include "tilewise/multiply/part.hpp"

namespace tilewise::multiply {

/// No element is wrong by more than `growth` roundoffs times the 2-norms of A's longest row and B's longest column.
struct Halving {
    int levels = 0;
    double growth = 0;

    double bound(Dtype dtype) const;
};

/// Whether an error that is small beside the longest row and column alone may be had for time: where it is asked for,
/// or where a `tolerance` (0: none) says how small it must be.
bool may_halve(kernel::Kernel kernel, double tolerance);

/// As many levels as pay for the largest part that a rank computes in one step, with a bound within `tolerance`. Throws
/// UsageError where `strassen` is asked for and cannot be had for this type or tolerance.
Halving halving_of(const grid::Layout& layout, Dtype dtype, kernel::Kernel kernel, double tolerance);

/// Throws UsageError for numbers that are not finite or next to the limits of float64, and, where no `tolerance` was
/// given, where rows of A or columns of B differ so much in length that little would be right of the shortest.
/// @note Collective; one pass over A and B.
void refuse_unlike(Context& context, Dtype dtype, const grid::Shape& shape, const Part& a, const Part& b,
                   const Halving& halving, double tolerance);

}  // namespace tilewise::multiply
