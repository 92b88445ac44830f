// Deflate by table lookup out of a 64-bit buffer; the same steps, with every bound checked, near the ends.
#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <cstring>

#include "tilewise/base/inline.hpp"
#include "tilewise/kernel/codec/inflate_table.hpp"
#include "tilewise/kernel/codec/unpack.hpp"

namespace tilewise::kernel {
namespace {

inline std::uint64_t load64(const std::uint8_t* at) {
    std::uint64_t word;
    std::memcpy(&word, at, 8);
    if constexpr (std::endian::native == std::endian::big) {
        word = __builtin_bswap64(word);
    }
    return word;
}

/// The bits of a stream, the lowest first. Behind its end they are zeros, of which more than 8 bytes are refused.
class Bits {
public:
    Bits(const std::uint8_t* from, const std::uint8_t* end) : at_(from), end_(end) {}

    bool plenty() const { return end_ - at_ >= 8; }
    /// At least 56 bits are there after it.
    TILEWISE_INLINE void fill_from_plenty() {
        held_ |= load64(at_) << count_;
        at_ += (63 - count_) >> 3;
        count_ |= 56;
    }
    TILEWISE_INLINE void fill() {
        if (plenty()) {
            fill_from_plenty();
            return;
        }
        for (; count_ <= 56; count_ += 8) {
            if (at_ < end_) {
                held_ |= static_cast<std::uint64_t>(*at_++) << count_;
            } else if (++missing_ > 8) {
                refuse("ends early");
            }
        }
    }
    std::uint64_t next() const { return held_; }
    TILEWISE_INLINE void drop(int bits) {
        held_ >>= bits;
        count_ -= bits;
    }
    std::uint32_t take(int bits) {
        fill();
        const auto value = static_cast<std::uint32_t>(held_ & ((std::uint64_t{1} << bits) - 1));
        drop(bits);
        return value;
    }
    /// Drops what is left of a byte, and returns where the next one lies.
    const std::uint8_t* whole_byte() {
        drop(count_ & 7);
        const int unread = count_ / 8 - missing_;
        if (unread < 0) {
            refuse("ends early");
        }
        at_ -= unread;
        held_ = 0;
        count_ = 0;
        missing_ = 0;
        return at_;
    }
    /// Whether bits were taken that are not there.
    bool overran() const { return count_ < 8 * missing_; }
    void skip(std::int64_t bytes) { at_ += bytes; }
    const std::uint8_t* end() const { return end_; }

private:
    const std::uint8_t *at_, *end_;
    std::uint64_t held_ = 0;
    int count_ = 0, missing_ = 0;
};

using Bytes = Table<first_bits, symbols>;
using Distances = Table<distance_bits, distances>;
using Lengths = Table<lengths_bits, length_symbols>;

/// Copies a match within what was written; may write up to 16 bytes more than `length`.
TILEWISE_INLINE void copy_match(std::uint8_t* to, std::uint32_t distance, std::uint32_t length) {
    const std::uint8_t* from = to - distance;
    std::uint8_t* const end = to + length;
    if (distance >= 16) {
        do {
            std::memcpy(to, from, 16);
            to += 16;
            from += 16;
        } while (to < end);
    } else if (distance == 1) {
        std::memset(to, *from, length);
    } else if (distance >= 8) {
        do {
            std::memcpy(to, from, 8);
            to += 8;
            from += 8;
        } while (to < end);
    } else {
        for (int i = 0; i < 8; ++i) {  // then what is a multiple of the distance back lies far enough
            to[i] = from[i];
        }
        const std::uint32_t back = (7 + distance) / distance * distance;
        for (to += 8; to < end; to += 8) {
            std::memcpy(to, to - back, 8);
        }
    }
}

class Inflater {
public:
    Inflater(const std::uint8_t* from, const std::uint8_t* from_end, std::uint8_t* to, std::uint8_t* to_end)
        : bits_(from, from_end),
          begin_(to),
          to_(to),
          end_(to_end) {}

    std::int64_t operator()() {
        for (bool last = false; !last;) {
            last = bits_.take(1) != 0;
            switch (bits_.take(2)) {
                case 0:
                    stored();
                    break;
                case 1:
                    fixed();
                    break;
                case 2:
                    dynamic();
                    break;
                default:
                    refuse("has a block of an unknown kind");
            }
        }
        return to_ - begin_;
    }
    /// Where the stream goes on behind the last block.
    const std::uint8_t* behind() { return bits_.whole_byte(); }

private:
    void stored() {
        const std::uint8_t* at = bits_.whole_byte();
        if (bits_.end() - at < 4) {
            refuse("ends early");
        }
        const auto word = static_cast<std::uint32_t>(at[0] | at[1] << 8 | at[2] << 16) | std::uint32_t{at[3]} << 24;
        const std::int64_t length = word & 0xFFFF;
        if ((word >> 16 ^ 0xFFFF) != length) {
            refuse("has a stored block of a wrong length");
        }
        if (bits_.end() - at - 4 < length) {
            refuse("ends early");
        }
        require_room(length);
        std::memcpy(to_, at + 4, static_cast<std::size_t>(length));
        to_ += length;
        bits_.skip(4 + length);
    }

