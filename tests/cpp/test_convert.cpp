// Tests of conversion, byte order and checksums, each against the plainest way to say the same.
#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <complex>
#include <cstring>
#include <doctest/doctest.h>
#include <limits>
#include <set>
#include <type_traits>
#include <vector>

#include "tilewise/base/dtype.hpp"
#include "tilewise/base/error.hpp"
#include "tilewise/base/random.hpp"
#include "tilewise/kernel/codec/checksum.hpp"
#include "tilewise/kernel/codec/convert.hpp"
#include "tilewise/kernel/codec/unpack.hpp"
#include "tilewise/kernel/file_type.hpp"

using namespace tilewise;
using namespace tilewise::kernel;

namespace {

using Bytes = std::vector<std::byte>;
using Wide = std::complex<long double>;  // holds every number of every dtype exactly

Bytes random_bytes(std::size_t count, std::uint64_t seed) {
    Bytes bytes(count);
    for (std::size_t i = 0; i < count; ++i) {
        bytes[i] = static_cast<std::byte>(mix(seed + i));
    }
    return bytes;
}

Bytes reversed(Bytes bytes, std::size_t width) {
    for (std::size_t at = 0; at + width <= bytes.size(); at += width) {
        std::reverse(bytes.begin() + static_cast<std::ptrdiff_t>(at),
                     bytes.begin() + static_cast<std::ptrdiff_t>(at + width));
    }
    return bytes;
}

template <class T> Wide wide(T value) {
    if constexpr (std::is_same_v<T, Half>) {
        return {static_cast<long double>(half_to_double(value.bits)), 0};
    } else if constexpr (IsComplex<T>::value) {
        return {static_cast<long double>(value.real()), static_cast<long double>(value.imag())};
    } else {
        return {static_cast<long double>(value), 0};
    }
}

/// One real number in plain steps; adds to `lost` what counts as lost.
template <class T> T real_number(long double value, bool& lost) {
    if constexpr (std::is_same_v<T, Half>) {
        const Half half{double_to_half(static_cast<double>(value))};
        lost |= std::isfinite(value) && std::isinf(half_to_double(half.bits));
        return half;
    } else if constexpr (std::is_floating_point_v<T>) {
        lost |= std::isfinite(value) && std::isinf(static_cast<T>(value));
        return static_cast<T>(value);
    } else {
        const long double whole = std::trunc(value);
        const auto smallest = static_cast<long double>(std::numeric_limits<T>::min());
        const auto largest = static_cast<long double>(std::numeric_limits<T>::max());
        lost |= !(whole >= smallest && whole <= largest);
        return std::isnan(whole)  ? T{0}
               : whole < smallest ? std::numeric_limits<T>::min()
               : whole > largest  ? std::numeric_limits<T>::max()
                                  : static_cast<T>(whole);
    }
}

template <class T> T number(const Wide& value, bool& lost) {
    if constexpr (IsComplex<T>::value) {
        using R = typename T::value_type;
        const R real = real_number<R>(value.real(), lost);
        return {real, real_number<R>(value.imag(), lost)};
    } else {
        lost |= value.imag() != 0;
        return real_number<T>(value.real(), lost);
    }
}

/// Numbers that lie at the borders of types, and others.
template <class T> T sample(std::uint64_t index) {
    if constexpr (std::is_same_v<T, Half>) {
        return {static_cast<std::uint16_t>(mix(index))};
    } else if constexpr (IsComplex<T>::value) {
        using R = typename T::value_type;
        return {sample<R>(index), index % 3 == 0 ? R{0} : sample<R>(index + 7)};
    } else if constexpr (std::is_integral_v<T>) {
        const auto bits = static_cast<T>(mix(index) >> (index % (8 * sizeof(T))));
        const std::array<T, 4> ends{std::numeric_limits<T>::min(), std::numeric_limits<T>::max(), T{0}, T{1}};
        return index % 9 < 4 ? ends[index % 9] : bits;
    } else {
        const T power = std::ldexp(T{1}, static_cast<int>(mix(index) % 70));
        const std::array<T, 10> ends{power,
                                     -power,
                                     power - 1,
                                     -power - 1,
                                     std::nextafter(power, T{0}),
                                     -power - T{0.5},
                                     power - T{0.5},
                                     std::numeric_limits<T>::infinity(),
                                     std::numeric_limits<T>::quiet_NaN(),
                                     std::numeric_limits<T>::max()};
        const T any = static_cast<T>((uniform(mix(index)) - 0.5) * std::ldexp(1.0, static_cast<int>(index % 60) - 10));
        return index % 2 == 0 ? ends[mix(index + 1) % ends.size()] : any;
    }
}

template <class From, class To> void check_pair(Dtype from, Dtype to) {
    constexpr std::int64_t count = 1024 + 701;  // more than a chunk
    Bytes in(static_cast<std::size_t>(count) * sizeof(From)), expected(static_cast<std::size_t>(count) * sizeof(To));
    std::int64_t expected_lost = 0;
    for (std::int64_t i = 0; i < count; ++i) {
        const From value = sample<From>(static_cast<std::uint64_t>(i));
        store(in.data(), i, value);
        bool lost = false;
        store(expected.data(), i, number<To>(wide(value), lost));
        expected_lost += lost;
    }
    CAPTURE(name_of(from));
    CAPTURE(name_of(to));
    for (const bool swap_from : {false, true}) {
        for (const bool swap_to : {false, true}) {
            // One byte off, so that nothing is aligned.
            Bytes from_bytes = swap_from ? reversed(in, facts(from).component) : in;
            from_bytes.insert(from_bytes.begin(), std::byte{9});
            Bytes to_bytes(expected.size() + 2, std::byte{9});
            REQUIRE(convert(from_bytes.data() + 1, from, swap_from, to_bytes.data() + 1, to, swap_to, count) ==
                    (from == to ? 0 : expected_lost));
            REQUIRE(to_bytes.front() == std::byte{9});
            REQUIRE(to_bytes.back() == std::byte{9});
            const Bytes got = Bytes(to_bytes.begin() + 1, to_bytes.end() - 1);
            const Bytes native = swap_to ? reversed(got, facts(to).component) : got;
            for (std::int64_t i = 0; i < count; ++i) {
                const Wide x = wide(load<To>(native.data(), i)), y = wide(load<To>(expected.data(), i));
                const auto same = [](long double a, long double b) {
                    return a == b || (std::isnan(a) && std::isnan(b));
                };
                INFO(static_cast<double>(wide(load<From>(in.data(), i)).real()));
                REQUIRE((same(x.real(), y.real()) && same(x.imag(), y.imag())));
            }
        }
    }
}

template <class From, class To> std::int64_t converted(From value, To& to) {
    const auto dtype_of = [](auto tag) {
        using T = typename decltype(tag)::type;
        for (const DtypeFacts& kind : dtypes) {
            const bool found = with_file_type(
                kind.dtype, [](auto other) { return std::is_same_v<typename decltype(other)::type, T>; });
            if (found) {
                return kind.dtype;
            }
        }
        throw std::logic_error("no dtype");
    };
    return convert(reinterpret_cast<const std::byte*>(&value), dtype_of(Tag<From>{}), false,
                   reinterpret_cast<std::byte*>(&to), dtype_of(Tag<To>{}), false, 1);
}

}  // namespace

