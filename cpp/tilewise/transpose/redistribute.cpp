// One loop for every kind of exchange.
#include "tilewise/transpose/redistribute.hpp"

#include "tilewise/mpi/exchange/exchange.hpp"
#include "tilewise/mpi/repeat.hpp"
#include "tilewise/mpi/together.hpp"

namespace tilewise::transpose {
namespace {

/// Pieces as messages, dense in memory of the exchange. In turn k rank r sends to r+k and receives from r−k, so that
/// nobody waits in a circle.
mpi::MessageSet messages_of(const mpi::Communicator& comm, const std::vector<Piece>& outgoing,
                            const std::vector<Piece>& incoming) {
    mpi::MessageSet set;
    const auto turn = [&](int from, int to) { return (to - from + comm.size()) % comm.size(); };
    for (const Piece& piece : outgoing) {
        set.out.push_back({piece.peer, turn(comm.rank(), piece.peer), 1, piece.block.size()});
    }
    for (const Piece& piece : incoming) {
        set.in.push_back({piece.peer, turn(piece.peer, comm.rank()), 1, piece.block.size()});
    }
    return set;
}

}  // namespace

Assembled::Assembled(const Context& context, const io::Region& to, const grid::Block& block)
    : context_(context),
      block_(block),
      item_(static_cast<std::int64_t>(size_of(to.dtype))),
      stride_(block.columns.size() * item_) {
    mpi::together(context.comm, [&] { memory_ = Buffer(static_cast<std::size_t>(block.size() * item_)); });
}

void Assembled::keep(const Loaded& loaded, const grid::Block& part, bool) {
    const Timed timed(context_.ledger, Phase::compute, "transpose");
    loaded.turn(part, place_of(part), stride_);
}

void Assembled::land(const Piece& piece, const std::byte* data, bool) {
    const Timed timed(context_.ledger, Phase::exchange, "place piece");
    copy_rows(data, piece.block.rows.size(), piece.block.columns.size() * item_, place_of(piece.block), stride_);
}

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

std::vector<Sample> redistribute(Context& context, const io::Region& to, const Options& options, const Pieces& pieces,
                                 const Loaded& loaded, Sink& sink) {
    const auto item = static_cast<std::int64_t>(size_of(to.dtype));
    const int me = context.comm.rank();
    const std::vector<Piece> outgoing = pieces.outgoing(me), incoming = pieces.incoming(me);
    std::unique_ptr<mpi::Exchange> exchange;
    {
        const Timed timed(context.ledger, Phase::exchange, "prepare");
        mpi::together(context.comm, [&] { mpi::require_taken(options.exchange, exchange_names); });
        exchange = mpi::make_exchange(options.exchange, {.comm = context.comm,
                                                         .ledger = context.ledger,
                                                         .dtype = to.dtype,
                                                         .sets = {messages_of(context.comm, outgoing, incoming)},
                                                         .all_to_all = true});
    }
    return mpi::repeat(context, options.warmup, options.repeat, [&](bool last) {
        {
            const Timed timed(context.ledger, Phase::exchange, "begin");
            exchange->begin();
        }
        for (std::size_t index = 0; index < outgoing.size(); ++index) {
            const grid::Block& block = outgoing[index].block;
            {
                const Timed timed(context.ledger, Phase::compute, "transpose");
                loaded.turn(block, exchange->place(index), block.columns.size() * item);
            }
            const Timed timed(context.ledger, Phase::exchange, "");
            exchange->ready(index);
            exchange->progress();
        }
        const grid::Block own = pieces.kept(me);
        if (own.size() > 0) {
            sink.keep(loaded, own, last);
        }
        {
            const Timed timed(context.ledger, Phase::exchange, "exchange");
            exchange->complete(
                [&](std::size_t index, const std::byte* data) { sink.land(incoming[index], data, last); });
        }
        context.report(Phase::exchange, 1);
    });
}

}  // namespace tilewise::transpose
