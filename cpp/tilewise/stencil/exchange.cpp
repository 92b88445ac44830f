// The table of exchanges, what they share, and what a rank copies from one side of its own block to the other.
#include "tilewise/stencil/exchange.hpp"

#include <cstring>
#include <string>

#include "tilewise/base/names.hpp"

namespace tilewise::stencil {
namespace {

bool takes_elementwise(ExchangeKind kind) {
    return kind == ExchangeKind::synchronous || kind == ExchangeKind::blocking || kind == ExchangeKind::nonblocking ||
           kind == ExchangeKind::overlap;
}

}  // namespace

ExchangeKind exchange_named(std::string_view name) {
    return static_cast<ExchangeKind>(index_of(exchange_names, name, "exchange"));
}

HaloForm halo_named(std::string_view name) { return static_cast<HaloForm>(index_of(halo_names, name, "halo")); }

void copy_rows(const std::byte* from, std::int64_t from_stride, std::byte* to, std::int64_t to_stride,
               std::int64_t rows, std::int64_t row_bytes) {
    for (std::int64_t row = 0; row < rows; ++row) {
        std::memcpy(to + row * to_stride, from + row * from_stride, static_cast<std::size_t>(row_bytes));
    }
}

Exchange::Exchange(const Setting& setting)
    : setting_(setting),
      outgoing_(setting.halo.outgoing(setting.context.comm.rank())),
      incoming_(setting.halo.incoming(setting.context.comm.rank())),
      wrapped_(setting.halo.wrapped(setting.context.comm.rank())) {}

void Exchange::begin(int which) { send(which); }

void Exchange::finish(int which) {
    const std::int64_t stride = setting_.fields.shape().pitch * setting_.item();
    for (const Piece& piece : wrapped_) {
        copy_rows(setting_.fields.at(which, piece.there.rows.begin, piece.there.columns.begin), stride,
                  setting_.fields.at(which, piece.here.rows.begin, piece.here.columns.begin), stride,
                  piece.here.rows.size(), piece.here.columns.size() * setting_.item());
    }
    receive(which);
    Counters& count = setting_.context.ledger.count();
    for (const Piece& piece : incoming_) {
        if (setting_.fields.exposed().data != nullptr) {
            count.copied_in_node += piece.size() * setting_.item();
        } else {
            count.exchanged += piece.size() * setting_.item();
            count.messages += setting_.form == HaloForm::elementwise ? piece.size() : 1;
        }
    }
}

void check_exchange(ExchangeKind kind, HaloForm form, int ranks) {
    if (kind == ExchangeKind::none && ranks > 1) {
        throw UsageError("exchange 'none' is for one rank");
    }
    if (form == HaloForm::elementwise && kind != ExchangeKind::none && !takes_elementwise(kind)) {
        throw UsageError(
            "--halo elementwise goes with the exchanges synchronous, blocking, nonblocking and overlap, not with " +
            std::string(exchange_names[static_cast<std::size_t>(kind)]));
    }
    if (form == HaloForm::datatype && kind == ExchangeKind::shared) {
        throw UsageError("--halo datatype does not go with the exchange shared, which sends nothing: use packed");
    }
}

std::unique_ptr<Exchange> make_exchange(ExchangeKind kind, const Setting& setting) {
    switch (kind) {
        case ExchangeKind::none:
            return std::make_unique<Exchange>(setting);
        case ExchangeKind::persistent:
            return make_persistent(setting);
        case ExchangeKind::collective:
            return make_collective(setting);
        case ExchangeKind::one_sided_fence:
        case ExchangeKind::one_sided_pscw:
        case ExchangeKind::one_sided_lock:
            return make_one_sided(kind, setting);
        case ExchangeKind::shared:
            return make_shared(setting);
        default:
            return setting.form == HaloForm::elementwise ? make_elementwise(kind, setting)
                                                         : make_two_sided(kind, setting);
    }
}

}  // namespace tilewise::stencil
