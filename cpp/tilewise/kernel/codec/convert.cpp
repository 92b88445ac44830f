// Conversion in place by way of a small buffer that stays in the first-level cache.
#include "tilewise/kernel/codec/convert.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <complex>
#include <cstring>
#include <limits>
#include <string>
#include <type_traits>

#include "tilewise/base/error.hpp"
#include "tilewise/base/half.hpp"
#include "tilewise/base/threads.hpp"
#include "tilewise/base/work.hpp"
#include "tilewise/kernel/codec/byte_order.hpp"
#include "tilewise/kernel/file_type.hpp"
#include "tilewise/kernel/versions.hpp"

namespace tilewise::kernel {
namespace {

template <class To, class From> To converted(From value) {
    if constexpr (std::is_same_v<From, Half>) {
        return To(half_to_float(value.bits));
    } else if constexpr (IsComplex<To>::value && !IsComplex<From>::value) {
        return To(static_cast<typename To::value_type>(value));
    } else if constexpr (IsComplex<To>::value) {
        return To(static_cast<typename To::value_type>(value.real()),
                  static_cast<typename To::value_type>(value.imag()));
    } else {
        return static_cast<To>(value);
    }
}

void swap_components(std::byte* data, std::int64_t count, Dtype dtype) {
    const std::size_t width = facts(dtype).component;
    swap_bytes(data, data, static_cast<std::int64_t>(static_cast<std::size_t>(count) * size_of(dtype) / width), width);
}

constexpr std::int64_t chunk = 1024;

template <class From, class To> std::int64_t widen_all(std::byte* buffer, std::int64_t count, Dtype from,
                                                       bool swap_bytes) {
    const std::byte* raw = buffer + static_cast<std::size_t>(count) * (sizeof(To) - sizeof(From));
    std::array<From, chunk> in;
    std::array<To, chunk> out;
    std::int64_t lost = 0;
    for (std::int64_t begin = 0; begin < count; begin += chunk) {
        const std::int64_t here = std::min(chunk, count - begin);
        const auto items = static_cast<std::size_t>(here);
        std::memcpy(in.data(), raw + static_cast<std::size_t>(begin) * sizeof(From), items * sizeof(From));
        if (swap_bytes) {
            swap_components(reinterpret_cast<std::byte*>(in.data()), here, from);
        }
        for (std::size_t i = 0; i < items; ++i) {
            if constexpr (std::is_same_v<From, std::uint64_t> && std::is_same_v<To, std::int64_t>) {
                lost += in[i] > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
            } else if constexpr (std::is_integral_v<From> && std::is_signed_v<From> &&
                                 std::is_same_v<To, std::uint64_t>) {
                lost += in[i] < 0;
            }
            out[i] = converted<To>(in[i]);
        }
        std::memcpy(buffer + static_cast<std::size_t>(begin) * sizeof(To), out.data(), items * sizeof(To));
    }
    return lost;
}

/// A number has so many `parts`. Sums of a piece fit into lanes as wide as the parts are.
template <class Part, int parts> TILEWISE_INLINE std::int64_t not_finite(const std::byte* data, std::int64_t count) {
    using Bits = std::conditional_t<sizeof(Part) == 4, std::uint32_t, std::uint64_t>;
    constexpr Bits exponent = std::bit_cast<Bits>(std::numeric_limits<Part>::infinity());
    constexpr std::int64_t piece = 1 << 16;
    const Part* all = reinterpret_cast<const Part*>(data);
    std::int64_t found = 0;
    for (std::int64_t begin = 0; begin < count; begin += piece) {
        const std::int64_t end = std::min(count, begin + piece);
        Bits some = 0;
        for (std::int64_t i = begin; i < end; ++i) {
            Bits is_one = 0;
            for (int part = 0; part < parts; ++part) {
                is_one |= (std::bit_cast<Bits>(all[parts * i + part]) & exponent) == exponent ? 1U : 0U;
            }
            some += is_one;
        }
        found += static_cast<std::int64_t>(some);
    }
    return found;
}

}  // namespace

std::size_t raw_offset(std::int64_t count, Dtype from, Dtype to) {
    if (size_of(from) > size_of(to)) {
        throw UsageError("cannot read " + std::string(name_of(from)) + " as the narrower " + std::string(name_of(to)));
    }
    return static_cast<std::size_t>(count) * (size_of(to) - size_of(from));
}

std::int64_t widen(std::byte* buffer, std::int64_t count, Dtype from, bool swap_bytes, Dtype to) {
    if (from == to) {
        if (swap_bytes) {
            swap_components(buffer, count, from);
        }
        return 0;
    }
    return with_compute_type(to, [&](auto to_tag) {
        return with_file_type(from, [&](auto from_tag) -> std::int64_t {
            using To = typename decltype(to_tag)::type;
            using From = typename decltype(from_tag)::type;
            if constexpr (IsComplex<From>::value && !IsComplex<To>::value) {
                throw UsageError("cannot read complex numbers as " + std::string(name_of(to)));
            } else if constexpr (sizeof(From) > sizeof(To)) {
                raw_offset(count, from, to);  // says why not
                return 0;
            } else {
                return widen_all<From, To>(buffer, count, from, swap_bytes);
            }
        });
    });
}

double largest_magnitude(const std::byte* data, std::int64_t count, Dtype dtype) {
    std::uint64_t largest = 0;
    for (std::int64_t i = 0; i < count; ++i) {
        std::uint64_t bits = 0;
        std::memcpy(&bits, data + i * 8, 8);
        const bool negative = dtype == Dtype::int64 && (bits >> 63) != 0;
        largest = std::max(largest, negative ? ~bits + 1 : bits);
    }
    const auto rounded = static_cast<double>(largest);
    return largest > (std::uint64_t{1} << 53) ? rounded * (1 + std::numeric_limits<double>::epsilon()) : rounded;
}

std::int64_t count_not_finite(const std::byte* data, std::int64_t count, Dtype dtype, int threads) {
    if (is_integer(dtype) || without_numbers()) {
        return 0;
    }
    constexpr std::int64_t worth_threads = std::int64_t{1} << 17;
    const auto item = static_cast<std::int64_t>(size_of(dtype));
    std::atomic<std::int64_t> found = 0;
    parallel_ranges(count < worth_threads ? 1 : threads, count, [&](std::int64_t begin, std::int64_t end, int) {
        const std::byte* numbers = data + begin * item;
        switch (dtype) {
            case Dtype::float32:
                found += in_versions<not_finite<float, 1>>(numbers, end - begin);
                break;
            case Dtype::complex64:
                found += in_versions<not_finite<float, 2>>(numbers, end - begin);
                break;
            case Dtype::complex128:
                found += in_versions<not_finite<double, 2>>(numbers, end - begin);
                break;
            default:
                found += in_versions<not_finite<double, 1>>(numbers, end - begin);
        }
    });
    return found;
}

}  // namespace tilewise::kernel
