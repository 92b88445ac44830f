// What lies beyond the edges of a matrix: a map to places within it, or a value.
#pragma once

#include <cstdint>
#include <limits>

namespace tilewise::kernel {

/// fixed: cells within `radius` of the edge keep their value. periodic: the other side. reflect: mirrored about the
/// edge of the outer cells, d c b a | a b c d | d c b a. mirror: about their centres, d c b | a b c d | c b a. nearest:
/// the outer cell again and again, a a a | a b c d | d d d. constant: `value`, whatever the matrix holds.
struct Boundary {
    enum Kind { fixed, periodic, reflect, mirror, nearest, constant };
    static const Boundary zero;

    Kind kind = constant;
    double value = 0;

    constexpr Boundary() = default;
    constexpr Boundary(Kind k, double v = 0) : kind(k), value(v) {}  // NOLINT(google-explicit-constructor)
    constexpr operator Kind() const { return kind; }                 // NOLINT(google-explicit-constructor)
};
inline constexpr Boundary Boundary::zero{};

/// No place: the value stands there.
inline constexpr std::int64_t nowhere = std::numeric_limits<std::int64_t>::min();

/// The place among 0 … n − 1 whose value stands at i, as often round as it takes. A side that is no edge goes on:
/// places there are their own. Always inline: it is compiled for several instruction sets, and the linker must not take
/// the code of one for another.
[[gnu::always_inline]] constexpr std::int64_t source_of(Boundary::Kind kind, std::int64_t i, bool edge_below,
                                                        bool edge_above, std::int64_t n) {
    const bool below = edge_below && i < 0, above = edge_above && i >= n;
    if (!below && !above) {
        return i;
    }
    const auto around = [i](std::int64_t period) { return (i % period + period) % period; };
    switch (kind) {
        case Boundary::periodic:
            return around(n);
        case Boundary::nearest:
            return below ? 0 : n - 1;
        case Boundary::reflect:
        case Boundary::mirror: {
            const std::int64_t shared = kind == Boundary::mirror ? 1 : 0;  // cells that lie on the mirror
            if (!edge_below || !edge_above) {
                return (below ? -1 : 2 * n - 1) + (below ? shared : -shared) - i;
            }
            const std::int64_t period = 2 * (n - shared), phase = period > 0 ? around(period) : 0;
            return phase < n ? phase : period + shared - 1 - phase;
        }
        case Boundary::fixed:
        case Boundary::constant:
            break;
    }
    return nowhere;
}

}  // namespace tilewise::kernel
