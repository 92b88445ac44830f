// Writes a float in its fewest digits, as std::to_chars does: plain or with an exponent, whichever is shorter.
//
//     digits   1 | 23456789 | 01234567      the first, and as many blocks of eight as the type can need
//     as       1234.5678   0.00123   1.5e-09
#pragma once

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <cstring>

#include "tilewise/kernel/text/shortest.hpp"

namespace tilewise::kernel {

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

}  // namespace tilewise::kernel
