// Decimals of up to 19 digits, eight characters at a time: found, and rounded to the nearest binary number.
//
//     -12.3456789012345e-7,   significant  123456789012345     scale  −13 − 7 = −20
//      \/ \______/\____/ |    blocks of eight characters, in which the digits before the first other character count
//
// The idea of eight digits in three multiplications is folklore, that of one product with a 128-bit power of ten from
// Lemire, "Number parsing at a gigabyte per second" (2021). What either cannot settle is left to the library.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>

#include "tilewise/base/inline.hpp"
#include "tilewise/kernel/text/powers_of_ten.hpp"

namespace tilewise::kernel {

TILEWISE_INLINE std::uint64_t load_little(const char* at) {
    std::uint64_t block;
    std::memcpy(&block, at, sizeof block);
    return std::endian::native == std::endian::big ? __builtin_bswap64(block) : block;
}

/// Eight characters, the first in the lowest byte, less '0': digits are 0 to 9, all else is more.
TILEWISE_INLINE std::uint64_t eight_characters(const char* at) { return load_little(at) ^ 0x3030303030303030; }

/// How many digits a block begins with.
TILEWISE_INLINE int leading_digits(std::uint64_t block) {
    // A carry comes from a character that is none, and so spoils only what no longer counts.
    return std::countr_zero(((block + 0x7676767676767676) | block) & 0x8080808080808080) / 8;
}

/// The number that eight digits are.
TILEWISE_INLINE std::uint64_t eight_digits(std::uint64_t block) {
    constexpr std::uint64_t pair = 0x000000FF000000FF;
    block = block * 10 + (block >> 8);  // each even byte is two digits
    return ((block & pair) * (100 + (std::uint64_t{1000000} << 32)) +
            ((block >> 16) & pair) * (1 + (std::uint64_t{10000} << 32))) >>
           32;
}

/// The number that the first `count` characters of a block are, fewer than eight.
TILEWISE_INLINE std::uint64_t few_digits(std::uint64_t block, int count) {
    return eight_digits(block << (56 - 8 * count) << 8);
}

/// significant · 10^scale, less its sign.
struct Decimal {
    std::uint64_t significant;
    int scale;
    const char* end;
    bool negative, whole;  ///< whole: digits alone
};

/// Characters that `find_decimal` may look at.
constexpr std::ptrdiff_t decimal_room = 64;

/// Takes the exponent behind a decimal, where there is one; false where it has too many digits.
TILEWISE_INLINE bool find_exponent(Decimal& decimal) {
    const char* at = decimal.end;
    if ((*at | 0x20) != 'e' && (*at | 0x20) != 'd') {
        return true;
    }
    decimal.whole = false;
    const char* first = at + 1 + ((at[1] == '-') | (at[1] == '+'));
    const std::uint64_t block = eight_characters(first);
    const int count = leading_digits(block);
    if (count == 8) [[unlikely]] {
        return false;
    }
    if (count > 0) {
        const int exponent = static_cast<int>(few_digits(block, count));
        decimal.scale += at[1] == '-' ? -exponent : exponent;
        decimal.end = first + count;
    }
    return true;
}

/// Finds the decimal that begins at `at`, where `decimal_room` characters can be read; false where it has more digits
/// than fit, or is none.
TILEWISE_INLINE bool find_decimal(const char* at, char mark, Decimal& decimal) {
    constexpr std::array<std::uint32_t, 8> tens{1, 10, 100, 1000, 10000, 100000, 1000000, 10000000};
    constexpr std::uint64_t many = 100000000;
    constexpr std::uint64_t room = std::numeric_limits<std::uint64_t>::max() / many - 1;
    const auto ten_to = [&](int power) { return tens[static_cast<std::size_t>(power)]; };
    decimal.negative = *at == '-';
    at += (*at == '-') | (*at == '+');
    const char* const begin = at;
    std::uint64_t block = eight_characters(at), value = 0;
    int digits = leading_digits(block), fraction = 0;
    if (digits == 8) [[unlikely]] {
        value = eight_digits(block);
        at += 8;
        block = eight_characters(at);
        digits = leading_digits(block);
        if (digits == 8) [[unlikely]] {
            value = value * many + eight_digits(block);
            at += 8;
            block = eight_characters(at);
            digits = leading_digits(block);
            if (digits > 3) {
                return false;
            }
        }
        value *= ten_to(digits);
    }
    value += few_digits(block, digits);
    at += digits;
    decimal.whole = *at != mark;
    if (*at == mark) {
        ++at;
        block = eight_characters(at);
        int count = leading_digits(block);
        for (int blocks = 0; count == 8; ++blocks) {
            if (blocks == 2 || value > room) [[unlikely]] {
                return false;
            }
            value = value * many + eight_digits(block);
            at += 8;
            fraction += 8;
            block = eight_characters(at);
            count = leading_digits(block);
        }
        const std::uint64_t more = few_digits(block, count);
        if (__builtin_mul_overflow(value, ten_to(count), &value) || __builtin_add_overflow(value, more, &value))
            [[unlikely]] {
            return false;
        }
        at += count;
        fraction += count;
    }
    if (at - begin == static_cast<std::ptrdiff_t>(!decimal.whole)) [[unlikely]] {
        return false;  // no digit, perhaps a name
    }
    decimal.significant = value;
    decimal.scale = -fraction;
    decimal.end = at;
    return find_exponent(decimal);
}

/// The float nearest to significant · 10^scale, ties to even; false where it is not certain, subnormal or infinite.
template <class F> TILEWISE_INLINE bool nearest_float(std::uint64_t significant, int scale, F& value) {
    constexpr int digits = std::numeric_limits<F>::digits;  // of the significand, in bits
    constexpr int bias = std::numeric_limits<F>::max_exponent - 1;
    using Bits = std::conditional_t<sizeof(F) == 8, std::uint64_t, std::uint32_t>;
    value = 0;
    if (scale < least_power || scale > largest_power || significant == 0) [[unlikely]] {
        return significant == 0;
    }
    // The product of two numbers whose first bit is set, rounded up by less than one in its 128th bit:
    //
    //     high  [ 1 | significand | half | rest ]   middle [ rest ]      the first bit may also be a 0
    const int shift = std::countl_zero(significant);
    const PowerOfTen& power = power_of_ten(scale);
    const std::uint64_t normal = significant << shift;
    const Wide product = static_cast<Wide>(normal) * power.high + ((static_cast<Wide>(normal) * power.low) >> 64);
    const auto high = static_cast<std::uint64_t>(product >> 64), middle = static_cast<std::uint64_t>(product);
    const int top = static_cast<int>(high >> 63), extra = 62 + top - digits;
    const std::uint64_t doubled = high >> extra;
    const bool just_half = middle == 0 && doubled << extra == high && (doubled & 1) != 0;
    const int exponent = 63 + top + log2_of_ten(scale) - shift + bias;
    if (just_half || exponent < 1 || exponent >= 2 * bias) [[unlikely]] {
        return false;
    }
    // The first bit of the significand adds one to the exponent, as does a carry that rounding makes.
    value = std::bit_cast<F>(
        static_cast<Bits>((static_cast<std::uint64_t>(exponent - 1) << (digits - 1)) + ((doubled + 1) >> 1)));
    return true;
}

/// The float nearest to a decimal; false as above.
template <class F> TILEWISE_INLINE bool to_float(const Decimal& decimal, F& value) {
    using Bits = std::conditional_t<sizeof(F) == 8, std::uint64_t, std::uint32_t>;
    F magnitude;
    const bool found = nearest_float(decimal.significant, decimal.scale, magnitude);
    // Signs come at random: no branch on them.
    value = std::bit_cast<F>(
        static_cast<Bits>(std::bit_cast<Bits>(magnitude) | static_cast<Bits>(decimal.negative) << (8 * sizeof(F) - 1)));
    return found;
}

}  // namespace tilewise::kernel
