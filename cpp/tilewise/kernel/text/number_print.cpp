// Prints numbers of every type: floats in the fewest digits, float16 from a table, complex numbers as two.
#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>
#include <vector>

#include "tilewise/base/inline.hpp"
#include "tilewise/kernel/text/number.hpp"
#include "tilewise/kernel/text/powers_of_ten.hpp"

namespace tilewise::kernel {
namespace {

// The decimal of fewest digits that still says exactly which float it is.
//
//     ──┬────────[────┬────────)────────┬──    floats, and the interval of what rounds to the one in the middle
//            ·    ·    ·    ·    ·    ·        multiples of 10^k: at least one is inside
//            ·                        ·        multiples of 10^(k+1): at most one is
//
// After Giulietti, "The Schubfach way to render doubles" (2020): scaled by 10^−k, the float and both borders are known
// to a quarter, with a last bit that says whether there is more behind, and so all comparisons are exact.

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

// Writes a float in its fewest digits, as std::to_chars does: plain or with an exponent, whichever is shorter.
//
//     digits   1 | 23456789 | 01234567      the first, and as many blocks of eight as the type can need
//     as       1234.5678   0.00123   1.5e-09

/// Eight digits as characters less '0', the first in the lowest byte.
TILEWISE_INLINE std::uint64_t split_digits(std::uint32_t number) {
    // Into fours, twos, ones; each division is a multiplication that is exact below the size of its parts.
    const std::uint64_t fours = number / 10000 + (std::uint64_t{number % 10000} << 32);
    const std::uint64_t hundreds = ((fours * 10486) >> 20) & 0x0000007F0000007F;
    const std::uint64_t twos = hundreds + ((fours - 100 * hundreds) << 16);
    const std::uint64_t tens = ((twos * 103) >> 10) & 0x000F000F000F000F;
    return tens + ((twos - 10 * tens) << 8);
}

/// Stores characters, the first from the lowest byte.
TILEWISE_INLINE void store_little(std::uint64_t characters, char* out) {
    if constexpr (std::endian::native == std::endian::big) {
        characters = __builtin_bswap64(characters);
    }
    std::memcpy(out, &characters, sizeof characters);
}

/// The digits of a number that has at most 1 + 8·blocks, moved to the left until the first is none of zero.
template <std::size_t blocks> struct Digits {
    static constexpr std::uint64_t characters = 0x3030303030303030;
    static constexpr int most = 1 + 8 * static_cast<int>(blocks);

    char first;
    std::array<std::uint64_t, blocks> block;
    int length;    ///< of the number
    int non_zero;  ///< without zeros at the end

    TILEWISE_INLINE explicit Digits(std::uint64_t number) {
        constexpr auto tens = [] {
            std::array<std::uint64_t, 20> table{1};
            for (std::size_t i = 1; i < table.size(); ++i) {
                table[i] = table[i - 1] * 10;
            }
            return table;
        }();
        const std::size_t about = (static_cast<std::size_t>(std::bit_width(number)) * 1233) >> 12;
        length = static_cast<int>(about + (number >= tens[about]));
        number *= tens[static_cast<std::size_t>(most - length)];
        constexpr std::uint64_t eight = 100000000, unit = blocks == 2 ? eight * eight : eight;
        first = static_cast<char>('0' + number / unit);
        number %= unit;
        non_zero = 1;
        for (std::size_t i = 0; i < blocks; ++i) {
            const auto part = static_cast<std::uint32_t>(blocks == 2 && i == 0 ? number / eight : number % eight);
            const std::uint64_t split = split_digits(part);
            non_zero = part == 0 ? non_zero : static_cast<int>(8 * i) + 9 - std::countl_zero(split) / 8;
            block[i] = split + characters;
        }
    }

    TILEWISE_INLINE void write(char* out, std::size_t apart) const {
        *out = first;
        for (std::size_t i = 0; i < blocks; ++i) {
            store_little(block[i], out + 1 + apart + 8 * i);
        }
    }
    /// Writes the digits behind the first `skipped`, which are 1 to 8.
    TILEWISE_INLINE void write_rest(int skipped, char* out) const {
        const int bits = 8 * (skipped - 1);
        if constexpr (blocks == 2) {
            store_little(block[0] >> bits | block[1] << (56 - bits) << 8, out);
            store_little(block[1] >> bits, out + 8);
        } else {
            store_little(block[0] >> bits, out);
        }
    }
};

/// The same without a search for whole numbers whose neighbours are at most 1 apart: no shorter one is as near.
template <class F> TILEWISE_INLINE Shortest shortest_of(F value) {
    constexpr F first_gap = std::is_same_v<F, double> ? F{9007199254740992.0} : F{16777216.0};
    const F magnitude = std::abs(value);
    if (magnitude < first_gap) {
        if (const auto whole = static_cast<std::int64_t>(magnitude); static_cast<F>(whole) == magnitude) {
            return {static_cast<std::uint64_t>(whole), 0};
        }
    }
    return shortest(value);
}

/// Writes a float, over any of `print_width` characters, and returns where it ends.
template <class F> TILEWISE_INLINE char* print_float(F value, char* out) {
    constexpr std::size_t blocks = sizeof(F) == 8 ? 2 : 1;
    if (!std::isfinite(value) || value == 0) [[unlikely]] {
        // The library writes the sign of a NaN, which nobody means.
        return std::isnan(value) ? std::copy_n("nan", 3, out) : std::to_chars(out, out + 5, value).ptr;
    }
    char* const begin = out;
    *out = '-';
    out += std::signbit(value);
    const Shortest decimal = shortest_of(value);
    const Digits<blocks> digits(decimal.digits);
    const int count = digits.non_zero;
    const int exponent = decimal.scale + digits.length - 1;  // of the first digit
    const int last = exponent - count + 1;                   // and of the last
    if (count == 1 ? last < -3 || last > 4 : last < -(count + 3) || last > 5) {
        digits.write(out, 1);
        out[1] = count > 1 ? '.' : 'e';
        out += count + (count > 1);
        const int size = exponent < 0 ? -exponent : exponent;
        out[0] = 'e';
        out[1] = exponent < 0 ? '-' : '+';
        out += 2;
        if (size >= 100) {
            *out++ = static_cast<char>('0' + size / 100);
        }
        out[0] = static_cast<char>('0' + size / 10 % 10);
        out[1] = static_cast<char>('0' + size % 10);
        return out + 2;
    }
    if (exponent < 0) {
        store_little(0x3030303030302E30, out);  // "0.000000"
        out += 1 - exponent;
        digits.write(out, 0);
        return out + count;
    }
    if (last >= 0) {
        if (exponent >= std::numeric_limits<F>::digits10) {  // the library has the digits behind the shortest
            return std::to_chars(begin, begin + 24, value).ptr;
        }
        digits.write(out, 0);
        return out + exponent + 1;
    }
    digits.write(out, 0);
    if (const int whole = exponent + 1; whole <= 4) {
        digits.write_rest(whole, out + whole + 1);
    } else {
        std::memmove(out + whole + 1, out + whole, static_cast<std::size_t>(count - whole));
    }
    out[exponent + 1] = '.';
    return out + count + 1;
}

template <class R> char* print_complex(const std::complex<R>& value, char* out) {
    *out++ = '(';
    out = print(value.real(), out);
    if (!std::signbit(value.imag()) || std::isnan(value.imag())) {
        *out++ = '+';
    }
    out = print(value.imag(), out);
    *out++ = 'j';
    *out++ = ')';
    return out;
}

/// The shortest decimals of all positive float16, made once: trying one to five digits takes longer than printing many
/// numbers.
struct HalfTable {
    static constexpr std::size_t width = 11;
    struct Entry {
        std::array<char, width> text;
        std::uint8_t length;
    };
    std::vector<Entry> entries{std::size_t{1} << 15};

