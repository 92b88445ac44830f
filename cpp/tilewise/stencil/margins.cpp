// Pieces of a halo as messages: dense in memory of the exchange that they are packed into, as rectangles of the
// field, or cell by cell.
//
//     field, datatype      [ . . . . . . ]        packed
//                          [ . a b . . . ]          [ a b c d e f ]
//                          [ . c d . . . ]
//                          [ . e f . . . ]
#include "tilewise/stencil/margins.hpp"

#include <string>

#include "tilewise/base/names.hpp"

namespace tilewise::stencil {
namespace {

/// Between a piece in a field and a dense rectangle.
void copy_piece(const Fields& fields, int field, const Piece& piece, std::byte* dense, bool out) {
    const std::int64_t row_bytes = piece.here.columns.size() * fields.item();
    const std::int64_t pitch = fields.shape().pitch * fields.item();
    std::byte* cells = fields.at(field, piece.here.rows.begin, piece.here.columns.begin);
    mpi::copy_rows(out ? cells : dense, out ? pitch : row_bytes, out ? dense : cells, out ? row_bytes : pitch,
                   piece.here.rows.size(), row_bytes);
}

}  // namespace

HaloForm halo_named(std::string_view name) { return static_cast<HaloForm>(index_of(halo_names, name, "halo")); }

void check_exchange(ExchangeKind kind, HaloForm form, int ranks) {
    if (kind == ExchangeKind::none && ranks > 1) {
        throw UsageError("exchange 'none' works on one rank only");
    }
    if (form == HaloForm::elementwise && kind > ExchangeKind::overlap) {
        throw UsageError(
            "--halo elementwise works with the exchanges synchronous, blocking, nonblocking and overlap, not with " +
            std::string(mpi::name_of(kind)));
    }
    if (form == HaloForm::datatype && kind == ExchangeKind::shared) {
        throw UsageError("--halo datatype does not work with the exchange shared, which sends nothing; use packed");
    }
}

void copy_wrapped(const Fields& fields, const std::vector<Piece>& wrapped, int field) {
    const std::int64_t stride = fields.shape().pitch * fields.item();
    for (const Piece& piece : wrapped) {
        mpi::copy_rows(fields.at(field, piece.there.rows.begin, piece.there.columns.begin), stride,
                       fields.at(field, piece.here.rows.begin, piece.here.columns.begin), stride,
                       piece.here.rows.size(), piece.here.columns.size() * fields.item());
    }
}

Margins::Margins(const Context& context, const Halo& halo, const Fields& fields, ExchangeKind kind, HaloForm form)
    : fields_(fields),
      form_(form),
      packs_(form == HaloForm::packed && kind != ExchangeKind::shared),
      outgoing_(halo.outgoing(context.comm.rank())),
      incoming_(halo.incoming(context.comm.rank())),
      wrapped_(halo.wrapped(context.comm.rank())) {
    is_needed_ = !wrapped_.empty() || context.comm.size() > 1;
    mpi::Setting setting{.comm = context.comm, .ledger = context.ledger, .dtype = fields.dtype()};
    for (int field = 0; field < (packs_ ? 1 : 2); ++field) {
        setting.sets.push_back({messages(outgoing_, field), messages(incoming_, field)});
    }
    if (!packs_) {
        setting.memory = {fields.memory(), static_cast<std::size_t>(2 * fields.stride())};
    }
    if (kind == ExchangeKind::shared) {
        setting.exposed = &fields.exposed();
    }
    exchange_ = mpi::make_exchange(kind, setting);
}

std::vector<mpi::Message> Margins::messages(const std::vector<Piece>& pieces, int field) const {
    std::vector<mpi::Message> found;
    for (const Piece& piece : pieces) {
        const grid::Block& cells = piece.here;
        if (form_ == HaloForm::elementwise) {
            for (std::int64_t row = cells.rows.begin; row < cells.rows.end; ++row) {
                for (std::int64_t column = cells.columns.begin; column < cells.columns.end; ++column) {
                    found.push_back({piece.peer, piece.side, 1, 1, fields_.at(field, row, column)});
                }
            }
            continue;
        }
        found.push_back({piece.peer, piece.side, cells.rows.size(), cells.columns.size(),
                         packs_ ? nullptr : fields_.at(field, cells.rows.begin, cells.columns.begin),
                         packs_ ? 0 : fields_.shape().pitch});
    }
    return found;
}

void Margins::begin(int field) {
    for (std::size_t i = 0; packs_ && i < outgoing_.size(); ++i) {
        copy_piece(fields_, field, outgoing_[i], exchange_->place(i), true);
    }
    exchange_->start(packs_ ? std::size_t{0} : static_cast<std::size_t>(field));
}

void Margins::finish(int field) {
    copy_wrapped(fields_, wrapped_, field);
    if (packs_) {
        exchange_->complete([&](std::size_t index, const std::byte* data) {
            copy_piece(fields_, field, incoming_[index], const_cast<std::byte*>(data), false);  // it is only read
        });
    } else {
        exchange_->complete();
    }
}

}  // namespace tilewise::stencil
