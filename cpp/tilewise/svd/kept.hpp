// Blocks in the midst of the sweeps, kept in files for another start of the job.
//
//     a row of the file for each column      block   [ X: rows × width | V: v_rows × width ]
//                                                    as it lies in memory, at the rows of its columns
//
// Another start factors and rotates A as the first did, and then takes the blocks for those that it was to sweep. That
// holds only if it has got the same ones, bit by bit, as it does on the same ranks and threads: a checksum of them all
// is kept with the state.
#pragma once

#include "tilewise/io/checkpoints.hpp"
#include "tilewise/svd/sweeps.hpp"

namespace tilewise::svd {

template <class T> class Kept {
public:
    /// Of `columns` columns, each of `height` numbers. @note Collective; throws the same Error on every rank.
    Kept(Context& context, io::CheckpointOptions options, std::int64_t columns, std::int64_t height);

    /// Makes `blocks`, which are about to be swept, what an earlier start has left; returns what its sweeps found.
    /// @note Collective.
    Found restore(Blocks<T>& blocks);
    /// Keeps the blocks after a sweep, where it is time for that; ends the job where somebody asks for it.
    /// @note Collective.
    void look(const Found& found, Blocks<T>& blocks);

    const io::Restored& restored() const { return restored_; }
    /// Whether there was a state, and it belongs to another start.
    bool differs() const { return differs_; }

private:
    grid::Block rows_of(const Block<T>& block) const { return {block.columns, {0, height_}}; }
    /// Of all blocks of all ranks. @note Collective.
    std::uint64_t fingerprint(Blocks<T>& blocks) const;

    Context& context_;
    std::int64_t height_;
    io::Checkpoints checkpoints_;
    io::Restored restored_;
    std::uint64_t begun_ = 0;
    bool differs_ = false;
};

extern template class Kept<double>;
extern template class Kept<kernel::Complex>;

}  // namespace tilewise::svd