    HalfTable() {
        for (std::size_t bits = 0; bits < entries.size(); ++bits) {
            const double exact = half_to_double(static_cast<std::uint16_t>(bits));
            Entry& entry = entries[bits];
            std::array<char, print_width(Dtype::float64)> text;
            const char* end = print(fewest_digits(exact, static_cast<std::uint16_t>(bits)), text.data());
            entry.length = static_cast<std::uint8_t>(end - text.data());
            std::copy_n(text.data(), entry.length, entry.text.data());
        }
    }

    /// The double nearest to the decimal of fewest digits that rounds to this float16; printing it gives that decimal
    /// back.
    static double fewest_digits(double exact, std::uint16_t bits) {
        // From just above too: a decimal halfway between two is rounded to even, but below a power of two half as much
        // rounds to it.
        const double above = std::nextafter(exact, std::numeric_limits<double>::infinity());
        for (int digits = 1; std::isfinite(exact); ++digits) {
            for (const double start : {exact, above}) {
                const double decimal = rounded(start, digits);
                if (double_to_half(decimal) == bits) {
                    return decimal;
                }
            }
        }
        return exact;
    }

    static double rounded(double value, int digits) {
        std::array<char, 32> text;
        const auto end =
            std::to_chars(text.data(), text.data() + text.size(), value, std::chars_format::scientific, digits - 1).ptr;
        double decimal = 0;
        std::from_chars(text.data(), end, decimal);
        return decimal;
    }
};

}  // namespace

char* print(double value, char* out) { return print_float(value, out); }
char* print(float value, char* out) { return print_float(value, out); }
char* print(std::int64_t value, char* out) { return std::to_chars(out, out + 20, value).ptr; }
char* print(std::uint64_t value, char* out) { return std::to_chars(out, out + 20, value).ptr; }
char* print(const std::complex<float>& value, char* out) { return print_complex(value, out); }
char* print(const std::complex<double>& value, char* out) { return print_complex(value, out); }
char* print(Half value, char* out) {
    static const HalfTable table;
    const bool negative = value.bits >> 15 != 0;
    const HalfTable::Entry& entry = table.entries[value.bits & 0x7FFFU];
    if (negative && (value.bits & 0x7FFFU) <= 0x7C00U) {
        *out++ = '-';
    }
    return std::copy_n(entry.text.data(), entry.length, out);
}

}  // namespace tilewise::kernel
