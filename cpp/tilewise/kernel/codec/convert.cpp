// Any dtype to any other through one of four wide types that lose nothing, so that 13 × 13 pairs need some 60 loops and
// not 169:
//
//     int8 … int32, uint8 … uint32, float16, float32 ──▶ double ──┐
//     int64 ──▶ itself, uint64 ──▶ itself ────────────────────────┼──▶ any dtype, rounded or held to its range once
//     complex64 ──▶ complex128 ───────────────────────────────────┘
//
// A chunk of wide numbers stays in the first-level cache; where a side is the wide type itself, its bytes are used as
// they lie.
#include "tilewise/kernel/codec/convert.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cmath>
#include <complex>
#include <cstring>
#include <limits>
#include <string>
#include <type_traits>

#include "tilewise/base/dtype.hpp"
#include "tilewise/base/error.hpp"
#include "tilewise/base/threads.hpp"
#include "tilewise/base/work.hpp"
#include "tilewise/kernel/file_type.hpp"
#include "tilewise/kernel/isa/versions.hpp"

namespace tilewise::kernel {
namespace {

// One loop for each width, which the compiler turns into shuffles of whole vectors.

template <class Word> Word swapped(Word word) {
    if constexpr (sizeof(Word) == 2) {
        return __builtin_bswap16(word);
    } else if constexpr (sizeof(Word) == 4) {
        return __builtin_bswap32(word);
    } else {
        return __builtin_bswap64(word);
    }
}

template <class Word> TILEWISE_INLINE void swap_words(const std::byte* from, std::byte* to, std::int64_t count) {
#pragma omp simd
    for (std::int64_t i = 0; i < count; ++i) {
        store(to, i, swapped(load<Word>(from, i)));
    }
}

template <class T> constexpr bool is_wide_integer = std::is_integral_v<T> && sizeof(T) == 8;

template <class From> double widened(From value) {
    if constexpr (std::is_same_v<From, Half>) {
        return half_to_double(value.bits);
    } else {
        return value;
    }
}

// The first numbers beyond the range of an integer type, whose fractions are cut off. `above` is a power of two, so
// exact; where a type of real numbers has no fractions just below the smallest, the range ends at the smallest itself.
template <class To, class Real> constexpr Real above = 2 * static_cast<Real>(std::numeric_limits<To>::max() / 2 + 1);
template <class To, class Real> TILEWISE_INLINE bool is_below(Real value) {
    constexpr Real smallest = std::numeric_limits<To>::min();
    constexpr bool ends_there = std::numeric_limits<To>::digits >= std::numeric_limits<Real>::digits;
    return std::is_signed_v<To> && ends_there ? value < smallest : value <= smallest - 1;
}

template <class To, class Real> TILEWISE_INLINE bool is_inside(Real value) {
    return !is_below<To>(value) & (value < above<To, Real>);  // NaN is not
}

/// The fraction cut off, for |value| < 2⁶³, or 2⁶⁴ where To has no sign. Two halves of 32 bits each are added to
/// numbers whose last bits then count them: not every set has an instruction for it.
template <class To> TILEWISE_INLINE To cut_off(double value) {
    const double whole = std::trunc(value), high = std::floor(whole * 0x1p-32), low = whole - high * 0x1p32;
    constexpr double count_high = 0x1.8p52, count_low = 0x1p52;
    const std::uint64_t upper =
                            std::bit_cast<std::uint64_t>(high + count_high) - std::bit_cast<std::uint64_t>(count_high),
                        lower = std::bit_cast<std::uint64_t>(low + count_low) - std::bit_cast<std::uint64_t>(count_low);
    return static_cast<To>((upper << 32) + lower);
}

/// The fraction cut off, held to the range of To.
template <class To, bool halves, class Real> TILEWISE_INLINE To held(Real value) {
    constexpr To largest = std::numeric_limits<To>::max(), smallest = std::numeric_limits<To>::min();
    const bool below = is_below<To>(value), beyond = value >= above<To, Real>;
    const Real inside = (value == value) & !below & !beyond ? value : Real{0};
    To whole;
    if constexpr (halves && std::is_same_v<Real, double> && (sizeof(To) == 8 || std::is_same_v<To, std::uint32_t>)) {
        whole = cut_off<To>(inside);
    } else if constexpr (sizeof(To) == 8) {
        whole = static_cast<To>(inside);
    } else {
        using Middle = std::conditional_t<sizeof(To) == 4 && std::is_unsigned_v<To>, std::int64_t, std::int32_t>;
        whole = static_cast<To>(static_cast<Middle>(inside));
    }
    const To not_above = beyond ? largest : whole;
    return below ? smallest : not_above;
}

// Each `narrow` sets `to`, which is real, and returns 1 where more than rounding was lost, else 0. Without branches,
// for vectors.

template <class To> TILEWISE_INLINE std::int64_t narrow(double value, To& to) {
    if constexpr (std::is_integral_v<To>) {
        to = held<To, false>(value);
        return is_inside<To>(value) ? 0 : 1;
    } else {
        constexpr double most = std::numeric_limits<double>::max();
        if constexpr (std::is_same_v<To, Half>) {
            to.bits = double_to_half(value);
            return ((std::abs(value) <= most) & (std::abs(value) >= 65520)) ? 1 : 0;
        } else {
            to = static_cast<To>(value);
            const double rounded = to;
            return ((std::abs(value) <= most) & (std::abs(rounded) > most)) ? 1 : 0;
        }
    }
}

template <class From, class To> TILEWISE_INLINE std::int64_t narrow_integer(From value, To& to) {
    if constexpr (std::is_integral_v<To>) {
        constexpr To largest = std::numeric_limits<To>::max(), smallest = std::numeric_limits<To>::min();
        if constexpr (std::is_signed_v<From>) {
            constexpr From high = sizeof(To) == 8 ? std::numeric_limits<From>::max() : static_cast<From>(largest);
            const From raised = value < static_cast<From>(smallest) ? static_cast<From>(smallest) : value;
            const From held = raised > high ? high : raised;
            to = static_cast<To>(held);
            return held != value ? 1 : 0;
        } else {
            const From held = value > static_cast<From>(largest) ? static_cast<From>(largest) : value;
            to = static_cast<To>(held);
            return held != value ? 1 : 0;
        }
    } else if constexpr (std::is_same_v<To, Half>) {
        return narrow(static_cast<double>(value), to);  // what a double must round is infinite as float16
    } else {
        to = static_cast<To>(value);
        return 0;
    }
}
template <class To> TILEWISE_INLINE std::int64_t narrow(std::int64_t value, To& to) {
    return narrow_integer(value, to);
}
template <class To> TILEWISE_INLINE std::int64_t narrow(std::uint64_t value, To& to) {
    return narrow_integer(value, to);
}

/// Two loops, because of one that does both the compiler makes branches.
template <class Real, class To, bool halves> TILEWISE_INLINE std::int64_t hold_all(const std::byte* from, std::byte* to,
                                                                                   std::int64_t count) {
    using Count = std::conditional_t<sizeof(Real) == 4, std::int32_t, std::int64_t>;
    Count lost = 0;
    for (std::int64_t i = 0; i < count; ++i) {
        store(to, i, held<To, halves>(load<Real>(from, i)));
    }
    for (std::int64_t i = 0; i < count; ++i) {
        lost += is_inside<To>(load<Real>(from, i)) ? 0 : 1;
    }
    return lost;
}

// Complex numbers are loaded and stored as their two parts: as structures they would go through memory.
template <class Wide, class To> TILEWISE_INLINE std::int64_t narrow_all(const std::byte* from, std::byte* to,
                                                                        std::int64_t count) {
    std::int64_t lost = 0;
    for (std::int64_t i = 0; i < count; ++i) {
        if constexpr (IsComplex<Wide>::value) {
            const double real = load<double>(from, 2 * i), imaginary = load<double>(from, 2 * i + 1);
            if constexpr (IsComplex<To>::value) {
                typename To::value_type to_real, to_imaginary;
                lost += narrow(real, to_real) | narrow(imaginary, to_imaginary);
                store(to, 2 * i, to_real);
                store(to, 2 * i + 1, to_imaginary);
            } else {
                To value;
                lost += narrow(real, value) | (imaginary != 0 ? 1 : 0);
                store(to, i, value);
            }
        } else if constexpr (IsComplex<To>::value) {
            typename To::value_type value;
            lost += narrow(load<Wide>(from, i), value);
            store(to, 2 * i, value);
            store(to, 2 * i + 1, typename To::value_type{0});
        } else {
            To value;
            lost += narrow(load<Wide>(from, i), value);
            store(to, i, value);
        }
    }
    return lost;
}

// Pairs that need no wide type between them: what fits into 32 bits and becomes float32, or comes from it; whole
// numbers that become wider ones.
template <class T> constexpr bool is_short = (std::is_integral_v<T> && sizeof(T) <= 4) || std::is_same_v<T, Half>;
template <class From, class To> constexpr bool is_direct =
    std::is_same_v<To, float>     ? is_short<From> && !std::is_same_v<From, std::uint32_t>
    : std::is_same_v<From, float> ? is_short<To> && !std::is_same_v<To, std::uint32_t>
                                  : is_short<From> && std::is_integral_v<From> && is_wide_integer<To>;

template <class From, class To> TILEWISE_INLINE std::int64_t convert_all(const std::byte* from, std::byte* to,
                                                                         std::int64_t count) {
    if constexpr (std::is_same_v<From, float> && std::is_integral_v<To>) {
        return hold_all<float, To, false>(from, to, count);
    }
    std::int32_t lost = 0;
    for (std::int64_t i = 0; i < count; ++i) {
        const From value = load<From>(from, i);
        To converted;
        if constexpr (std::is_same_v<From, Half>) {
            converted = half_to_float(value.bits);
        } else if constexpr (std::is_same_v<To, Half>) {
            converted.bits = float_to_half(value);
            lost += (std::abs(value) <= std::numeric_limits<float>::max()) & (std::abs(value) >= 65520) ? 1 : 0;
        } else {
            converted = static_cast<To>(value);
            if constexpr (std::is_signed_v<From> && std::is_unsigned_v<To>) {
                lost += value < 0 ? 1 : 0;
                converted = value < 0 ? 0 : converted;
            }
        }
        store(to, i, converted);
    }
    return lost;
}

template <class From> TILEWISE_INLINE void widen_all(const std::byte* from, std::byte* to, std::int64_t count) {
    for (std::int64_t i = 0; i < count; ++i) {
        store(to, i, widened(load<From>(from, i)));
    }
}

template <class T> using WideOf =
    std::conditional_t<is_wide_integer<T>, T, std::conditional_t<IsComplex<T>::value, std::complex<double>, double>>;

constexpr std::int64_t chunk = 1024;
using Scratch = std::array<std::byte, static_cast<std::size_t>(chunk) * sizeof(std::complex<double>)>;

void swap_numbers(const std::byte* from, std::byte* to, std::int64_t count, Dtype dtype) {
    const std::size_t width = facts(dtype).component;
    swap_bytes(from, to, count * static_cast<std::int64_t>(size_of(dtype) / width), width);
}

/// At most a chunk of numbers, in the byte order of this processor.
template <class From, class To> std::int64_t convert_chunk(const std::byte* from, std::byte* to, std::int64_t count) {
    if constexpr (is_direct<From, To>) {
        return in_versions<convert_all<From, To>>(from, to, count);
    }
    using Wide = WideOf<From>;
    Scratch scratch;
    const std::byte* wide = from;
    if constexpr (!std::is_same_v<From, Wide>) {
        std::byte* target = std::is_same_v<To, Wide> ? to : scratch.data();
        if constexpr (IsComplex<From>::value) {
            in_versions<widen_all<typename From::value_type>>(from, target, 2 * count);
        } else {
            in_versions<widen_all<From>>(from, target, count);
        }
        wide = target;
    }
    if constexpr (std::is_same_v<To, Wide>) {
        return 0;
    } else if constexpr (std::is_same_v<Wide, double> && std::is_integral_v<To>) {
        return in_widths<hold_all<Wide, To, false>, hold_all<Wide, To, true>, hold_all<Wide, To, false>>(wide, to,
                                                                                                         count);
    } else {
        return in_versions<narrow_all<Wide, To>>(wide, to, count);
    }
}

/// In place. Returns how many finite numbers, of so many `parts` each, have a part that became infinite.
std::int64_t multiply(double* numbers, std::int64_t count, std::int64_t parts, double scale) {
    std::int64_t overflows = 0;
    for (std::int64_t i = 0; i < count * parts; i += parts) {
        bool overflow = false;
        for (std::int64_t part = i; part < i + parts; ++part) {
            const bool was_finite = std::isfinite(numbers[part]);
            numbers[part] *= scale;
            overflow = overflow || (was_finite && std::isinf(numbers[part]));
        }
        overflows += overflow ? 1 : 0;
    }
    return overflows;
}

std::int64_t convert_scaled(const std::byte* from, Dtype from_dtype, bool swap_from, std::byte* to, Dtype to_dtype,
                            bool swap_to, std::int64_t count, double scale) {
    const Dtype wide = is_complex(from_dtype) ? Dtype::complex128 : Dtype::float64;
    const auto from_item = static_cast<std::int64_t>(size_of(from_dtype)),
               to_item = static_cast<std::int64_t>(size_of(to_dtype));
    std::array<double, static_cast<std::size_t>(2 * chunk)> numbers;
    auto* bytes = reinterpret_cast<std::byte*>(numbers.data());
    std::int64_t lost = 0;
    for (std::int64_t begin = 0; begin < count; begin += chunk) {
        const std::int64_t here = std::min(chunk, count - begin);
        convert(from + begin * from_item, from_dtype, swap_from, bytes, wide, false, here);
        const std::int64_t overflows = multiply(numbers.data(), here, wide == Dtype::float64 ? 1 : 2, scale);
        lost += is_integer(to_dtype) ? 0 : overflows;  // an integer is held to its range, and counted there
        lost += convert(bytes, wide, false, to + begin * to_item, to_dtype, swap_to, here);
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

void swap_bytes(const std::byte* from, std::byte* to, std::int64_t count, std::size_t width) {
    switch (width) {
        case 2:
            return in_versions<swap_words<std::uint16_t>>(from, to, count);
        case 4:
            return in_versions<swap_words<std::uint32_t>>(from, to, count);
        case 8:
            return in_versions<swap_words<std::uint64_t>>(from, to, count);
        default:
            if (from != to && count > 0) {
                std::memcpy(to, from, static_cast<std::size_t>(count) * width);
            }
    }
}

std::int64_t convert(const std::byte* from, Dtype from_dtype, bool swap_from, std::byte* to, Dtype to_dtype,
                     bool swap_to, std::int64_t count, std::optional<double> scale) {
    if (scale) {
        return convert_scaled(from, from_dtype, swap_from, to, to_dtype, swap_to, count, *scale);
    }
    if (from_dtype == to_dtype) {
        if (swap_from != swap_to) {
            swap_numbers(from, to, count, from_dtype);
        } else if (count > 0) {
            std::memcpy(to, from, static_cast<std::size_t>(count) * size_of(from_dtype));
        }
        return 0;
    }
    return with_file_type(from_dtype, [&](auto from_tag) {
        return with_file_type(to_dtype, [&](auto to_tag) -> std::int64_t {
            using From = typename decltype(from_tag)::type;
            using To = typename decltype(to_tag)::type;
            if constexpr (std::is_same_v<From, To>) {
                return 0;  // handled above
            } else {
                std::int64_t lost = 0;
                Scratch swapped_from;
                for (std::int64_t begin = 0; begin < count; begin += chunk) {
                    const std::int64_t here = std::min(chunk, count - begin);
                    const std::byte* raw = from + begin * static_cast<std::int64_t>(sizeof(From));
                    std::byte* target = to + begin * static_cast<std::int64_t>(sizeof(To));
                    if (swap_from) {
                        swap_numbers(raw, swapped_from.data(), here, from_dtype);
                        raw = swapped_from.data();
                    }
                    lost += convert_chunk<From, To>(raw, target, here);
                    if (swap_to) {
                        swap_numbers(target, target, here, to_dtype);
                    }
                }
                return lost;
            }
        });
    });
}

std::size_t raw_offset(std::int64_t count, Dtype from, Dtype to) {
    if (size_of(from) > size_of(to)) {
        throw UsageError("cannot read " + std::string(name_of(from)) + " as the narrower " + std::string(name_of(to)));
    }
    return static_cast<std::size_t>(count) * (size_of(to) - size_of(from));
}

std::int64_t widen(std::byte* buffer, std::int64_t count, Dtype from, bool swap_bytes, Dtype to) {
    if (is_complex(from) && !is_complex(to)) {
        throw UsageError("cannot read complex numbers as " + std::string(name_of(to)));
    }
    const std::byte* raw = buffer + raw_offset(count, from, to);
    if (from == to) {
        if (swap_bytes) {
            swap_numbers(buffer, buffer, count, from);
        }
        return 0;
    }
    const auto item = static_cast<std::int64_t>(size_of(from)), to_item = static_cast<std::int64_t>(size_of(to));
    Scratch scratch;
    std::int64_t lost = 0;
    for (std::int64_t begin = 0; begin < count; begin += chunk) {
        const std::int64_t here = std::min(chunk, count - begin);
        std::memcpy(scratch.data(), raw + begin * item, static_cast<std::size_t>(here * item));
        lost += convert(scratch.data(), from, swap_bytes, buffer + begin * to_item, to, false, here);
    }
    return lost;
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
