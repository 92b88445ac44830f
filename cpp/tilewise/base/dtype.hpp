// The types of number that matrices hold, in files and in memory.
#pragma once

#include <array>
#include <bit>
#include <complex>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string_view>

namespace tilewise {

enum class Dtype {
    int8,
    int16,
    int32,
    int64,
    uint8,
    uint16,
    uint32,
    uint64,
    float16,
    float32,
    float64,
    complex64,
    complex128,
};

struct DtypeFacts {
    Dtype dtype;
    std::string_view name;
    std::size_t size;       ///< bytes of one number
    std::size_t component;  ///< bytes that are swapped together when the byte order differs
};

inline constexpr std::array dtypes{
    DtypeFacts{Dtype::int8, "int8", 1, 1},
    DtypeFacts{Dtype::int16, "int16", 2, 2},
    DtypeFacts{Dtype::int32, "int32", 4, 4},
    DtypeFacts{Dtype::int64, "int64", 8, 8},
    DtypeFacts{Dtype::uint8, "uint8", 1, 1},
    DtypeFacts{Dtype::uint16, "uint16", 2, 2},
    DtypeFacts{Dtype::uint32, "uint32", 4, 4},
    DtypeFacts{Dtype::uint64, "uint64", 8, 8},
    DtypeFacts{Dtype::float16, "float16", 2, 2},
    DtypeFacts{Dtype::float32, "float32", 4, 4},
    DtypeFacts{Dtype::float64, "float64", 8, 8},
    DtypeFacts{Dtype::complex64, "complex64", 8, 4},
    DtypeFacts{Dtype::complex128, "complex128", 16, 8},
};

constexpr const DtypeFacts& facts(Dtype dtype) { return dtypes[static_cast<std::size_t>(dtype)]; }
constexpr std::size_t size_of(Dtype dtype) { return facts(dtype).size; }
constexpr std::string_view name_of(Dtype dtype) { return facts(dtype).name; }
std::optional<Dtype> dtype_named(std::string_view name);

constexpr bool is_integer(Dtype dtype) { return dtype <= Dtype::uint64; }
constexpr bool is_complex(Dtype dtype) { return dtype >= Dtype::complex64; }

template <class T> struct Tag {
    using type = T;
};

/// Calls `f(Tag<T>{})` for the C++ type of a dtype that is computed in: 64-bit integers, real and complex floats.
/// Throws UsageError for the types that only files hold.
template <class F> decltype(auto) with_compute_type(Dtype dtype, F&& f);

[[noreturn]] void refuse_compute_type(Dtype dtype);

template <class F> decltype(auto) with_compute_type(Dtype dtype, F&& f) {
    switch (dtype) {
        case Dtype::int64:
            return f(Tag<std::int64_t>{});
        case Dtype::uint64:
            return f(Tag<std::uint64_t>{});
        case Dtype::float32:
            return f(Tag<float>{});
        case Dtype::float64:
            return f(Tag<double>{});
        case Dtype::complex64:
            return f(Tag<std::complex<float>>{});
        case Dtype::complex128:
            return f(Tag<std::complex<double>>{});
        default:
            refuse_compute_type(dtype);
    }
}

// IEEE 754 half precision, which files hold and nothing here computes in.

/// The bits of a float16, for which C++20 has no type.
struct Half {
    std::uint16_t bits;
};

// From and to each type of real numbers: straight, because double by way of float would round twice, and without
// branches, so that loops become vectors.

inline float half_to_float(std::uint16_t half) {
    constexpr std::uint32_t one_exponent = std::uint32_t{1} << 23;
    const std::uint32_t magnitude = half & 0x7FFFU, normal = (magnitude << 13) + (127 - 15) * one_exponent;
    const float subnormal = std::bit_cast<float>(normal + one_exponent) - 0x1p-14F;  // 2^-14 · (1 + m) − 2^-14
    std::uint32_t bits = magnitude < 0x400U ? std::bit_cast<std::uint32_t>(subnormal) : normal;
    bits += magnitude >= 0x7C00U ? (255 - 31 - (127 - 15)) * one_exponent : 0;  // infinite, or not a number
    return std::bit_cast<float>(bits | static_cast<std::uint32_t>(half & 0x8000U) << 16);
}

/// As `double_to_half`.
inline std::uint16_t float_to_half(float value) {
    const auto bits = std::bit_cast<std::uint32_t>(value);
    const std::uint32_t magnitude = bits & ~(std::uint32_t{1} << 31);
    const std::uint32_t rounded = magnitude + ((std::uint32_t{1} << 12) - 1) + ((magnitude >> 13) & 1U);
    const std::uint32_t normal = (rounded >> 13) - ((127 - 15) << 10);
    const float shifted = std::bit_cast<float>(magnitude) + 0.5F;  // rounds to multiples of 2^-24
    const std::uint32_t subnormal = std::bit_cast<std::uint32_t>(shifted) - std::bit_cast<std::uint32_t>(0.5F);
    std::uint32_t half = magnitude < std::bit_cast<std::uint32_t>(0x1p-14F) ? subnormal : normal;
    half = magnitude >= std::bit_cast<std::uint32_t>(65520.0F) ? 0x7C00U : half;
    half = magnitude > std::bit_cast<std::uint32_t>(std::numeric_limits<float>::infinity()) ? 0x7E00U : half;
    return static_cast<std::uint16_t>(half | (bits >> 16 & 0x8000U));
}

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

}  // namespace tilewise
