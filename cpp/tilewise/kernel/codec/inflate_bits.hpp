// The bits of a deflate stream, 56 and more at a time.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>

#include "tilewise/base/inline.hpp"
#include "tilewise/kernel/codec/inflate_table.hpp"

namespace tilewise::kernel {

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

}  // namespace tilewise::kernel