TEST_CASE("all pairs of dtypes convert as plain steps do, in either byte order") {
    for (const DtypeFacts& from : dtypes) {
        for (const DtypeFacts& to : dtypes) {
            with_file_type(from.dtype, [&](auto from_tag) {
                with_file_type(to.dtype, [&](auto to_tag) {
                    check_pair<typename decltype(from_tag)::type, typename decltype(to_tag)::type>(from.dtype,
                                                                                                   to.dtype);
                });
            });
        }
    }
    CHECK(convert(nullptr, Dtype::int8, false, nullptr, Dtype::float64, false, 0) == 0);
    CHECK(convert(nullptr, Dtype::int8, false, nullptr, Dtype::int8, false, 0) == 0);
}

TEST_CASE("fractions are cut off, ranges held, and losses counted once a number") {
    std::int8_t small = 0;
    CHECK(converted(-128.9, small) == 0);
    CHECK(small == -128);
    CHECK(converted(128.0, small) == 1);
    CHECK(small == 127);
    CHECK(converted(std::numeric_limits<float>::quiet_NaN(), small) == 1);
    CHECK(small == 0);
    std::uint64_t large = 0;
    CHECK(converted(-0.9, large) == 0);
    CHECK(large == 0);
    CHECK(converted(0x1p64, large) == 1);
    CHECK(large == std::numeric_limits<std::uint64_t>::max());
    CHECK(converted(std::int64_t{-1}, large) == 1);
    CHECK(large == 0);
    std::int64_t whole = 0;
    CHECK(converted(-0x1p63, whole) == 0);
    CHECK(whole == std::numeric_limits<std::int64_t>::min());
    float single = 0;
    CHECK(converted(1e39, single) == 1);
    CHECK(std::isinf(single));
    CHECK(converted(std::numeric_limits<double>::infinity(), single) == 0);
    // By way of double this would round twice, and down.
    CHECK(converted((std::int64_t{1} << 61) + (std::int64_t{1} << 37) + 1, single) == 0);
    CHECK(single == 0x1p61F + 0x1p38F);
    CHECK(converted(std::complex<double>(1e10, 2), small) == 1);
    CHECK(small == 127);
    std::complex<float> both;
    CHECK(converted(std::complex<double>(1e300, -1e300), both) == 1);
    CHECK(both == std::complex<float>(INFINITY, -INFINITY));
}

