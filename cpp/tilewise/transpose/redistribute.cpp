// One loop for every kind of exchange.
#include "tilewise/transpose/redistribute.hpp"

#include "tilewise/mpi/rounds.hpp"
#include "tilewise/mpi/together.hpp"

namespace tilewise::transpose {

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
    const bool turned = is_turned(from, to);
    const grid::Partition rows(turned ? to.stored_columns() : to.stored_rows(), options.grid.rows, options.remainder),
        columns(turned ? to.stored_rows() : to.stored_columns(), options.grid.columns, options.remainder);
    std::vector<grid::Block> blocks;
    for (int rank = 0; rank < options.grid.size(); ++rank) {
        const grid::Place place = options.grid.place(rank);
        const grid::Block in_input{rows[place.row], columns[place.column]};
        blocks.push_back(turned ? in_input.transposed() : in_input);
    }
    return blocks;
}

std::vector<Sample> redistribute(Context& context, const io::Region& to, const Options& options, const Pieces& pieces,
                                 const Loaded& loaded, Sink& sink) {
    const auto item = static_cast<std::int64_t>(size_of(to.dtype));
    std::unique_ptr<Exchange> exchange;
    {
        const Timed timed(context.ledger, Phase::exchange, "prepare");
        mpi::no_return(context.comm, [&] {
            exchange = make_exchange(exchange_named(options.exchange), {context, pieces, to.dtype});
        });
    }
    return mpi::run_rounds(context, options.warmup, options.repeat, [&](bool last) {
        mpi::no_return(context.comm, [&] {
            {
                const Timed timed(context.ledger, Phase::exchange, "begin");
                exchange->begin();
            }
            for (std::size_t index = 0; index < exchange->outgoing().size(); ++index) {
                const Piece& piece = exchange->outgoing()[index];
                {
                    const Timed timed(context.ledger, Phase::compute, "transpose");
                    loaded.turn(piece.block, exchange->place_of(piece), piece.block.columns.size() * item);
                }
                const Timed timed(context.ledger, Phase::exchange, "");
                exchange->ready(index);
            }
            const grid::Block own = pieces.kept(context.comm.rank());
            if (own.size() > 0) {
                sink.keep(loaded, own, last);
            }
            const Timed timed(context.ledger, Phase::exchange, "exchange");
            exchange->finish([&](const Piece& piece, const std::byte* data) { sink.land(piece, data, last); });
        });
        context.report(Phase::exchange, 1);
    });
}

}  // namespace tilewise::transpose
