// The product of what is in memory of A and B: from what is asked to who has which block, the steps in which their
// panels meet, what each rank computes of its own, the mirror image of a symmetric one, and C as its file has it.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "tilewise/base/buffer.hpp"
#include "tilewise/base/dtype.hpp"
#include "tilewise/grid/layout.hpp"
#include "tilewise/io/region.hpp"
#include "tilewise/io/strategy/mapped.hpp"
#include "tilewise/io/transfer.hpp"
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

/// What a rank sends at a time, and receives.
inline constexpr std::int64_t swap_piece_bytes = std::int64_t{4} << 20;

/// The last step of a symmetric product: what is missing of it, of this rank's block at `c`, is copied from its mirror
/// image: by messages, or straight to where the node's ranks have theirs, if that is `shared`. `half` says what is
/// computed and what is missing. The ranks of its swaps are those of `context.comm`. @note Collective over it.
void complete_symmetric(Context& context, const grid::Layout& layout, const grid::SymmetricPart& half, Dtype dtype,
                        std::byte* c, const mpi::Exposed& shared);

/// Which part of A, B and C is in memory: rows and columns of C, and the range of k.
struct Window {
    grid::Range m, n, k;

    grid::Shape shape() const { return {m.size(), n.size(), k.size()}; }
};

/// A rectangle of a window in coordinates of the whole matrix.
inline grid::Block moved(const grid::Block& block, std::int64_t down, std::int64_t right) {
    return {{block.rows.begin + down, block.rows.end + down}, {block.columns.begin + right, block.columns.end + right}};
}

/// The blocks that all ranks have of one window of A and B, how their panels travel, and what a rank computes of them:
/// all of its block of C, plainly or by Strassen's product, or its half of a symmetric one. Windows of the same shape
/// use it one after the other.
class BlockProduct {
public:
    /// `layout` is one of a window's shape. `spare` is taken where it suffices, and freed where it does not.
    /// @note Collective.
    BlockProduct(Context& context, const io::Region& a, const io::Region& b, Dtype dtype, const Options& options,
                 const grid::Layout& layout, const Halving& halving, BlockMemory spare = {});

    const grid::Layout& layout() const { return layout_; }
    grid::Shape shape() const { return layout_.shape(); }
    /// This rank's block of C, in coordinates of the window.
    grid::Block c_block() const { return layout_.c(me()); }
    /// Whether this rank has anything to compute.
    bool works() const { return c_block().size() > 0 && !steps_.empty(); }
    /// Bytes that this rank receives while a window is multiplied.
    std::int64_t received() const;
    /// On one row of ranks each panel of a symmetric product's A has all rows, so that B's columns are among them.
    bool b_lies_in_a() const { return b_lies_in_a_; }

    /// Reads this rank's block of A or B. @note Collective.
    void load(bool is_a, const io::Input& input, const Window& window) {
        input.load(context_, dtype_, wanted(is_a, window), place(is_a));
    }
    /// Begins to read what `load` of the same window then finds here. Not collective.
    void begin(bool is_a, io::Input& input, const Window& window) {
        input.begin(context_, dtype_, wanted(is_a, window), place(is_a));
    }
    /// Where one rank has all of A or B and reads mapped files of the right type, it computes with what the page cache
    /// has of them, and copies nothing. False: it is to be loaded.
    bool borrow(bool is_a, const io::Region& region);

    /// All blocks are there. @note Collective.
    void open() { exchange_->open(); }
    /// C = A·B, step after step, or C += A·B: `c` has these rows of this rank's block one after the other. `report`
    /// hears which share of it is done. @note Collective over the layer.
    void multiply(const grid::Range& rows, std::byte* c, bool accumulate,
                  const std::function<void(double share)>& report);
    /// Adds what the layers have, and fills in what is missing of a symmetric C. @note Collective.
    void complete(std::byte* c, const mpi::Exposed& shared) const;
    /// All blocks are where they were before the first step. @note Collective over the layer.
    void rewind() { exchange_->rewind(); }

    /// A block of A or B in coordinates of the whole matrix: all ranks together have all blocks once, before the steps
    /// and after them. Not collective.
    Part part(bool is_a, const Window& window);

    /// See Exchange::give_memory. @note Collective.
    BlockMemory give_memory() { return exchange_->give_memory(); }

private:
    int me() const { return context_.comm.rank(); }
    std::byte* place(bool is_a) { return is_a ? exchange_->a_block() : exchange_->b_block(); }
    io::WantedShare wanted(bool is_a, const Window& window) const;
    void add_step(const kernel::Product& product, const kernel::Between& between, std::int64_t slice) const;

    Context& context_;
    Dtype dtype_;
    const Options& options_;
    grid::Layout layout_;
    Halving halving_;
    grid::SymmetricPart half_;  // what this rank computes of a symmetric C
    bool b_lies_in_a_;
    mpi::Communicator layer_;
    std::vector<grid::Step> steps_;
    std::optional<io::Mapping> a_map_, b_map_;
    std::unique_ptr<Exchange> exchange_;
};

/// `data` holds a block of the region's type, row after row, in this machine's byte order. Where the file is stored
/// column by column the block is transposed into `transposed`, which is made as large; other byte orders are swapped in
/// place. Returns where the result lies. Throws the same Error on every rank. @note Collective.
std::byte* to_file_layout(Context& context, const io::Region& region, const grid::Block& block, std::byte* data,
                          Buffer& transposed);

}  // namespace tilewise::multiply
