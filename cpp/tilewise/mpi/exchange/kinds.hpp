// The kinds of exchange, in one table: what each is called, and which mechanism moves its messages.
#pragma once

#include <algorithm>
#include <array>
#include <memory>
#include <span>
#include <string_view>
#include <type_traits>

namespace tilewise::mpi {

class Exchange;
struct Setting;

enum class ExchangeKind {
    none,
    synchronous,
    blocking,
    nonblocking,
    overlap,
    persistent,
    partitioned,
    collective,
    one_sided_fence,
    one_sided_pscw,
    one_sided_lock,
    shared
};

std::unique_ptr<Exchange> make_turns(ExchangeKind kind, const Setting& setting);
std::unique_ptr<Exchange> make_nonblocking(ExchangeKind kind, const Setting& setting);
std::unique_ptr<Exchange> make_persistent(ExchangeKind kind, const Setting& setting);
std::unique_ptr<Exchange> make_partitioned(ExchangeKind kind, const Setting& setting);
std::unique_ptr<Exchange> make_collective(ExchangeKind kind, const Setting& setting);
std::unique_ptr<Exchange> make_one_sided(ExchangeKind kind, const Setting& setting);
std::unique_ptr<Exchange> make_shared_memory(ExchangeKind kind, const Setting& setting);

struct Mechanism {
    ExchangeKind kind;
    std::string_view name;
    std::unique_ptr<Exchange> (*make)(ExchangeKind kind, const Setting& setting);
    bool described_once = false;  ///< its requests are made beforehand: only messages that come back can use them
};

/// In the order of the kinds. A line here, and a file, is one exchange more for every operation that does not leave
/// it out.
inline constexpr std::array mechanisms{
    Mechanism{ExchangeKind::none, "none", make_turns},
    Mechanism{ExchangeKind::synchronous, "synchronous", make_turns},
    Mechanism{ExchangeKind::blocking, "blocking", make_turns},
    Mechanism{ExchangeKind::nonblocking, "nonblocking", make_nonblocking},
    Mechanism{ExchangeKind::overlap, "overlap", make_nonblocking},
    Mechanism{ExchangeKind::persistent, "persistent", make_persistent, true},
    Mechanism{ExchangeKind::partitioned, "partitioned", make_partitioned, true},
    Mechanism{ExchangeKind::collective, "collective", make_collective},
    Mechanism{ExchangeKind::one_sided_fence, "one_sided_fence", make_one_sided},
    Mechanism{ExchangeKind::one_sided_pscw, "one_sided_pscw", make_one_sided},
    Mechanism{ExchangeKind::one_sided_lock, "one_sided_lock", make_one_sided},
    Mechanism{ExchangeKind::shared, "shared", make_shared_memory},
};

constexpr std::string_view name_of(ExchangeKind kind) { return mechanisms[static_cast<std::size_t>(kind)].name; }

constexpr bool is_described_once(ExchangeKind kind) {
    return mechanisms[static_cast<std::size_t>(kind)].described_once;
}

/// Stands for all kinds whose messages are described once, where kinds are left out.
struct DescribedOnce {};

constexpr bool covers(ExchangeKind kind, const Mechanism& mechanism) { return mechanism.kind == kind; }
constexpr bool covers(DescribedOnce, const Mechanism& mechanism) { return mechanism.described_once; }
template <class Kind>
constexpr std::ptrdiff_t covered =
    std::is_same_v<Kind, DescribedOnce> ? std::ranges::count(mechanisms, true, &Mechanism::described_once) : 1;

/// The names of all kinds but some, which differ: what an operation takes.
template <class... Kinds> constexpr auto exchange_names_without(Kinds... left_out) {
    std::array<std::string_view, mechanisms.size() - static_cast<std::size_t>((covered<Kinds> + ... + 0))> names{};
    std::size_t count = 0;
    for (const Mechanism& mechanism : mechanisms) {
        if (!(covers(left_out, mechanism) || ...)) {
            names[count++] = mechanism.name;
        }
    }
    return names;
}

/// Throws UsageError for a name that is not among those that an operation takes.
ExchangeKind exchange_named(std::string_view name, std::span<const std::string_view> taken);
/// The same for a kind.
inline void require_taken(ExchangeKind kind, std::span<const std::string_view> taken) {
    exchange_named(name_of(kind), taken);
}

}  // namespace tilewise::mpi
