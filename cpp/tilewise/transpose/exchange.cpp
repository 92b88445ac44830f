// The table of exchanges, and what they share.
#include "tilewise/transpose/exchange.hpp"

#include <algorithm>

#include "tilewise/base/error.hpp"

namespace tilewise::transpose {

ExchangeKind exchange_named(std::string_view name) {
    const auto found = std::find(exchange_names.begin(), exchange_names.end(), name);
    if (found == exchange_names.end()) {
        throw UsageError("unknown exchange '" + std::string(name) + "'");
    }
    return static_cast<ExchangeKind>(found - exchange_names.begin());
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

void Exchange::count(const Piece& piece) {
    Counters& count = setting_.context.ledger.count();
    count.exchanged += piece.block.size() * setting_.item();
    count.messages += 1;
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