TEST_CASE("float16 from and to float and double agrees with the compiler's conversions") {
    for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
        const auto half = static_cast<std::uint16_t>(bits);
        const double value = half_to_double(half);
#ifdef __FLT16_MANT_DIG__
        const auto expected = static_cast<double>(std::bit_cast<_Float16>(half));
        REQUIRE((value == expected || (std::isnan(value) && std::isnan(expected))));
        REQUIRE(std::signbit(value) == std::signbit(expected));
#endif
        REQUIRE((double_to_half(value) == half || std::isnan(value)));
        const float single = half_to_float(half);
        REQUIRE((static_cast<double>(single) == value || (std::isnan(value) && std::isnan(single))));
        REQUIRE(std::signbit(single) == std::signbit(value));
        for (const float near : {single, std::nextafter(single, 0.0F), std::nextafter(single, 2 * single)}) {
            REQUIRE(float_to_half(near) == double_to_half(near));
        }
        if (!std::isfinite(value) || half == 0x7BFFU || half == 0xFBFFU) {
            continue;
        }
        // Around the middle between neighbours, a tie goes to the even one.
        const double middle = (value + half_to_double(static_cast<std::uint16_t>(bits + 1))) / 2;
        const auto away = static_cast<std::uint16_t>(bits + 1);
        REQUIRE(float_to_half(static_cast<float>(middle)) == double_to_half(middle));  // which a float holds
        REQUIRE(double_to_half(middle) == (bits % 2 == 0 ? half : away));
        REQUIRE(double_to_half(std::nextafter(middle, 0)) == half);
        REQUIRE(double_to_half(std::nextafter(middle, 2 * middle)) == away);
    }
    CHECK(std::isnan(half_to_double(double_to_half(-std::numeric_limits<double>::quiet_NaN()))));
    CHECK(double_to_half(-1e300) == 0xFC00U);
    CHECK(double_to_half(65519.99999) == 0x7BFFU);
    CHECK(double_to_half(-5e-324) == 0x8000U);
#ifdef __FLT16_MANT_DIG__
    for (std::uint64_t i = 0; i < 200000; ++i) {
        const double value = std::ldexp(uniform(mix(i)) - 0.5, static_cast<int>(i % 46) - 28);
        REQUIRE(double_to_half(value) == std::bit_cast<std::uint16_t>(static_cast<_Float16>(value)));
        const auto single = static_cast<float>(value);
        REQUIRE(float_to_half(single) == std::bit_cast<std::uint16_t>(static_cast<_Float16>(single)));
    }
#endif
}

TEST_CASE("bytes are swapped in place and out of place, at any address and length") {
    for (const std::size_t width : {1U, 2U, 4U, 8U}) {
        for (const std::size_t count : {0U, 1U, 7U, 64U, 1001U}) {
            const Bytes original = random_bytes(count * width + 1, width);
            const Bytes expected = reversed(Bytes(original.begin() + 1, original.end()), width);
            Bytes out(count * width + 3), in_place = original;
            swap_bytes(original.data() + 1, out.data() + 3, static_cast<std::int64_t>(count), width);
            swap_bytes(in_place.data() + 1, in_place.data() + 1, static_cast<std::int64_t>(count), width);
            CHECK(std::equal(expected.begin(), expected.end(), out.begin() + 3));
            CHECK(std::equal(expected.begin(), expected.end(), in_place.begin() + 1));
        }
    }
}

