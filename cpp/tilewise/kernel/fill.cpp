// One value function for all kinds, stored in whatever type the block has.
#include "tilewise/kernel/fill.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <complex>
#include <cstring>
#include <limits>
#include <string>

#include "tilewise/base/dtype.hpp"
#include "tilewise/base/error.hpp"
#include "tilewise/base/random.hpp"
#include "tilewise/base/threads.hpp"
#include "tilewise/kernel/isa/versions.hpp"

namespace tilewise::kernel {
namespace {

// Values to be stored as integers may not leave the type's range; the ramp of a large matrix in int8 wraps.
template <class T> T stored_integer(double value) {
    if constexpr (std::is_unsigned_v<T>) {
        value = std::max(value, 0.0);
    }
    return static_cast<T>(static_cast<std::int64_t>(std::llround(value)));
}

template <class T> void store(std::byte* to, double value) {
    if constexpr (std::is_integral_v<T>) {
        const T stored = stored_integer<T>(value);
        std::memcpy(to, &stored, sizeof(T));
    } else {
        const T stored = static_cast<T>(value);
        std::memcpy(to, &stored, sizeof(T));
    }
}

using Store = void (*)(std::byte*, double);

Store store_for(Dtype dtype) {
    switch (dtype) {
        case Dtype::int8:
            return store<std::int8_t>;
        case Dtype::int16:
            return store<std::int16_t>;
        case Dtype::int32:
            return store<std::int32_t>;
        case Dtype::int64:
            return store<std::int64_t>;
        case Dtype::uint8:
            return store<std::uint8_t>;
        case Dtype::uint16:
            return store<std::uint16_t>;
        case Dtype::uint32:
            return store<std::uint32_t>;
        case Dtype::uint64:
            return store<std::uint64_t>;
        case Dtype::float16:
            return [](std::byte* to, double value) {
                const std::uint16_t half = double_to_half(static_cast<float>(value));
                std::memcpy(to, &half, sizeof half);
            };
        case Dtype::float32:
        case Dtype::complex64:
            return store<float>;
        case Dtype::float64:
        case Dtype::complex128:
            break;
    }
    return store<double>;
}

/// Binary digits of a type's fractions.
int digits_of(Dtype dtype) {
    switch (dtype) {
        case Dtype::float16:
            return 11;
        case Dtype::float32:
        case Dtype::complex64:
            return 24;
        default:
            return 53;
    }
}

double random_value(Dtype dtype, std::uint64_t bits) {
    if (!is_integer(dtype)) {
        return uniform(bits, digits_of(dtype));
    }
    return static_cast<double>(bits >> 60) - (dtype < Dtype::uint8 ? 8.0 : 0.0);
}

/// What stands at one place; `imaginary`: the second part of a complex number there.
struct Values {
    Fill kind;
    Dtype dtype;
    std::int64_t columns;
    std::uint64_t seed;

    double operator()(std::int64_t row, std::int64_t column, std::uint64_t bits, bool imaginary) const {
        switch (kind) {
            case Fill::random:
                return random_value(dtype, imaginary ? mix(bits ^ seed) : bits);
            case Fill::normal:
                return is_integer(dtype) ? std::round(4 * normal(bits)) : normal_pair(bits)[imaginary ? 1 : 0];
            case Fill::identity:
                return row == column && !imaginary ? 1.0 : 0.0;
            case Fill::ramp:
                return imaginary ? 0.0 : static_cast<double>(row * columns + column);
            case Fill::graded:
                break;
        }
        return normal_pair(bits)[imaginary ? 1 : 0] *
               std::pow(10.0, -20.0 * static_cast<double>(column) / static_cast<double>(columns));
    }
};

/// A whole number below 2^52, exactly: it stands in the last bits of 2^52.
TILEWISE_INLINE double half_of_bits(std::uint64_t half) {
    return std::bit_cast<double>(half | std::bit_cast<std::uint64_t>(0x1p52)) - 0x1p52;
}

/// Numbers of one row that are uniform in [0, 1), as `uniform` makes them, but without its conversion of whole numbers,
/// for which not every instruction set has a vector.
template <class T> TILEWISE_INLINE void fill_uniform(std::byte* to, std::uint64_t key, std::int64_t begin,
                                                     std::int64_t end) {
    constexpr int digits = std::numeric_limits<T>::digits;
    for (std::int64_t j = begin; j < end; ++j) {
        const std::uint64_t bits = random_bits(key, static_cast<std::uint64_t>(j)) >> (64 - digits);
        T value;
        if constexpr (digits < 32) {
            value = static_cast<T>(static_cast<std::int32_t>(bits)) * T(0x1p-24);
        } else {
            value = (half_of_bits(bits >> 32) * 0x1p32 + half_of_bits(bits & 0xffff'ffffU)) * 0x1p-53;
        }
        std::memcpy(to + (j - begin) * static_cast<std::int64_t>(sizeof(T)), &value, sizeof(T));
    }
}

}  // namespace

Fill fill_named(std::string_view name) {
    constexpr std::array<std::string_view, 5> names{"random", "normal", "identity", "ramp", "graded"};
    const auto* found = std::find(names.begin(), names.end(), name);
    if (found == names.end()) {
        throw UsageError("unknown kind of matrix '" + std::string(name) +
                         "'; expected one of random, normal, identity, ramp, graded");
    }
    return static_cast<Fill>(found - names.begin());
}

void fill(std::byte* data, const grid::Block& block, std::int64_t columns, Dtype dtype, Fill kind, std::uint64_t seed,
          int threads) {
    const Store put = store_for(dtype);
    const std::size_t size = size_of(dtype);
    const std::int64_t width = block.columns.size();
    const bool two_parts = is_complex(dtype);
    const Values value{kind, dtype, columns, seed};
    parallel_ranges(threads, block.rows.size(), [&](std::int64_t begin, std::int64_t end, int) {
        for (std::int64_t i = begin; i < end; ++i) {
            const std::int64_t row = block.rows.begin + i;
            const std::uint64_t key = row_key(seed, static_cast<std::uint64_t>(row));
            std::byte* to = data + static_cast<std::size_t>(i * width) * size;
            if (kind == Fill::random && (dtype == Dtype::float64 || dtype == Dtype::float32)) {
                const auto [first, last] = block.columns;
                dtype == Dtype::float64 ? in_versions<fill_uniform<double>>(to, key, first, last)
                                        : in_versions<fill_uniform<float>>(to, key, first, last);
                continue;
            }
            for (std::int64_t j = block.columns.begin; j < block.columns.end; ++j, to += size) {
                const std::uint64_t bits = random_bits(key, static_cast<std::uint64_t>(j));
                put(to, value(row, j, bits, false));
                if (two_parts) {
                    put(to + size / 2, value(row, j, bits, true));
                }
            }
        }
    });
}

}  // namespace tilewise::kernel
