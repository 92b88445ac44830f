// The algorithms that exchange, `swap` and `gather`: each rank turns its block piece by piece, and pieces go to whoever
// wants them, in one loop for every kind of exchange.
//
// Integers say who has what of the result before the exchange, who wants what of it, and which rectangles therefore
// travel:
//
//     input, 2×3 ranks      held = its transpose       wanted              pieces of rank 1: what it holds, cut
//     [ 0 | 1 | 2 ]         [ 0 | 3 ]                  [ 0 | 1 | 2 ]       by what others want
//     [ 3 | 4 | 5 ]         [ 1 | 4 ]                  [ 3 | 4 | 5 ]
//                           [ 2 | 5 ]
//
// On a square grid and a square matrix each rank has one piece, for the rank on the other side of the diagonal.
//
// Design: docs/design/transposition.md
#include <vector>

#include "tilewise/grid/share.hpp"
#include "tilewise/mpi/exchange/exchange.hpp"
#include "tilewise/mpi/repeat.hpp"
#include "tilewise/mpi/together.hpp"
#include "tilewise/transpose/local.hpp"

namespace tilewise::transpose {
namespace {

/// What each rank has of the result before the exchange, and wants of it, in the order that its file stores it. A rank
/// may have, and want, nothing.
class Pieces {
public:
    Pieces(std::vector<grid::Block> held, std::vector<grid::Block> wanted)
        : held_(std::move(held)),
          wanted_(std::move(wanted)) {}

    const grid::Block& held(int rank) const { return held_[static_cast<std::size_t>(rank)]; }
    const grid::Block& wanted(int rank) const { return wanted_[static_cast<std::size_t>(rank)]; }
    /// What `holder` has of what `wanter` wants.
    grid::Block of(int holder, int wanter) const { return grid::common_block(held(holder), wanted(wanter)); }

private:
    std::vector<grid::Block> held_, wanted_;
};

/// What becomes of pieces where they are wanted.
class Sink {
public:
    Sink() = default;
    Sink(const Sink&) = delete;
    Sink& operator=(const Sink&) = delete;
    virtual ~Sink() = default;

    /// The part of this rank's own block that it wants itself; `last`: of the repetition that counts.
    virtual void keep(const Loaded& loaded, const grid::Block& part, bool last) = 0;
    /// A piece of another rank's.
    virtual void land(const grid::Block& piece, const std::byte* data, bool last) = 0;
};

/// Gathers the pieces of a block in memory, in the order of the result's file.
class Assembled final : public Sink {
public:
    /// @note Collective.
    Assembled(const Context& context, const io::Region& to, const grid::Block& block)
        : context_(context),
          block_(block),
          item_(static_cast<std::int64_t>(size_of(to.dtype))),
          stride_(block.columns.size() * item_) {
        mpi::together(context.comm, [&] { memory_ = Buffer(static_cast<std::size_t>(block.size() * item_)); });
    }

    void keep(const Loaded& loaded, const grid::Block& part, bool) override {
        const Timed timed(context_.ledger, Phase::compute, "transpose");
        loaded.turn(part, place_of(part), stride_);
    }
    void land(const grid::Block& piece, const std::byte* data, bool) override {
        const Timed timed(context_.ledger, Phase::exchange, "place piece");
        const std::int64_t row_bytes = piece.columns.size() * item_;
        mpi::copy_rows(data, row_bytes, place_of(piece), stride_, piece.rows.size(), row_bytes);
    }
    std::byte* data() { return memory_.data(); }

private:
    std::byte* place_of(const grid::Block& part) {
        return memory_.data() + (part.rows.begin - block_.rows.begin) * stride_ +
               (part.columns.begin - block_.columns.begin) * item_;
    }

