// One multiplication for each item and one for each row.
#include "tilewise/kernel/codec/fingerprint.hpp"

#include <atomic>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "tilewise/base/error.hpp"
#include "tilewise/base/threads.hpp"
#include "tilewise/kernel/isa/versions.hpp"

namespace tilewise::kernel {
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
