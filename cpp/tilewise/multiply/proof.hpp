// Proves that C = A·B without computing it again: Freivalds' check, and the plain product on one rank for those who want to see it.
#pragma once

#include <cstdint>
#include <memory>

#include "tilewise/base/outcome.hpp"
#include "tilewise/grid/layout.hpp"
#include "tilewise/io/region.hpp"
#include "tilewise/kernel/gemm.hpp"
#include "tilewise/mpi/context.hpp"

namespace tilewise::multiply {

/// A rank's block of a matrix, and which block it is.
struct Part {
    kernel::Operand operand;
    grid::Block block;
};

/// A·(B·x) against C·x for two random vectors x, row by row: |residual_i| ≤ tolerance · ‖A_i‖ · ‖B‖. Exact for integers. A single wrong
/// element is found unless it is wrong by less than that. Costs one pass over A, B and C.
///
/// R. Freivalds, "Probabilistic machines can use less running time", 1977.
class RandomCheck {
public:
    RandomCheck() = default;
    RandomCheck(const RandomCheck&) = delete;
    RandomCheck& operator=(const RandomCheck&) = delete;
    virtual ~RandomCheck() = default;

    /// Takes a part of C into account; its memory may be used for something else afterwards. Not collective.
    virtual void see(Context& context, const Part& c) = 0;
    /// When all ranks have shown all of C: together `a` and `b` of all ranks are A and B once. @note Collective.
    virtual Verification conclude(Context& context, const Part& a, const Part& b) = 0;
};

/// For the types that are computed in.
std::unique_ptr<RandomCheck> make_random_check(Dtype dtype, const grid::Shape& shape, kernel::Kernel kernel);

/// Rank 0 alone reads A, B and the written C back, multiplies with three plain loops and compares element by element: |difference_ij| ≤
/// tolerance · ‖A_i‖ · ‖B_j‖. Needs all of A and B in rank 0's memory and 2·m·n·k plain operations. @note Collective.
Verification check_serially(Context& context, Dtype dtype, const io::Region& a, const io::Region& b,
                            const io::Region& c);

/// How many rounding errors may add up in an element: the fast kernels sum k in slices, the plain one in one go.
double error_growth(const grid::Shape& shape, kernel::Kernel kernel, Dtype dtype);

}  // namespace tilewise::multiply