    Context context_;
    grid::Block block_;
    std::int64_t item_, stride_;
    Buffer memory_;
};

/// What ranks hold of the result when each has read its block of the input, which `grid` lies over.
std::vector<grid::Block> held_blocks(const io::Region& from, const io::Region& to, const Options& options) {
    const bool transposed = is_transposed(from, to);
    const grid::Partition rows(transposed ? to.stored_columns() : to.stored_rows(), options.grid.rows,
                               options.remainder),
        columns(transposed ? to.stored_rows() : to.stored_columns(), options.grid.columns, options.remainder);
    std::vector<grid::Block> blocks;
    for (int rank = 0; rank < options.grid.size(); ++rank) {
        const grid::Place place = options.grid.place(rank);
        const grid::Block in_input{rows[place.row], columns[place.column]};
        blocks.push_back(transposed ? in_input.transposed() : in_input);
    }
    return blocks;
}

/// Turns and exchanges, as often as `options` says; the seconds of each repetition. @note Collective; a failure on the
/// way aborts the job.
std::vector<Sample> redistribute(Context& context, const io::Region& to, const Options& options, const Pieces& pieces,
                                 const Loaded& loaded, Sink& sink) {
    const auto item = static_cast<std::int64_t>(size_of(to.dtype));
    const int me = context.comm.rank();
    const mpi::Parcels<grid::Block> parcels(context.comm,
                                            [&](int holder, int wanter) { return pieces.of(holder, wanter); });
    std::unique_ptr<mpi::Exchange> exchange;
    {
        const Timed timed(context.ledger, Phase::exchange, "prepare");
        mpi::together(context.comm, [&] { mpi::require_taken(options.exchange, exchange_names); });
        exchange = mpi::make_exchange(options.exchange, {.comm = context.comm,
                                                         .ledger = context.ledger,
                                                         .dtype = to.dtype,
                                                         .sets = {parcels.messages},
                                                         .all_to_all = true});
    }
    return mpi::repeat(context, options.warmup, options.repeat, [&](bool last) {
        {
            const Timed timed(context.ledger, Phase::exchange, "begin");
            exchange->begin();
        }
        for (std::size_t index = 0; index < parcels.out.size(); ++index) {
            const grid::Block& block = parcels.out[index];
            {
                const Timed timed(context.ledger, Phase::compute, "transpose");
                loaded.turn(block, exchange->place(index), block.columns.size() * item);
            }
            const Timed timed(context.ledger, Phase::exchange, "");
            exchange->ready(index);
            exchange->progress();
        }
        const grid::Block own = pieces.of(me, me);
        if (own.size() > 0) {
            sink.keep(loaded, own, last);
        }
        {
            const Timed timed(context.ledger, Phase::exchange, "exchange");
            exchange->complete(
                [&](std::size_t index, const std::byte* data) { sink.land(parcels.in[index], data, last); });
        }
        context.report(Phase::exchange, 1);
    });
}

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

    void land(const grid::Block& piece, const std::byte* data, bool last) override {
        store(piece, const_cast<std::byte*>(data), last);  // it is only read
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

// Algorithm `swap`: ranks read blocks of the input, turn them, and exchange them, so that each writes the block of the
// result that lies where its own lay.
//
//     input        turned by         exchanged, and
//                  their ranks       written
//     [ 0 | 1 ]    [ 0ᵀ | 2ᵀ ]       rank 1 has block (1, 0) of the result and wants block (0, 1), which rank 2 has:
//     [ 2 | 3 ]    [ 1ᵀ | 3ᵀ ]       on a square grid they are partners, on others a rank has several
//
// The collective scheme of the second report (section V), for any shape and any number of ranks.
Outcome run_swap(Context& context, const io::Region& from, const io::Region& to, const Options& options) {
    const grid::Partition rows(to.stored_rows(), options.grid.rows, options.remainder),
        columns(to.stored_columns(), options.grid.columns, options.remainder);
    std::vector<grid::Block> wanted;
    for (int rank = 0; rank < options.grid.size(); ++rank) {
        const grid::Place place = options.grid.place(rank);
        wanted.push_back({rows[place.row], columns[place.column]});
    }
    const Pieces pieces(held_blocks(from, to, options), std::move(wanted));
    Outcome outcome;
    std::optional<Assembled> result;
    {
        const Loaded loaded(context, from, to, options, [&](int rank) { return pieces.held(rank); });
        outcome.working = loaded.block().size() > 0;
        result.emplace(context, to, pieces.wanted(context.comm.rank()));
        outcome.samples = redistribute(context, to, options, pieces, loaded, *result);
    }
    const Timed writing(context.ledger, Phase::output, "output");
    io::Output output(context, to, options.write, options.hints, false);
    output.store(context, as_wanted(to, [&](int rank) { return pieces.wanted(rank); }), result->data());
    output.finish(context, options.sync);
    return outcome;
}

}  // namespace tilewise::transpose
