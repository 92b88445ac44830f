// Which exchanges there are, and what all of them do.
#include "tilewise/svd/exchange.hpp"

#include "tilewise/base/names.hpp"

namespace tilewise::svd {

ExchangeKind exchange_named(std::string_view name) {
    return static_cast<ExchangeKind>(index_of(exchange_names, name, "exchange"));
}

void Exchange::begin(Parcels out, Parcels in) {
    out_ = std::move(out);
    in_ = std::move(in);
    Counters& count = context_.ledger.count();
    for (const Parcel& parcel : in_) {
        count.exchanged += parcel.count * static_cast<std::int64_t>(sizeof(double));
        ++count.messages;
    }
    start();
}

std::unique_ptr<Exchange> make_exchange(ExchangeKind kind, Context& context, std::int64_t largest) {
    return kind == ExchangeKind::one_sided_lock ? make_one_sided(context, largest) : make_two_sided(kind, context);
}

}  // namespace tilewise::svd