TEST_CASE("checksums are those of the plain version, for every length and address") {
    const Bytes bytes = random_bytes(700, 1);
    for (std::size_t length = 0; length < 600; ++length) {
        REQUIRE(checksum(bytes.data() + length % 9, length, length) ==
                plain_checksum(bytes.data() + length % 9, length, length));
    }
}

TEST_CASE("fletcher32 is that of its definition, for every length") {
    for (const bool largest : {false, true}) {
        Bytes data(1500);
        for (std::size_t i = 0; i < data.size(); ++i) {
            data[i] = static_cast<std::byte>(largest ? 0xFF : mix(i));
        }
        for (std::int64_t bytes = 0; bytes <= std::ssize(data); ++bytes) {
            std::uint64_t low = 0, high = 0;
            for (std::int64_t i = 0; i < bytes; i += 2) {
                const auto byte = [&](std::int64_t at) {
                    return at < bytes ? std::to_integer<std::uint64_t>(data[static_cast<std::size_t>(at)]) : 0;
                };
                low += byte(i) << 8 | byte(i + 1);
                high += low;
            }
            // Modulo 65535, where 0 is only what never was anything else.
            const auto folded = [](std::uint64_t sum) { return sum == 0 ? 0 : (sum - 1) % 65535 + 1; };
            REQUIRE(fletcher32(data.data(), bytes) == (folded(high) << 16 | folded(low)));
        }
    }
}

TEST_CASE("a checksum sees flipped bits, swapped words, shifts, lengths and places") {
    Bytes bytes = random_bytes(64 * 8 + 21, 2);
    const std::uint64_t original = checksum(bytes.data(), bytes.size(), 0);
    std::set<std::uint64_t> seen{original};
    std::int64_t flipped_bits = 0;
    for (std::size_t bit = 0; bit < 8 * bytes.size(); ++bit) {
        bytes[bit / 8] ^= static_cast<std::byte>(1U << (bit % 8));
        const std::uint64_t changed = checksum(bytes.data(), bytes.size(), 0);
        REQUIRE(seen.insert(changed).second);
        flipped_bits += std::popcount(changed ^ original);
        bytes[bit / 8] ^= static_cast<std::byte>(1U << (bit % 8));
    }
    CHECK(static_cast<double>(flipped_bits) / static_cast<double>(8 * bytes.size()) ==
          doctest::Approx(32).epsilon(0.02));
    for (std::size_t first = 0; first < 64; ++first) {
        for (std::size_t second = first + 1; second < 64; ++second) {
            Bytes swapped = bytes;
            std::swap_ranges(swapped.begin() + static_cast<std::ptrdiff_t>(8 * first),
                             swapped.begin() + static_cast<std::ptrdiff_t>(8 * first + 8),
                             swapped.begin() + static_cast<std::ptrdiff_t>(8 * second));
            REQUIRE(seen.insert(checksum(swapped.data(), swapped.size(), 0)).second);
        }
    }
    for (std::size_t shift = 1; shift < 200; ++shift) {
        Bytes shifted = bytes;
        std::rotate(shifted.begin(), shifted.begin() + static_cast<std::ptrdiff_t>(shift), shifted.end());
        REQUIRE(seen.insert(checksum(shifted.data(), shifted.size(), 0)).second);
    }
    // Any two bits of neighbouring words, in the same lane or not: what one operation alone would let cancel.
    for (const std::size_t word : {1U, 8U, 16U}) {
        for (std::size_t pair = 0; pair < 64 * 64; ++pair) {
            Bytes twice = bytes;
            twice[pair % 64 / 8] ^= static_cast<std::byte>(1U << (pair % 8));
            twice[8 * word + pair / 64 / 8] ^= static_cast<std::byte>(1U << (pair / 64 % 8));
            REQUIRE(seen.insert(checksum(twice.data(), twice.size(), 0)).second);
        }
    }
    const Bytes zeros(300);
    for (std::size_t length = 0; length <= zeros.size(); ++length) {
        REQUIRE(seen.insert(checksum(zeros.data(), length, 0)).second);
    }
    for (std::uint64_t seed = 1; seed < 1000; ++seed) {
        REQUIRE(seen.insert(checksum(bytes.data(), bytes.size(), seed)).second);
    }
}
