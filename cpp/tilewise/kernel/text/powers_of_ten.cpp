// The table of powers is made by the compiler: from 1, times ten upwards and by ten downwards, in 320 bits.
//
//     10^q     [ 32 | 32 | … | 32 ]    ten limbs, the first bit set; what is cut off at the end is below 2⁻³⁰⁰ of it,
//                \_______/             so the first four limbs, rounded up, are what 10^q in full would give
#include "tilewise/kernel/text/powers_of_ten.hpp"

namespace tilewise::kernel {
namespace {

constexpr std::size_t limbs = 10;
/// A number without its exponent, the most significant limb first.
using Long = std::array<std::uint32_t, limbs>;

constexpr Long shifted_left(const Long& number, int bits) {
    Long result{};
    for (std::size_t i = 0; i < limbs; ++i) {
        const std::uint64_t pair = (std::uint64_t{number[i]} << 32) | (i + 1 < limbs ? number[i + 1] : 0);
        result[i] = static_cast<std::uint32_t>(pair >> (32 - bits));
    }
    return result;
}

/// Ten times as much is 5/8 with another exponent, or 5/4 … of which one has its first bit set.
constexpr Long times_ten(const Long& number) {
    Long product{};
    std::uint64_t carry = 0;
    for (std::size_t i = limbs; i-- > 0;) {
        carry += std::uint64_t{number[i]} * 5;
        product[i] = static_cast<std::uint32_t>(carry);
        carry >>= 32;
    }
    const auto bits = static_cast<int>(std::bit_width(carry));
    for (std::size_t i = limbs; i-- > 0;) {
        const std::uint64_t before = i > 0 ? product[i - 1] : carry;
        product[i] = static_cast<std::uint32_t>(((before << 32) | product[i]) >> bits);
    }
    return product;
}

constexpr Long by_ten(const Long& number) {
    Long quotient{};
    std::uint64_t rest = 0;
    for (std::size_t i = 0; i < limbs; ++i) {
        rest = (rest << 32) | number[i];
        quotient[i] = static_cast<std::uint32_t>(rest / 5);
        rest %= 5;
    }
    return shifted_left(quotient, std::countl_zero(quotient[0]));
}

constexpr PowerOfTen rounded_up(const Long& number) {
    const auto pair = [&](std::size_t i) { return (std::uint64_t{number[i]} << 32) | number[i + 1]; };
    bool rest = false;
    for (std::size_t i = 4; i < limbs; ++i) {
        rest = rest || number[i] != 0;
    }
    const std::uint64_t low = pair(2) + rest;
    return {pair(0) + (rest && low == 0), low};
}

constexpr auto all_powers() {
    std::array<PowerOfTen, largest_power - least_power + 1> table{};
    constexpr Long one{std::uint32_t{1} << 31};
    Long number = one;
    for (int q = 0; q <= largest_power; ++q) {
        table[static_cast<std::size_t>(q - least_power)] = rounded_up(number);
        number = times_ten(number);
    }
    number = one;
    for (int q = -1; q >= least_power; --q) {
        number = by_ten(number);
        table[static_cast<std::size_t>(q - least_power)] = rounded_up(number);
    }
    return table;
}

}  // namespace

constinit const std::array<PowerOfTen, largest_power - least_power + 1> powers_of_ten = all_powers();

}  // namespace tilewise::kernel
