// Eight independent chains of xor, multiply and rotate, so that the multiplier is never waited for.
#include "tilewise/kernel/codec/checksum.hpp"

#include <array>
#include <atomic>
#include <bit>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "tilewise/base/error.hpp"
#include "tilewise/base/random.hpp"
#include "tilewise/base/threads.hpp"
#include "tilewise/kernel/isa/versions.hpp"

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

// One multiplication for each item and one for each row.

namespace {

/// The finalizer of SplitMix64 (Steele, Lea, Flood 2014), made odd.
std::uint64_t weight(std::uint64_t seed, std::int64_t index) {
    std::uint64_t x = seed + static_cast<std::uint64_t>(index) * 0x9E3779B97F4A7C15u;
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
    return (x ^ (x >> 31)) | 1;
}

template <class T>
TILEWISE_INLINE std::uint64_t sum_row(const std::byte* row, const std::uint64_t* weights, std::int64_t count) {
    std::uint64_t sum = 0;
    for (std::int64_t j = 0; j < count; ++j) {
        T value;
        std::memcpy(&value, row + j * static_cast<std::int64_t>(sizeof(T)), sizeof(T));
        sum += static_cast<std::uint64_t>(value) * weights[j];
    }
    return sum;
}

std::uint64_t sum_row_of(std::size_t item, const std::byte* row, const std::uint64_t* weights, std::int64_t count) {
    switch (item) {
        case 1:
            return in_versions<sum_row<std::uint8_t>>(row, weights, count);
        case 2:
            return in_versions<sum_row<std::uint16_t>>(row, weights, count);
        case 4:
            return in_versions<sum_row<std::uint32_t>>(row, weights, count);
        default:
            return in_versions<sum_row<std::uint64_t>>(row, weights, count);
    }
}

/// `infinity` has all bits of the exponent and no other.
template <class Bits> void make_nans_equal(std::byte* data, std::int64_t count, Bits infinity) {
    constexpr auto without_sign = static_cast<Bits>(std::numeric_limits<Bits>::max() >> 1);
    const auto quiet = static_cast<Bits>(infinity | infinity >> 1);
    for (std::int64_t k = 0; k < count; ++k) {
        std::byte* place = data + k * static_cast<std::int64_t>(sizeof(Bits));
        Bits bits;
        std::memcpy(&bits, place, sizeof bits);
        if ((bits & without_sign) > infinity) {
            std::memcpy(place, &quiet, sizeof quiet);
        }
    }
}

}  // namespace

void make_nans_equal(std::byte* data, std::int64_t count, std::size_t width) {
    switch (width) {
        case 2:
            return make_nans_equal<std::uint16_t>(data, count, 0x7C00u);
        case 4:
            return make_nans_equal<std::uint32_t>(data, count, 0x7F80'0000u);
        case 8:
            return make_nans_equal<std::uint64_t>(data, count, 0x7FF0'0000'0000'0000u);
        default:
            throw InternalError("no floating-point number has " + std::to_string(width) + " bytes");
    }
}

std::uint64_t fingerprint(const std::byte* data, std::int64_t rows, std::int64_t columns, std::size_t item,
                          std::int64_t first_row, std::int64_t first_column, bool transposed, std::uint64_t seed,
                          int threads) {
    if (item != 1 && item != 2 && item != 4 && item != 8 && item != 16) {
        throw InternalError("no fingerprint of items of " + std::to_string(item) + " bytes");
    }
    const std::uint64_t row_seed = transposed ? ~seed : seed, column_seed = transposed ? seed : ~seed;
    const std::int64_t words = item == 16 ? 2 : 1, count = columns * words;
    std::vector<std::uint64_t> weights(static_cast<std::size_t>(count));
    for (std::int64_t j = 0; j < columns; ++j) {
        const std::uint64_t first = weight(column_seed, first_column + j);
        weights[static_cast<std::size_t>(j * words)] = first;
        if (words == 2) {  // the halves of an item must not be interchangeable, whichever side its weight is on
            weights[static_cast<std::size_t>(j * 2 + 1)] = first * 0x9E3779B97F4A7C15u;
        }
    }
    std::atomic<std::uint64_t> total = 0;
    const int workers = rows * count < (1 << 18) ? 1 : threads;
    parallel_ranges(workers, rows, [&](std::int64_t begin, std::int64_t end, int) {
        std::uint64_t sum = 0;
        for (std::int64_t i = begin; i < end; ++i) {
            const std::byte* row = data + i * columns * static_cast<std::int64_t>(item);
            sum += weight(row_seed, first_row + i) * sum_row_of(item, row, weights.data(), count);
        }
        total += sum;
    });
    return total;
}

}  // namespace tilewise::kernel
