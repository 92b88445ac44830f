// Tests of single numbers as text: read and printed as the C library does it, at the hardest places, and every float16.
#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <doctest/doctest.h>
#include <limits>
#include <string>

#include "text_plain.hpp"
#include "tilewise/base/random.hpp"
#include "tilewise/kernel/text/number.hpp"

using namespace tilewise;
using namespace tilewise::kernel;

namespace {

template <class F> F scanned(const std::string& text) {
    F value{};
    const Scan found = scan(text.data(), text.data() + text.size(), value);
    REQUIRE(found.fault == Fault::none);
    REQUIRE(found.end == text.data() + text.size());
    return value;
}

bool same(double x, double y) { return std::bit_cast<std::uint64_t>(x) == std::bit_cast<std::uint64_t>(y); }
bool same(float x, float y) { return std::bit_cast<std::uint32_t>(x) == std::bit_cast<std::uint32_t>(y); }

void check_text(const std::string& text) {
    INFO(text);
    REQUIRE(same(scanned<double>(text), std::strtod(text.c_str(), nullptr)));
    REQUIRE(same(scanned<float>(text), std::strtof(text.c_str(), nullptr)));
}

template <class F> std::string printed(const char* format, F value) {
    std::array<char, 1300> text;
    return {text.data(), static_cast<std::size_t>(std::snprintf(text.data(), text.size(), format, value))};
}

/// All digits of the point between two neighbours, and of the closest points to either side that long double has.
void check_halfway(long double low, long double high) {
    const long double middle = (low + high) / 2;
    for (const long double point : {middle, std::nextafter(middle, 0.0L), std::nextafter(middle, 2 * middle)}) {
        check_text(printed("%.1200Le", point));
    }
}

}  // namespace

TEST_CASE("random bit patterns read as strtod reads them, in the shortest form and with 17 digits") {
    for (std::uint64_t i = 0; i < 1000000; ++i) {
        const auto value = std::bit_cast<double>(mix(i));
        if (!std::isfinite(value)) {
            continue;
        }
        check_text(printed("%.17g", value));
        std::array<char, 32> text;
        const std::string shortest(text.data(), static_cast<std::size_t>(print(value, text.data()) - text.data()));
        REQUIRE(same(scanned<double>(shortest), value));
        const auto single = std::bit_cast<float>(static_cast<std::uint32_t>(mix(i) >> 20));
        if (std::isfinite(single)) {
            check_text(printed("%.9g", static_cast<double>(single)));
            REQUIRE(same(scanned<float>(std::string(text.data(), print(single, text.data()))), single));
        }
    }
}

TEST_CASE("floats print as the library prints them in the fewest digits") {
    const auto check = [](auto value, std::uint64_t i) {
        constexpr std::size_t width = print_width(sizeof value == 8 ? Dtype::float64 : Dtype::float32);
        std::array<char, 40> ours, library;
        ours.fill('x');
        const std::string text(ours.data(), print(value, ours.data()));
        const std::string expected(library.data(), std::to_chars(library.data(), library.data() + 40, value).ptr);
        CAPTURE(i);
        REQUIRE(text == (std::isnan(value) ? "nan" : expected));
        REQUIRE(std::all_of(ours.begin() + width, ours.end(), [](char c) { return c == 'x'; }));
    };
    for (std::uint64_t i = 0; i < 300000; ++i) {
        const std::uint64_t bits = mix(i);
        const int few = static_cast<int>(bits % 64);
        const double whole = static_cast<double>(static_cast<std::int64_t>(bits) >> few);
        check(std::bit_cast<double>(bits), i);
        check(std::bit_cast<float>(static_cast<std::uint32_t>(bits)), i);
        check(whole, i);
        check(static_cast<float>(whole), i);
        check(std::ldexp(whole, -static_cast<int>(mix(i + 1) % 64)), i);
        check(static_cast<double>(bits % 100000) / std::pow(10, few % 12), i);
        check(static_cast<float>(bits % 100000) / static_cast<float>(std::pow(10, few % 12)), i);
    }
    for (int power = -1080; power < 1030; ++power) {  // below a power of two floats lie half as far apart
        check(std::ldexp(1.0, power), 0);
        check(-std::ldexp(1.0F, power / 6), 0);
        check(std::pow(10.0, power / 3), 0);
    }
}

