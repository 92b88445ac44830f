// What one rank does by itself: reads a block of the input, and turns any rectangle of it into the order of the
// result's file.
#pragma once

#include "tilewise/base/buffer.hpp"
#include "tilewise/transpose/transpose.hpp"

namespace tilewise::transpose {

/// Blocks of the result as its file stores it, as the shares that reading and writing speak of.
inline io::WantedShare as_wanted(const io::Region& to, std::function<grid::Block(int rank)> block_of) {
    return [stored_transposed = to.stored_transposed(), block_of = std::move(block_of)](int rank) -> grid::Share {
        const grid::Block block = block_of(rank);
        return stored_transposed ? block.transposed() : block;
    };
}

/// This rank's block as it was read. Where files store their numbers in different orders it lies transposed:
///
///     in the result   [ · · · · · ]        as read   [ · · · ]       a rectangle of one is a rectangle of the other;
///                     [ · · # # · ]                  [ · · · ]       turn() brings it into the result's order
///                     [ · · # # · ]                  [ · # # ]
///                                                    [ · # # ]
///                                                    [ · · · ]
class Loaded {
public:
    /// Reads block_of(rank) on every rank, in the byte order of the result. `from` is wanted as the result is. @note
    /// Collective.
    Loaded(Context& context, const io::Region& from, const io::Region& to, const Options& options,
           const std::function<grid::Block(int rank)>& block_of);

    const grid::Block& block() const { return block_; }
    /// Brings the rectangle `part` of the result, which lies within block(), to `out`, its rows `stride` bytes apart.
    /// Not collective.
    void turn(const grid::Block& part, std::byte* out, std::int64_t stride) const;

private:
    const Options& options_;
    int threads_;
    bool transposed_;
    std::size_t item_;
    grid::Block block_;
    Buffer data_;
};

/// The kernel that the options want: `rows` and `columns` are those of `from`.
void turn_items(const Options& options, const std::byte* from, std::int64_t from_stride, std::int64_t rows,
                std::int64_t columns, std::size_t item, std::byte* to, std::int64_t to_stride, int threads);

}  // namespace tilewise::transpose
