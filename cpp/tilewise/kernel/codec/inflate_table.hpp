// Tables that lead from bits to symbols of deflate's Huffman codes.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "tilewise/base/error.hpp"

namespace tilewise::kernel {

constexpr int longest_code = 15, first_bits = 11, distance_bits = 8, lengths_bits = 7;
constexpr int symbols = 288, distances = 32, length_symbols = 19;

[[noreturn]] inline void refuse(const char* what) { throw UsageError(what); }

// What stands in a table for the bits that come next:
//
//     31   30    29   28      27 … 12    11 … 8       7 … 4   3 … 0
//     byte  sub   end  no code  value      extra bits   –       bits to drop (of a second table: beyond the first)
//
// `value` is a byte, a length, a distance or where a second table begins; the extra bits of the latter are its width.
using Entry = std::uint32_t;
constexpr Entry is_byte = 1U << 31, is_table = 1U << 30, is_end = 1U << 29, is_wrong = 1U << 28;
constexpr Entry exceptional = is_table | is_end | is_wrong;

constexpr Entry entry(std::uint32_t value, std::uint32_t extra) { return value << 12 | extra << 8; }
constexpr std::uint32_t value_of(Entry e) { return e >> 12 & 0xFFFF; }
constexpr int extra_of(Entry e) { return static_cast<int>(e >> 8 & 15); }
constexpr int bits_of(Entry e) { return static_cast<int>(e & 15); }

constexpr auto byte_entries = [] {
    std::array<Entry, symbols> all{};
    for (std::uint32_t symbol = 0; symbol < 256; ++symbol) {
        all[symbol] = is_byte | entry(symbol, 0);
    }
    all[256] = is_end;
    std::uint32_t length = 3;
    for (std::uint32_t symbol = 257; symbol < 285; ++symbol) {
        const std::uint32_t extra = symbol < 265 ? 0 : (symbol - 261) / 4;
        all[symbol] = entry(length, extra);
        length += 1U << extra;
    }
    all[285] = entry(258, 0);
    all[286] = all[287] = is_wrong;
    return all;
}();

constexpr auto distance_entries = [] {
    std::array<Entry, distances> all{};
    std::uint32_t distance = 1;
    for (std::uint32_t symbol = 0; symbol < 30; ++symbol) {
        const std::uint32_t extra = symbol < 4 ? 0 : (symbol - 2) / 2;
        all[symbol] = entry(distance, extra);
        distance += 1U << extra;
    }
    all[30] = all[31] = is_wrong;
    return all;
}();

constexpr auto length_entries = [] {
    std::array<Entry, length_symbols> all{};
    for (std::uint32_t symbol = 0; symbol < length_symbols; ++symbol) {
        all[symbol] = entry(symbol, 0);
    }
    return all;
}();

/// The entry for each sequence of `bits` bits, the first read being the lowest; longer codes go on in tables behind.
template <int bits, int count> class Table {
public:
    Entry operator[](std::uint64_t next) const { return entries_[next & ((1U << bits) - 1)]; }
    Entry further(Entry to, std::uint64_t next) const {
        return entries_[value_of(to) + (next >> bits & ((1U << extra_of(to)) - 1))];
    }

    /// Of the codes that have these lengths; 0 is no code. Only a code of a single bit may leave sequences without a
    /// meaning.
    void build(const std::uint8_t* lengths, int used, const std::array<Entry, count>& meaning) {
        std::array<int, longest_code + 1> of_length{};
        for (int symbol = 0; symbol < used; ++symbol) {
            ++of_length[lengths[symbol]];
        }
        of_length[0] = 0;
        int left = 1, longest = 0;
        std::array<int, longest_code + 2> next{};
        for (int length = 1; length <= longest_code; ++length) {
            left = 2 * left - of_length[static_cast<std::size_t>(length)];
            if (left < 0) {
                refuse("has more codes than there are");
            }
            const auto at = static_cast<std::size_t>(length);
            next[at + 1] = (next[at] + of_length[at]) << 1;
            longest = of_length[at] > 0 ? length : longest;
        }
        if (left > 0) {
            if (longest > 1) {
                refuse("has an incomplete set of codes");
            }
            std::fill_n(entries_.begin(), 1 << bits, is_wrong);
        }
        // Codes in the order of their bits as numbers: those of one second table stand next to each other, the shortest
        // first, so how wide it must be shows when its first code comes.
        std::array<int, longest_code + 2> place{};
        for (std::size_t length = 1; length <= longest_code; ++length) {
            place[length + 1] = place[length] + of_length[length];
        }
        std::array<std::uint16_t, count> sorted{};
        for (int symbol = 0; symbol < used; ++symbol) {
            if (lengths[symbol] > 0) {
                sorted[static_cast<std::size_t>(place[lengths[symbol]]++)] = static_cast<std::uint16_t>(symbol);
            }
        }
        int end = 1 << bits, table = -1, width = 0, begin = 0;
        std::size_t at = 0;
        for (int length = 1; length <= longest; ++length) {
            for (int i = 0; i < of_length[static_cast<std::size_t>(length)]; ++i, ++at) {
                const int code = reversed(next[static_cast<std::size_t>(length)] + i, length);
                const Entry means = meaning[sorted[at]];
                if (length <= bits) {
                    for (int place_of = code; place_of < 1 << bits; place_of += 1 << length) {
                        entries_[static_cast<std::size_t>(place_of)] = means | static_cast<Entry>(length);
                    }
                    continue;
                }
                if (const int top = code & ((1 << bits) - 1); top != table) {
                    table = top;
                    begin = end;
                    width = length - bits;
                    for (int room = (1 << width) - (of_length[static_cast<std::size_t>(length)] - i);
                         room > 0 && width + bits < longest;) {
                        ++width;
                        room = 2 * room - of_length[static_cast<std::size_t>(width + bits)];
                    }
                    end += 1 << width;
                    entries_[static_cast<std::size_t>(table)] =
                        is_table | entry(static_cast<std::uint32_t>(begin), static_cast<std::uint32_t>(width)) | bits;
                }
                for (int place_of = code >> bits; place_of < 1 << width; place_of += 1 << (length - bits)) {
                    entries_[static_cast<std::size_t>(begin + place_of)] = means | static_cast<Entry>(length - bits);
                }
            }
        }
    }

private:
    static int reversed(int code, int length) {
        int turned = 0;
        for (int bit = 0; bit < length; ++bit) {
            turned |= (code >> bit & 1) << (length - 1 - bit);
        }
        return turned;
    }

    std::array<Entry, (1 << bits) + (bits < longest_code ? 2 * count + (1 << (longest_code - bits)) : 0)> entries_;
};

}  // namespace tilewise::kernel
