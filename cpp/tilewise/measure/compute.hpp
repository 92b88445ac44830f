// A square product to be timed: matrices of random numbers, multiplied by the kernel that jobs use or by another.
#pragma once

#include "tilewise/base/buffer.hpp"
#include "tilewise/base/dtype.hpp"
#include "tilewise/kernel/product/gemm.hpp"
#include "tilewise/mpi/context.hpp"

namespace tilewise::measure {

class SquareProduct {
public:
    /// Two matrices of `size` × `size` random numbers and room for a third, each touched. Throws MemoryError.
    SquareProduct(std::int64_t size, Dtype dtype, int threads);

    /// Of the three matrices together.
    static std::int64_t bytes(std::int64_t size, Dtype dtype);

    /// Seconds of one product, the mean of `inner` in a row, from a common start of all ranks to their common end.
    /// @note Collective.
    double seconds(const Context& context, std::int64_t inner = 1, kernel::Kernel kernel = kernel::Kernel::fast) const;

    /// Of what jobs use for it.
    std::string_view chosen() const;

    /// Additions and multiplications of real numbers in one product.
    double flops() const;

    const std::byte* result() const { return c_.data(); }

private:
    kernel::Product product() const;

    std::int64_t size_;
    Dtype dtype_;
    int threads_;
    Buffer a_, b_, c_;
};

}  // namespace tilewise::measure
