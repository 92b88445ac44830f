// What products in memory and larger ones do alike: from what is asked to who has which block, the steps of a product
// of blocks, what each rank computes of its own, the mirror image of a symmetric one, and C as its file has it.
#pragma once

#include <cstddef>
#include <functional>
#include <vector>

#include "tilewise/base/buffer.hpp"
#include "tilewise/base/dtype.hpp"
#include "tilewise/grid/layout.hpp"
#include "tilewise/io/region.hpp"
#include "tilewise/kernel/product/gemm.hpp"
#include "tilewise/mpi/context.hpp"
#include "tilewise/mpi/window.hpp"
#include "tilewise/multiply/multiply.hpp"

namespace tilewise::multiply {

/// The shape of the product. Throws UsageError where A and B do not fit together. Not collective.
grid::Shape shape_of(const io::Region& a, const io::Region& b, const Options& options);

/// The layout of a product of that shape on so many ranks. Throws UsageError where algorithm, grid, exchange and ranks
/// do not go together. Not collective.
grid::Layout arrange(int ranks, const grid::Shape& shape, const Options& options);

/// A or B as `rank` has it; with `lies_in_a` B, of which nothing is kept.
Side side_of(const grid::Layout& layout, int rank, const io::Region& region, Dtype dtype, bool is_a,
             bool lies_in_a = false);

/// What a rank sends at a time, and receives.
inline constexpr std::int64_t swap_piece_bytes = std::int64_t{4} << 20;

/// The last step of a symmetric product: what is missing of it, of this rank's block at `c`, is copied from its mirror
/// image: by messages, or straight to where the node's ranks have theirs, if that is `shared`. `half` says what is
/// computed and what is missing. The ranks of its swaps are those of `context.comm`. @note Collective over it.
void complete_symmetric(Context& context, const grid::Layout& layout, const grid::SymmetricPart& half, Dtype dtype,
                        std::byte* c, const mpi::Exposed& shared);

/// What a rank computes of C: all of its block, plainly or by Strassen's product, or its half of a symmetric one.
class Arithmetic {
public:
    Arithmetic(Context& context, const grid::Layout& layout, Dtype dtype, const Options& options,
               const Halving& halving);

    /// Operations that a plain product of the same result takes, on all ranks.
    double plain_flops() const;
    /// Operations that are done.
    double flops() const;

    /// C = A·B of the blocks that the exchange holds, step after step, or C += A·B; `c` is this rank's block, row after
    /// row. With `b_lies_in_a` each panel of A has all rows, among which B's columns are. `report` hears which share of
    /// it is done. @note Collective over the layer.
    void multiply_steps(Exchange& exchange, const std::vector<grid::Step>& steps, bool b_lies_in_a, std::byte* c,
                        bool accumulate, const std::function<void(double share)>& report) const;
    /// Fills in what is missing of a symmetric C. @note Collective where C is symmetric.
    void complete(std::byte* c, const mpi::Exposed& shared) const {
        if (options_.symmetric) {
            complete_symmetric(context_, layout_, half_, dtype_, c, shared);
        }
    }

private:
    void add_step(const kernel::Product& product, const kernel::Between& between, std::int64_t slice) const;

    Context& context_;
    const grid::Layout& layout_;
    Dtype dtype_;
    const Options& options_;
    Halving halving_;
    grid::SymmetricPart half_;  // what this rank computes of a symmetric C
};

/// `data` holds a block of the region's type, row after row, in this machine's byte order. Where the file is stored
/// column by column the block is transposed into `transposed`, which is made as large; other byte orders are swapped in
/// place. Returns where the result lies. Throws the same Error on every rank. @note Collective.
std::byte* to_file_layout(Context& context, const io::Region& region, const grid::Block& block, std::byte* data,
                          Buffer& transposed);

/// The product larger than memory: see streamed.cpp. @note Collective.
Outcome multiply_streamed(Context& context, const io::Region& a, const io::Region& b, const io::Region* c, Dtype dtype,
                          const Options& options);

}  // namespace tilewise::multiply