TEST_CASE("subnormals, halfway cases and the ends of the range read as strtod reads them") {
    constexpr double infinity = std::numeric_limits<double>::infinity();
    for (std::uint64_t i = 0; i < 2000; ++i) {
        const auto subnormal = std::bit_cast<double>(mix(i) >> (12 + i % 52));
        const auto usual = std::bit_cast<double>((mix(i) >> 2) + (std::uint64_t{1} << 60));
        for (const double value : {subnormal, usual}) {
            check_text(printed("%.17g", value));
            check_text(printed("%.1100e", value));
            check_halfway(value, std::nextafter(value, infinity));
        }
        const float single = std::bit_cast<float>(static_cast<std::uint32_t>(mix(i) >> (33 + i % 24)));
        if (std::isfinite(single)) {
            check_halfway(single, std::nextafter(single, std::numeric_limits<float>::infinity()));
        }
    }
    for (const char* digits : {"9007199254740993", "9007199254740995", "4503599627370496.5", "4503599627370497.5"}) {
        const std::string halfway =
            std::string(digits) + (std::string(digits).find('.') == std::string::npos ? "." : "");
        check_text(halfway + std::string(60, '0') + "1");
        check_text(halfway);
    }
    check_text("4503599627370496.4" + std::string(60, '9'));
    for (const char* text : {"2.4703282292062327208e-324",
                             "2.4703282292062328e-324",
                             "4.9406564584124654e-324",
                             "1.7976931348623158e308",
                             "1.7976931348623159e308",
                             "179769313486231580793728971405301e276",
                             "3.4028235677973366e38",
                             "1e999",
                             "-1e999",
                             "1e-999",
                             "-1e-999",
                             "0e999",
                             "0.000e-999",
                             "-0",
                             "+5",
                             ".5",
                             "5.",
                             "+.5e+1",
                             "1E5",
                             "123456789012345678901234567890",
                             "9007199254740993",
                             "1e22",
                             "1e23",
                             "8.5899345920000004e9",
                             "1e99999999999999999999",
                             "1e-99999999999999999999"}) {
        check_text(text);
    }
    check_text("0." + std::string(400, '0') + "1");
    check_text("0." + std::string(400, '0') + "1e400");
    check_text("1" + std::string(400, '0'));
    check_text("1" + std::string(400, '0') + "e-400");
}

TEST_CASE("names, signs and Fortran's exponents") {
    CHECK(std::isnan(scanned<double>("NaN")));
    CHECK(std::isnan(scanned<float>("-nan")));
    CHECK(scanned<double>("-Infinity") == -std::numeric_limits<double>::infinity());
    CHECK(scanned<double>("+iNf") == std::numeric_limits<double>::infinity());
    CHECK(scanned<double>("1.0D+05") == 1e5);
    CHECK(scanned<double>("-2.5d-3") == -2.5e-3);
    CHECK(scanned<double>("1D999") == std::numeric_limits<double>::infinity());
    CHECK(scanned<double>("+1" + std::string(400, '0') + "D-399") == 10);
    CHECK(scanned<float>("0.1d0") == 0.1F);
}

TEST_CASE("every float16 prints in the fewest digits that read back as it") {
    for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
        const Half half{static_cast<std::uint16_t>(bits)};
        std::array<char, 12> out;
        const std::string text(out.data(), print(half, out.data()));
        REQUIRE(text.size() <= print_width(Dtype::float16));
        const bool is_nan = (bits & 0x7FFFU) > 0x7C00U;
        REQUIRE(is_nan == (text == "nan"));
        if (is_nan) {
            continue;
        }
        REQUIRE(scanned<Half>(text).bits == bits);
        const std::size_t digits = digits_in(text);
        if (digits < 2) {
            continue;  // zero, infinite, or one digit: no fewer
        }
        // The two decimals of one digit less between which it lies are other numbers.
        const double value = std::abs(half_to_double(half.bits));
        const int scale = static_cast<int>(digits) - 2 - static_cast<int>(std::floor(std::log10(value)));
        const auto below = static_cast<int>(std::floor(value * std::pow(10.0, scale)));
        for (const int decimal : {below, below + 1}) {
            REQUIRE(scanned<Half>(std::to_string(decimal) + "e" + std::to_string(-scale)).bits != (bits & 0x7FFFU));
        }
    }
    std::array<char, 12> out;
    CHECK(std::string(out.data(), print(Half{0x2E66}, out.data())) == "0.1");
    CHECK(std::string(out.data(), print(Half{0x2400}, out.data())) == "0.01563");  // 0.015625, half of a tie
}

TEST_CASE("float16 is rounded from the nearest double, not by way of float") {
    // Just above the middle between 1 and the next float16; by way of float it would be the tie, and round down.
    CHECK(scanned<Half>("1.0004882812500003").bits == 0x3C01);
    CHECK(scanned<Half>("1.00048828125").bits == 0x3C00);
    CHECK(scanned<Half>("65519.999999999").bits == 0x7BFF);
    CHECK(scanned<Half>("65520").bits == 0x7C00);
    CHECK(scanned<Half>("-2.98023223876953125e-8").bits == 0x8000);
    CHECK(scanned<Half>("-2.9802322387695323e-8").bits == 0x8001);
}
