// What all exchanges share: the geometry of panels, the books, and the choice of a class by kind and flow; and the
// algorithms by name.
#include "tilewise/multiply/algorithms.hpp"

#include <algorithm>

#include "tilewise/base/names.hpp"

namespace tilewise::multiply {

static_assert(algorithms[static_cast<std::size_t>(AlgorithmKind::replicated)].name == "replicated");

AlgorithmKind algorithm_named(std::string_view name) {
    return enum_named<AlgorithmKind>(algorithms, name, "algorithm");
}

std::int64_t Side::largest_inner() const { return inner.empty() ? 0 : *std::max_element(inner.begin(), inner.end()); }

Side::Piece Side::piece(int owner, grid::Range local) const {
    const std::int64_t whole = inner[static_cast<std::size_t>(owner)];
    if (inner_along_rows()) {
        return {outer, local.size(), whole, outer > 0 ? local.begin : 0};
    }
    return {local.size(), outer, outer, local.begin * outer};
}

kernel::Operand Side::in_block(const std::byte* block, int owner, grid::Range local) const {
    const Piece place = piece(owner, local);
    return {block + place.offset * static_cast<std::int64_t>(size_of(dtype)), place.stride, transposed};
}

kernel::Operand Side::packed(const std::byte* panel, std::int64_t width) const {
    return {panel, inner_along_rows() ? width : outer, transposed};
}

Exchange::Held Exchange::held() {
    const auto own = [&](Side& side, std::byte* block) {
        return side.in_block(block, me(), {0, side.inner[static_cast<std::size_t>(me())]});
    };
    return {own(setting_.a, a_block()), own(setting_.b, b_block()), me(), me()};
}

void Exchange::received(const Side& side, std::int64_t elements, std::int64_t messages) const {
    setting_.context.ledger.count().exchanged += elements * static_cast<std::int64_t>(size_of(side.dtype));
    setting_.context.ledger.count().messages += messages;
}

void check_exchange(ExchangeKind kind, grid::Flow flow, int layer_ranks) {
    if (kind == ExchangeKind::none && layer_ranks > 1) {
        throw UsageError("exchange 'none' works on one rank only");
    }
    if (mpi::is_described_once(kind) && flow == grid::Flow::panels) {
        throw UsageError("exchange '" + std::string(mpi::name_of(kind)) +
                         "' works with cannon only, whose neighbours never change");
    }
    if (kind == ExchangeKind::collective && flow == grid::Flow::torus) {
        throw UsageError("exchange 'collective' works with summa and replicated, where one rank sends to many");
    }
}

std::unique_ptr<Exchange> make_exchange(ExchangeKind kind, grid::Flow flow, Setting setting) {
    switch (kind) {
        case ExchangeKind::none:
            return make_alone(std::move(setting));
        case ExchangeKind::one_sided_fence:
        case ExchangeKind::one_sided_lock:
        case ExchangeKind::shared:
            return make_in_place(kind, std::move(setting));
        default:
            break;
    }
    return flow == grid::Flow::torus ? make_torus_shift(kind, std::move(setting))
                                     : make_ring_broadcast(kind, std::move(setting));
}

}  // namespace tilewise::multiply