    void fixed() {
        std::array<std::uint8_t, symbols> lengths;
        std::fill_n(lengths.begin(), 144, std::uint8_t{8});
        std::fill_n(lengths.begin() + 144, 112, std::uint8_t{9});
        std::fill_n(lengths.begin() + 256, 24, std::uint8_t{7});
        std::fill_n(lengths.begin() + 280, 8, std::uint8_t{8});
        bytes_.build(lengths.data(), symbols, byte_entries);
        std::array<std::uint8_t, distances> five;
        five.fill(5);
        distances_.build(five.data(), distances, distance_entries);
        symbols_of_block();
    }

    void dynamic() {
        constexpr std::array<std::uint8_t, length_symbols> order{16, 17, 18, 0, 8,  7, 9,  6, 10, 5,
                                                                 11, 4,  12, 3, 13, 2, 14, 1, 15};
        const int first = static_cast<int>(bits_.take(5)) + 257, second = static_cast<int>(bits_.take(5)) + 1;
        const std::uint32_t given = bits_.take(4) + 4;
        if (first > 286 || second > 30) {
            refuse("has too many codes");
        }
        std::array<std::uint8_t, length_symbols> of_lengths{};
        for (std::uint32_t i = 0; i < given; ++i) {
            of_lengths[order[i]] = static_cast<std::uint8_t>(bits_.take(3));
        }
        lengths_.build(of_lengths.data(), length_symbols, length_entries);
        std::array<std::uint8_t, symbols + distances> lengths{};
        for (int i = 0; i < first + second;) {
            bits_.fill();
            const Entry found = lengths_[bits_.next()];
            if ((found & is_wrong) != 0 || bits_of(found) == 0) {
                refuse("has an unknown code");
            }
            bits_.drop(bits_of(found));
            const auto symbol = value_of(found);
            if (symbol < 16) {
                lengths[static_cast<std::size_t>(i++)] = static_cast<std::uint8_t>(symbol);
                continue;
            }
            if (symbol == 16 && i == 0) {
                refuse("repeats a length of which there is none");
            }
            const std::uint8_t again = symbol == 16 ? lengths[static_cast<std::size_t>(i - 1)] : std::uint8_t{0};
            const auto count = static_cast<int>(symbol == 16   ? 3 + bits_.take(2)
                                                : symbol == 17 ? 3 + bits_.take(3)
                                                               : 11 + bits_.take(7));
            if (i + count > first + second) {
                refuse("has too many lengths of codes");
            }
            std::fill_n(lengths.begin() + i, count, again);
            i += count;
        }
        if (lengths[256] == 0) {
            refuse("has a block without an end");
        }
        bytes_.build(lengths.data(), first, byte_entries);
        distances_.build(lengths.data() + first, second, distance_entries);
        symbols_of_block();
    }

    void symbols_of_block() {
        while (true) {
            if (quickly()) {
                return;
            }
            if (carefully()) {
                return;
            }
        }
    }

    /// Until the block ends (true), or there is little left to read or to write.
    bool quickly() {
        Bits bits = bits_;  // so that they stay in registers
        std::uint8_t* to = to_;
        bool ended = false;
        while (bits.plenty() && end_ - to >= 300) {
            bits.fill_from_plenty();
            Entry found = bytes_[bits.next()];
            if ((found & is_byte) != 0) {
                bits.drop(bits_of(found));
                *to++ = static_cast<std::uint8_t>(found >> 12);
                found = bytes_[bits.next()];
                if ((found & is_byte) != 0) {
                    bits.drop(bits_of(found));
                    *to++ = static_cast<std::uint8_t>(found >> 12);
                    found = bytes_[bits.next()];
                    if ((found & is_byte) != 0) {
                        bits.drop(bits_of(found));
                        *to++ = static_cast<std::uint8_t>(found >> 12);
                        continue;
                    }
                }
                if (!bits.plenty()) {
                    continue;
                }
                bits.fill_from_plenty();
            }
            if ((found & exceptional) != 0) {
                if ((found & is_table) != 0) {
                    const Entry further = bytes_.further(found, bits.next());
                    bits.drop(first_bits);
                    found = further;
                    if ((found & is_byte) != 0) {
                        bits.drop(bits_of(found));
                        *to++ = static_cast<std::uint8_t>(found >> 12);
                        continue;
                    }
                }
                if ((found & is_end) != 0) {
                    bits.drop(bits_of(found));
                    ended = true;
                    break;
                }
                if ((found & is_wrong) != 0) {
                    refuse("has an unknown code");
                }
            }
            const std::uint32_t length = with_extra(bits, found);
            Entry far = distances_[bits.next()];
            if ((far & exceptional) != 0) {
                far = beyond(bits, far);
            }
            const std::uint32_t distance = with_extra(bits, far);
            if (distance > to - begin_) {
                refuse("refers to bytes before its begin");
            }
            copy_match(to, distance, length);
            to += length;
        }
        bits_ = bits;
        to_ = to;
        return ended;
    }

