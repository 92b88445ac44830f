// Eight independent chains of xor, multiply and rotate, so that the multiplier is never waited for.
#include "tilewise/kernel/codec/checksum.hpp"

#include <array>
#include <bit>
#include <cstring>

#include "tilewise/base/random.hpp"

namespace tilewise::kernel {
namespace {

constexpr std::size_t lane_count = 8, word = sizeof(std::uint64_t), stride = lane_count * word;
using Lanes = std::array<std::uint64_t, lane_count>;

// Odd, so that multiplying loses nothing: a lane is a one-to-one function of each word that went into it. Different, so
// that words that change lanes are seen.
constexpr Lanes odd = [] {
    Lanes values{};
    for (std::size_t lane = 0; lane < lane_count; ++lane) {
        values[lane] = mix(lane + 1) | 1U;
    }
    return values;
}();

constexpr std::uint64_t spread = mix(0) | 1U;

Lanes begin(std::uint64_t seed) {
    Lanes lanes{};
    for (std::size_t lane = 0; lane < lane_count; ++lane) {
        lanes[lane] = mix(seed + odd[lane]);
    }
    return lanes;
}

// A product spreads a bit to all above it, the highest therefore nowhere; the rotation brings it down and the second
// product spreads it too. With one product alone, two flipped bits in neighbouring words of a lane would cancel.
[[gnu::always_inline]] inline void add(Lanes& lanes, std::size_t lane, std::uint64_t value) {
    lanes[lane] = std::rotl(lanes[lane] ^ (value * spread), 31) * odd[lane];
}

std::uint64_t finish(const Lanes& lanes, std::size_t bytes) {
    std::uint64_t sum = mix(bytes);
    for (const std::uint64_t lane : lanes) {
        sum = mix(std::rotl(sum, 23) ^ lane);
    }
    return sum;
}

/// Eight bytes, the first being the lowest, on processors of either byte order.
std::uint64_t load_word(const std::byte* data) {
    std::uint64_t value;
    std::memcpy(&value, data, word);
    return std::endian::native == std::endian::little ? value : __builtin_bswap64(value);
}

}  // namespace

std::uint64_t checksum(const std::byte* data, std::size_t bytes, std::uint64_t seed) {
    Lanes lanes = begin(seed);
    std::size_t at = 0;
    for (; at + stride <= bytes; at += stride) {
#pragma GCC unroll 8
        for (std::size_t lane = 0; lane < lane_count; ++lane) {
            add(lanes, lane, load_word(data + at + lane * word));
        }
    }
    std::size_t lane = 0;
    for (; at + word <= bytes; at += word) {
        add(lanes, lane++, load_word(data + at));
    }
    if (at < bytes) {
        std::array<std::byte, word> last{};
        std::memcpy(last.data(), data + at, bytes - at);
        add(lanes, lane, load_word(last.data()));
    }
    return finish(lanes, bytes);
}

std::uint64_t plain_checksum(const std::byte* data, std::size_t bytes, std::uint64_t seed) {
    Lanes lanes = begin(seed);
    std::uint64_t value = 0;
    for (std::size_t i = 0; i < bytes; ++i) {
        value |= std::to_integer<std::uint64_t>(data[i]) << (8 * (i % word));
        if (i % word == word - 1 || i == bytes - 1) {
            add(lanes, i / word % lane_count, value);
            value = 0;
        }
    }
    return finish(lanes, bytes);
}

}  // namespace tilewise::kernel
