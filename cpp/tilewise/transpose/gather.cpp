// Algorithm `gather`: ranks read blocks of the input and turn them, and rank 0 collects them all and writes.
//
//     input        transposed by ranks      rank 0's memory
//     [ 0 | 1 ]    [ 0ᵀ | 2ᵀ ]              0ᵀ, then 1ᵀ, 2ᵀ, 3ᵀ
//     [ 2 | 3 ]    [ 1ᵀ | 3ᵀ ]              as they are sent
//
//     the file     --root-write rows    a call for each row of each block
//                               view    a file view for each block
//                               whole   put in order in memory, then in one piece
//
// With `overlap` and `one_sided_lock` a block is written while the others are on their way. The first two schemes of
// the second report (sections III and IV): rank 0 is the bottleneck that they are there to show.
#include <cstring>

#include "tilewise/mpi/together.hpp"
#include "tilewise/transpose/redistribute.hpp"

namespace tilewise::transpose {
namespace {

/// Writes each block by itself, from rank 0 alone.
class BlockByBlock final : public Sink {
public:
    BlockByBlock(Context& context, const io::Region& to, const Options& options, bool root)
        : alone_{mpi::Communicator(MPI_COMM_SELF), context.ledger, context.threads},
          to_(to) {
        mpi::together(context.comm, [&] {
            if (root) {
                const bool by_rows = options.root_write == RootWrite::rows;
                output_.emplace(alone_, to, by_rows ? io::StrategyKind::positioned : io::StrategyKind::independent,
                                options.hints, false);
            }
        });
    }

    /// After the last block. @note Collective over the ranks that it was made by.
    void finish(const Context& context, bool sync) {
        mpi::together(context.comm, [&] {
            if (output_) {
                output_->finish(alone_, sync);
            }
        });
    }

    void keep(const Loaded& loaded, const grid::Block& part, bool last) override {
        const std::int64_t stride = part.columns.size() * item();
        own_ = Buffer(static_cast<std::size_t>(part.size() * item()));
        {
            const Timed timed(alone_.ledger, Phase::compute, "transpose");
            loaded.turn(part, own_.data(), stride);
        }
        store(part, own_.data(), last);
    }

    void land(const Piece& piece, const std::byte* data, bool last) override {
        store(piece.block, const_cast<std::byte*>(data), last);  // it is only read
    }

private:
    std::int64_t item() const { return static_cast<std::int64_t>(size_of(to_.dtype)); }

    void store(const grid::Block& block, std::byte* data, bool last) {
        if (last && output_) {
            const Timed timed(alone_.ledger, Phase::output, "write block");
            output_->store(alone_, as_wanted(to_, [&](int) { return block; }), data);
        }
    }

    Context alone_;
    const io::Region& to_;
    std::optional<io::Output> output_;
    Buffer own_;
};

}  // namespace

Outcome run_gather(Context& context, const io::Region& from, const io::Region& to, const Options& options) {
    const grid::Block whole{{0, to.stored_rows()}, {0, to.stored_columns()}};
    std::vector<grid::Block> wanted(static_cast<std::size_t>(options.grid.size()));
    wanted[0] = whole;
    const bool root = context.comm.rank() == 0;
    const Pieces pieces(held_blocks(from, to, options), wanted);
    const auto wanted_of = as_wanted(to, [&](int rank) { return pieces.wanted(rank); });
    const Loaded loaded(context, from, to, options, [&](int rank) { return pieces.held(rank); });
    Outcome outcome;
    outcome.working = loaded.block().size() > 0;
    if (options.root_write != RootWrite::whole && !to.text && to.tiles.empty()) {
        BlockByBlock blocks(context, to, options, root);
        outcome.samples = redistribute(context, to, options, pieces, loaded, blocks);
        const Timed writing(context.ledger, Phase::output, "output");
        blocks.finish(context, options.sync);
        return outcome;
    }
    Assembled result(context, to, pieces.wanted(context.comm.rank()));
    outcome.samples = redistribute(context, to, options, pieces, loaded, result);
    const Timed writing(context.ledger, Phase::output, "output");
    io::Output output(context, to, to.text ? io::StrategyKind::root : io::StrategyKind::positioned, options.hints,
                      false);
    output.store(context, wanted_of, result.data());
    output.finish(context, options.sync);
    return outcome;
}

}  // namespace tilewise::transpose
