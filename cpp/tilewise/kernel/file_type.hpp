// The C++ type of every kind of number that files hold, those that are not computed in included.
#pragma once

#include <bit>
#include <complex>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>

#include "tilewise/base/dtype.hpp"

namespace tilewise::kernel {

/// The bits of a float16, for which C++20 has no type.
struct Half {
    std::uint16_t bits;
};

template <class T> struct IsComplex : std::false_type {};
template <class T> struct IsComplex<std::complex<T>> : std::true_type {};

/// Calls `f(Tag<T>{})` for the C++ type of any dtype.
template <class F> decltype(auto) with_file_type(Dtype dtype, F&& f) {
    switch (dtype) {
        case Dtype::int8:
            return f(Tag<std::int8_t>{});
        case Dtype::int16:
            return f(Tag<std::int16_t>{});
        case Dtype::int32:
            return f(Tag<std::int32_t>{});
        case Dtype::uint8:
            return f(Tag<std::uint8_t>{});
        case Dtype::uint16:
            return f(Tag<std::uint16_t>{});
        case Dtype::uint32:
            return f(Tag<std::uint32_t>{});
        case Dtype::float16:
            return f(Tag<Half>{});
        default:
            return with_compute_type(dtype, f);
    }
}

/// Number `index` of an array of T that need not be aligned, as numbers in files are not.
template <class T> T load(const std::byte* data, std::int64_t index) {
    T value;
    std::memcpy(&value, data + index * static_cast<std::int64_t>(sizeof(T)), sizeof(T));
    return value;
}
template <class T> void store(std::byte* data, std::int64_t index, const T& value) {
    std::memcpy(data + index * static_cast<std::int64_t>(sizeof(T)), &value, sizeof(T));
}

// Float16 from and to double: straight, because by way of float would round twice, and without branches, so that loops
// become vectors.

inline double half_to_double(std::uint16_t half) {
    constexpr std::uint64_t one_exponent = std::uint64_t{1} << 52;
    const std::uint64_t magnitude = half & 0x7FFFU;
    const std::uint64_t normal = (magnitude << 42) + (1023 - 15) * one_exponent;
    const double subnormal = std::bit_cast<double>(normal + one_exponent) - 0x1p-14;  // 2^-14 · (1 + m) − 2^-14
    std::uint64_t bits = magnitude < 0x400U ? std::bit_cast<std::uint64_t>(subnormal) : normal;
    bits += magnitude >= 0x7C00U ? (2047 - 31 - (1023 - 15)) * one_exponent : 0;  // infinite, or not a number
    return std::bit_cast<double>(bits | static_cast<std::uint64_t>(half & 0x8000U) << 48);
}

/// Rounds to nearest, ties to even; too large becomes infinity.
inline std::uint16_t double_to_half(double value) {
    const auto bits = std::bit_cast<std::uint64_t>(value);
    const std::uint64_t magnitude = bits & ~(std::uint64_t{1} << 63);
    const std::uint64_t rounded = magnitude + ((std::uint64_t{1} << 41) - 1) + ((magnitude >> 42) & 1U);
    const std::uint64_t normal = (rounded >> 42) - ((1023 - 15) << 10);
    // The addition of a power of two rounds to multiples of 2^-24, the distance of subnormals, and leaves their count
    // in the last bits.
    const double shifted = std::bit_cast<double>(magnitude) + 0x1p28;
    const std::uint64_t subnormal = std::bit_cast<std::uint64_t>(shifted) - std::bit_cast<std::uint64_t>(0x1p28);
    std::uint64_t half = magnitude < std::bit_cast<std::uint64_t>(0x1p-14) ? subnormal : normal;
    half = magnitude >= std::bit_cast<std::uint64_t>(65520.0) ? 0x7C00U : half;
    half = magnitude > std::bit_cast<std::uint64_t>(std::numeric_limits<double>::infinity()) ? 0x7E00U : half;
    return static_cast<std::uint16_t>(half | (bits >> 48 & 0x8000U));
}

}  // namespace tilewise::kernel