    /// One symbol, with every bound checked; true at the block's end.
    bool carefully() {
        bits_.fill();
        Entry found = bytes_[bits_.next()];
        if ((found & is_table) != 0) {
            const Entry further = bytes_.further(found, bits_.next());
            bits_.drop(first_bits);
            found = further;
        }
        if ((found & is_wrong) != 0) {
            refuse("has an unknown code");
        }
        if ((found & is_end) != 0) {
            bits_.drop(bits_of(found));
            return true;
        }
        if ((found & is_byte) != 0) {
            bits_.drop(bits_of(found));
            require_read();
            require_room(1);
            *to_++ = static_cast<std::uint8_t>(found >> 12);
            return false;
        }
        const std::uint32_t length = with_extra(bits_, found);
        Entry far = distances_[bits_.next()];
        if ((far & exceptional) != 0) {
            far = beyond(bits_, far);
        }
        const std::uint32_t distance = with_extra(bits_, far);
        if (distance > to_ - begin_) {
            refuse("refers to bytes before its begin");
        }
        require_read();
        require_room(length);
        for (const std::uint8_t* const stop = to_ + length; to_ < stop; ++to_) {
            *to_ = *(to_ - distance);
        }
        return false;
    }

    TILEWISE_INLINE static std::uint32_t with_extra(Bits& bits, Entry found) {
        bits.drop(bits_of(found));
        const int extra = extra_of(found);
        const auto value =
            value_of(found) + static_cast<std::uint32_t>(bits.next() & ((std::uint64_t{1} << extra) - 1));
        bits.drop(extra);
        return value;
    }

    Entry beyond(Bits& bits, Entry found) const {
        if ((found & is_table) != 0) {
            const Entry further = distances_.further(found, bits.next());
            bits.drop(distance_bits);
            found = further;
        }
        if ((found & is_wrong) != 0) {
            refuse("has an unknown code");
        }
        return found;
    }

    void require_read() const {
        if (bits_.overran()) {
            refuse("ends early");
        }
    }
    void require_room(std::int64_t bytes) const {
        if (end_ - to_ < bytes) {
            refuse("unpacks to more than it should");
        }
    }

    Bits bits_;
    std::uint8_t *begin_, *to_, *end_;
    Bytes bytes_;
    Distances distances_;
    Lengths lengths_;
};

/// The checksum of RFC 1950, in parts whose sums fit 32 bits, and in lanes that the compiler makes vectors of.
std::uint32_t adler32(const std::byte* data, std::int64_t bytes) {
    constexpr std::uint32_t modulus = 65521, lanes = 16;
    constexpr std::int64_t part = 4096;  // 255 · 4096 · 4097 / 2 fits, and so does 65520 · 4096
    const auto* at = reinterpret_cast<const std::uint8_t*>(data);
    std::uint32_t low = 1, high = 0;
    for (std::int64_t begin = 0; begin < bytes; begin += part, at += part) {
        // A byte counts once in the low sum; in the high one once for itself and for each byte behind it.
        const auto count = static_cast<std::uint32_t>(std::min(part, bytes - begin)), blocks = count / lanes;
        std::uint32_t sums[lanes] = {}, before[lanes] = {}, plain = 0, weighted = 0;
        for (std::uint32_t block = 0; block < blocks; ++block) {
            for (std::uint32_t lane = 0; lane < lanes; ++lane) {
                before[lane] += sums[lane];
                sums[lane] += at[block * lanes + lane];
            }
        }
        const std::uint32_t rest = count - blocks * lanes;
        for (std::uint32_t lane = 0; lane < lanes; ++lane) {
            plain += sums[lane];
            weighted += lanes * before[lane] + (lanes - lane + rest) * sums[lane];
        }
        for (std::uint32_t i = blocks * lanes; i < count; ++i) {
            plain += at[i];
            weighted += (count - i) * at[i];
        }
        high = (high + (low * count + weighted % modulus) % modulus) % modulus;
        low = (low + plain) % modulus;
    }
    return high << 16 | low;
}

}  // namespace

std::int64_t inflate(const std::byte* from, std::int64_t packed, std::byte* to, std::int64_t room) {
    const auto* in = reinterpret_cast<const std::uint8_t*>(from);
    auto* out = reinterpret_cast<std::uint8_t*>(to);
    if (packed < 2) {
        refuse("ends early");
    }
    constexpr int deflate = 8, dictionary = 0x20;
    if ((in[0] * 256 + in[1]) % 31 != 0 || (in[0] & 15) != deflate || in[0] >> 4 > 7 || (in[1] & dictionary) != 0) {
        refuse("is not packed by deflate");
    }
    Inflater inflater(in + 2, in + packed, out, out + room);
    const std::int64_t bytes = inflater();
    const std::uint8_t* sum = inflater.behind();
    if (in + packed - sum < 4) {
        refuse("ends early");
    }
    const std::uint32_t expected = static_cast<std::uint32_t>(sum[0]) << 24 | static_cast<std::uint32_t>(sum[1]) << 16 |
                                   static_cast<std::uint32_t>(sum[2]) << 8 | sum[3];
    if (adler32(to, bytes) != expected) {
        refuse("fails its checksum");
    }
    return bytes;
}

}  // namespace tilewise::kernel
