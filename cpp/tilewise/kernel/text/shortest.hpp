// The decimal of fewest digits that still says exactly which float it is.
//
//     ──┬────────[────┬────────)────────┬──    floats, and the interval of what rounds to the one in the middle
//            ·    ·    ·    ·    ·    ·        multiples of 10^k: at least one is inside
//            ·                        ·        multiples of 10^(k+1): at most one is
//
// After Giulietti, "The Schubfach way to render doubles" (2020): scaled by 10^−k, the float and both borders are known
// to a quarter, with a last bit that says whether there is more behind, and so all comparisons are exact.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "tilewise/base/inline.hpp"
#include "tilewise/kernel/text/powers_of_ten.hpp"

namespace tilewise::kernel {

/// digits · 10^scale; `digits` may end in zeros.
struct Shortest {
    std::uint64_t digits;
    int scale;
};

/// The whole part of number · power / 2¹²⁸, and 1 in its last bit if there is more.
TILEWISE_INLINE std::uint64_t times(const PowerOfTen& power, std::uint64_t number) {
    const Wide product = static_cast<Wide>(number) * power.high + ((static_cast<Wide>(number) * power.low) >> 64);
    return static_cast<std::uint64_t>(product >> 64) | (static_cast<std::uint64_t>(product) > 1);  // 1 may be rounding
}

/// Of a float without its sign; of several decimals the nearest. Means nothing for zero, infinities and NaN.
template <class F> TILEWISE_INLINE Shortest shortest(F value) {
    using Bits = std::conditional_t<sizeof(F) == 8, std::uint64_t, std::uint32_t>;
    constexpr int stored = std::numeric_limits<F>::digits - 1;  // bits of the significand
    constexpr Bits hidden = Bits{1} << stored;
    const auto bits = std::bit_cast<Bits>(value);
    const Bits fraction = bits & (hidden - 1);
    const int field = static_cast<int>((bits >> stored) & (2 * std::numeric_limits<F>::max_exponent - 1));
    const std::uint64_t significand = field == 0 ? fraction : fraction | hidden;
    const int exponent = (field == 0 ? 1 : field) - (std::numeric_limits<F>::max_exponent - 1 + stored);
    // Below a power of two floats lie half as far apart.
    const bool uneven = fraction == 0 && field > 1;
    const std::uint64_t odd = significand & 1;  // the borders round to the even neighbour

    // The whole parts of log₁₀ of 2^exponent, and of 3/4 of it.
    const int k = (exponent * 1262611 - (uneven ? 524031 : 0)) >> 22;
    const int shift = exponent + log2_of_ten(-k) + 1;
    const PowerOfTen& power = power_of_ten(-k);
    const std::uint64_t quarters = 4 * significand;
    const std::uint64_t lower = times(power, (quarters - 2 + uneven) << shift) + odd;
    const std::uint64_t middle = times(power, quarters << shift);
    const std::uint64_t upper = times(power, (quarters + 2) << shift) - odd;

    const std::uint64_t below = middle / 4, below_ten = below / 10;
    const bool low_ten = lower <= 40 * below_ten, high_ten = 40 * below_ten + 40 <= upper;
    const bool low = lower <= 4 * below, high = 4 * below + 4 <= upper;
    const bool nearer = middle + (below & 1) > 4 * below + 2;  // halfway to the even one
    // Which it is comes at random: no branch on it.
    const auto shorter = static_cast<std::uint64_t>((below >= 10) & (low_ten != high_ten));
    const std::uint64_t one = below + static_cast<std::uint64_t>(low != high ? high : nearer);
    const std::uint64_t ten = below_ten + static_cast<std::uint64_t>(high_ten);
    return {one ^ ((one ^ ten) & (0 - shorter)), k + static_cast<int>(shorter)};
}

}  // namespace tilewise::kernel
