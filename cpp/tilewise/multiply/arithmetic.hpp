// What a rank computes of C: all of its block, plainly or by Strassen's product, or its half of a symmetric one.
#pragma once

#include <cstddef>

#include "tilewise/grid/layout.hpp"
#include "tilewise/grid/symmetric.hpp"
#include "tilewise/kernel/product/gemm.hpp"
#include "tilewise/mpi/context.hpp"
#include "tilewise/mpi/window.hpp"
#include "tilewise/multiply/halving.hpp"
#include "tilewise/multiply/multiply.hpp"

namespace tilewise::multiply {

class Arithmetic {
public:
    Arithmetic(Context& context, const grid::Layout& layout, Dtype dtype, const Options& options,
               const Halving& halving);

    /// Operations that a plain product of the same result takes, on all ranks.
    double plain_flops() const;
    /// Operations that are done.
    double flops() const;

    /// Adds a step of k to the rank's block of C. Not collective.
    void step(const kernel::Product& product, const kernel::Between& between, std::int64_t slice) const;

    /// What is missing of a symmetric C, the rank's block at `c`, is copied from its mirror image: by messages, or
    /// straight to where the node's ranks have theirs, if that is `shared`. @note Collective where C is symmetric.
    void complete(std::byte* c, const mpi::Exposed& shared) const;

private:
    Context& context_;
    const grid::Layout& layout_;
    Dtype dtype_;
    const Options& options_;
    Halving halving_;
    grid::SymmetricPart half_;  // what this rank computes of a symmetric C
};

}  // namespace tilewise::multiply
