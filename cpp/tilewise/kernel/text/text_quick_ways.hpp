// How quick reading finds starts and decimals: in registers of 32 bytes, or of 64 bits where there are no others.
#pragma once

#include <algorithm>
#include <array>

#include "tilewise/kernel/text/text_quick_loop.hpp"

#if defined(__AVX2__)
#include <immintrin.h>
#endif

namespace tilewise::kernel {
namespace {

#if defined(__AVX2__)

/// A number is loaded so that its last digit is the register's last byte; one byte further to the right it is what
/// stands before the mark that must move.
///
///     loaded up to the end      …,-12.345      12.345 is 6 long, its mark at 28
///     and to one byte before    … ,-12.34      or the same again where there is no mark
///     joined behind the mark    0 … 012345     with zeros for what is not wanted
struct Thirty_two {
    static constexpr int width = 32, room_before = width + 1;

    static __m256i load(const char* at) { return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(at)); }
    static std::uint32_t bits(__m256i bytes) { return static_cast<std::uint32_t>(_mm256_movemask_epi8(bytes)); }
    static __m256i all(int byte) { return _mm256_set1_epi8(static_cast<char>(byte)); }

    /// All bits from a byte on, 0 to 33.
    static __m256i from_byte(int byte) {
        alignas(64) static constexpr std::array<char, 2 * width + 1> edge = [] {
            std::array<char, 2 * width + 1> bytes{};
            std::fill(bytes.begin() + width + 1, bytes.end(), '\xFF');
            return bytes;
        }();
        return load(edge.data() + width + 1 - byte);
    }

    static std::uint64_t gaps(const char* at, char separator, char other) {
        const auto half = [&](const char* characters) {
            const __m256i bytes = load(characters);
            const __m256i blank = _mm256_cmpeq_epi8(_mm256_min_epu8(bytes, all(' ')), bytes);
            const __m256i apart =
                _mm256_or_si256(_mm256_cmpeq_epi8(bytes, all(separator)), _mm256_cmpeq_epi8(bytes, all(other)));
            return std::uint64_t{bits(_mm256_or_si256(blank, apart))};
        };
        return half(at) | half(at + width) << width;
    }

    TILEWISE_INLINE static bool find(const char* at, char mark, Decimal& decimal) {
        decimal.negative = *at == '-';
        at += (*at == '-') | (*at == '+');
        const __m256i characters = load(at), values = _mm256_xor_si256(characters, all('0'));
        const std::uint32_t digits = bits(_mm256_cmpeq_epi8(_mm256_min_epu8(values, all(9)), values));
        const std::uint32_t marks = bits(_mm256_cmpeq_epi8(characters, all(mark)));
        const std::uint32_t mark_bit = ~digits & (digits + 1) & marks;  // if the first that is no digit is one
        const int before = std::countr_one(digits), length = std::countr_one(digits | mark_bit);
        const int marked = mark_bit != 0, count = length - marked;
        const char* const end = at + length;
        if (count == 0 || length > 24) [[unlikely]] {
            return false;
        }
        decimal.whole = marked == 0;
        const __m256i behind = from_byte(width - length + before + 1), wanted = from_byte(width - count);
        const __m256i joined = _mm256_blendv_epi8(load(end - width - marked), load(end - width), behind);
        const __m256i ones = _mm256_and_si256(_mm256_xor_si256(joined, all('0')), wanted);
        // Ones to pairs, to fours, to eights.
        const __m256i pairs = _mm256_maddubs_epi16(ones, _mm256_set1_epi16(10 + (1 << 8)));
        const __m256i fours = _mm256_madd_epi16(pairs, _mm256_set1_epi32(100 + (1 << 16)));
        const __m256i eights =
            _mm256_madd_epi16(_mm256_packus_epi32(fours, fours), _mm256_set1_epi32(10000 + (1 << 16)));
        const auto upper = static_cast<std::uint64_t>(_mm256_extract_epi64(eights, 0));
        const auto lower = static_cast<std::uint64_t>(_mm256_extract_epi64(eights, 2));
        constexpr std::uint64_t many = 100000000, most = std::numeric_limits<std::uint64_t>::max() / many / many - 1;
        if (upper >> 32 > most) [[unlikely]] {
            return false;
        }
        decimal.significant = (upper >> 32) * (many * many) + static_cast<std::uint32_t>(lower) * many + (lower >> 32);
        decimal.scale = before - count;
        decimal.end = end;
        return (*end | 0x20) != 'e' && (*end | 0x20) != 'd' ? true : find_exponent(decimal);
    }
};

using Widest = Thirty_two;

#else

/// Eight characters in a register of 64 bits.
struct Eight {
    static constexpr std::ptrdiff_t room_before = 0;

    /// A bit for each of 64 characters that is a separator, another such character, a blank or a line end.
    static std::uint64_t gaps(const char* at, char separator, char other) {
        constexpr std::uint64_t each = 0x0101010101010101, low = 0x7F * each, high = 0x80 * each;
        const std::uint64_t separators = each * static_cast<unsigned char>(separator),
                            others = each * static_cast<unsigned char>(other);
        std::uint64_t bits = 0;
        for (int word = 0; word < 8; ++word) {
            const std::uint64_t characters = load_little(at + 8 * word), apart = characters ^ separators,
                                unlike = characters ^ others;
            const std::uint64_t after_blank = ((characters & low) + (0x7F - ' ') * each) | characters;
            const std::uint64_t neither = (((apart & low) + low) | apart) & (((unlike & low) + low) | unlike);
            bits |= ((~(after_blank & neither) & high) >> 7) * 0x0102040810204080 >> 56 << 8 * word;
        }
        return bits;
    }
    static bool find(const char* at, char mark, Decimal& decimal) { return find_decimal(at, mark, decimal); }
};

using Widest = Eight;

#endif

}  // namespace
}  // namespace tilewise::kernel
