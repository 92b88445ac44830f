// The table of exchanges, and what they share.
#include "tilewise/transpose/exchange.hpp"

#include "tilewise/base/names.hpp"

namespace tilewise::transpose {

ExchangeKind exchange_named(std::string_view name) {
    return static_cast<ExchangeKind>(index_of(exchange_names, name, "exchange"));
}

Exchange::Exchange(Setting setting)
    : setting_(setting),
      outgoing_(setting.pieces.outgoing(setting.context.comm.rank())),
      incoming_(setting.pieces.incoming(setting.context.comm.rank())) {}

std::int64_t Exchange::elements(const std::vector<Piece>& pieces) {
    std::int64_t sum = 0;
    for (const Piece& piece : pieces) {
        sum += piece.block.size();
    }
    return sum;
}

void Exchange::land(const Piece& piece, const std::byte* data, const Landed& landed) {
    Counters& count = setting_.context.ledger.count();
    count.exchanged += size(piece);
    count.messages += 1;
    landed(piece, data);
}

void Exchange::land_all(const std::byte* received, const Landed& landed) {
    for (const Piece& piece : incoming_) {
        land(piece, received, landed);
        received += size(piece);
    }
}

void Exchange::land_as_they_come(const std::byte* received, std::vector<MPI_Request>& requests, const Landed& landed) {
    std::vector<const std::byte*> places;
    for (const Piece& piece : incoming_) {
        places.push_back(received);
        received += size(piece);
    }
    for (std::size_t left = incoming_.size(); left > 0; --left) {
        int index = MPI_UNDEFINED;
        mpi::check(MPI_Waitany(static_cast<int>(requests.size()), requests.data(), &index, MPI_STATUS_IGNORE),
                   "MPI_Waitany");
        const auto arrived = static_cast<std::size_t>(index);
        land(incoming_[arrived], places[arrived], landed);
    }
}

std::unique_ptr<Exchange> make_exchange(ExchangeKind kind, const Setting& setting) {
    switch (kind) {
        case ExchangeKind::shared:
            return make_shared(setting);
        case ExchangeKind::one_sided_fence:
        case ExchangeKind::one_sided_pscw:
        case ExchangeKind::one_sided_lock:
            return make_one_sided(kind, setting);
        default:
            return make_two_sided(kind, setting);
    }
}

}  // namespace tilewise::transpose
