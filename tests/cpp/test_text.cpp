// Tests of lines of numbers: all styles, the fast version against the plain one, every kind of mistake with its line.
#include <algorithm>
#include <array>
#include <cmath>
#include <complex>
#include <doctest/doctest.h>
#include <limits>
#include <string>
#include <vector>

#include "text_plain.hpp"
#include "tilewise/base/error.hpp"
#include "tilewise/base/random.hpp"
#include "tilewise/kernel/text/line_counter.hpp"
#include "tilewise/kernel/text/text.hpp"

using namespace tilewise;
using namespace tilewise::kernel;

namespace {

constexpr std::int64_t room = 64;

template <class T> std::vector<T> parsed(const std::string& text, TextStyle style, Dtype dtype) {
    std::vector<T> numbers(static_cast<std::size_t>(room));
    const std::int64_t count = parse_text(text.data(), text.data() + text.size(), style, dtype,
                                          reinterpret_cast<std::byte*>(numbers.data()), room, 1);
    numbers.resize(static_cast<std::size_t>(count));
    const auto plain = plain_parse_text(text, style, dtype, 1);
    CHECK(plain.size() == numbers.size() * sizeof(T));
    return numbers;
}

/// What is said about a text that is refused, by which the plain version is refused too.
std::string complaint(const std::string& text, TextStyle style, Dtype dtype, std::int64_t capacity = room) {
    if (capacity == room) {
        CHECK_THROWS_AS(plain_parse_text(text, style, dtype, 1), UsageError);
    }
    std::vector<std::byte> numbers(static_cast<std::size_t>(room) * 16);
    try {
        parse_text(text.data(), text.data() + text.size(), style, dtype, numbers.data(), capacity, 1);
    } catch (const UsageError& error) {
        return error.what();
    }
    return "nothing";
}

std::string formatted(const std::byte* data, Dtype dtype, std::int64_t rows, TextStyle style, bool pairs = false) {
    std::string text(static_cast<std::size_t>(rows * (style.line_numbers + 1)) * text_width(dtype), '\0');
    text.resize(static_cast<std::size_t>(format_text(data, dtype, rows, style, pairs, text.data()) - text.data()));
    return text;
}

const std::array styles{TextStyle{' ', 2}, TextStyle{',', 2}, TextStyle{';', 2}, TextStyle{'\t', 2}};

}  // namespace

TEST_CASE("all styles read what they should, with comments, blank lines and either line end") {
    for (const TextStyle& style : styles) {
        const std::string s(1, style.separator);
        const std::string text = "# heading 1 2 3\n\n  1" + s + "2  # 3 4\r\n% 5\r\n \t \r\n" + "+3.5e0" + s +
                                 " -inf\v#x\n\f\n 5\f" + s + "6";
        CAPTURE(s);
        CHECK(count_lines(text.data(), text.data() + text.size()) == 3);
        const auto numbers = parsed<double>(text, style, Dtype::float64);
        CHECK(numbers == std::vector<double>{1, 2, 3.5, -std::numeric_limits<double>::infinity(), 5, 6});
    }
    CHECK(parsed<float>("1 \t  2 \n", {' ', 2}, Dtype::float32) == std::vector<float>{1, 2});
    CHECK(parsed<float>(" 1 ,\t2 \n", {',', 2}, Dtype::float32) == std::vector<float>{1, 2});
    CHECK(parsed<float>("", {',', 2}, Dtype::float32).empty());
    CHECK(parsed<float>("# only this", {',', 2}, Dtype::float32).empty());
    CHECK(count_lines(nullptr, nullptr) == 0);
}

TEST_CASE("lines are counted alike however a text is cut, and returns without a line feed are noticed") {
    const std::string letters = "1-\n\n\n  \t\r#%,!\v";
    for (std::uint64_t seed = 0; seed < 300; ++seed) {
        std::uint64_t state = seed;
        const auto below = [&](std::size_t limit) { return static_cast<std::size_t>((state = mix(state)) % limit); };
        std::string text(below(9000), '5');
        for (char& letter : text) {
            letter = below(seed % 40 + 1) == 0 ? letters[below(letters.size())] : letter;
        }
        for (const auto& [tabs, comments] : {std::pair(false, true), std::pair(true, true), std::pair(true, false)}) {
            const std::string marks = comments ? "\n#%" : "\n";
            std::int64_t expected = 0;
            bool lone = false;
            LineCounter counter('\n', tabs, comments);
            for (std::size_t i = 0; i < text.size(); ++i) {
                lone |= text[i] == '\r' && text.substr(i + 1, 1) != "\n";
                if (i == 0 || text[i - 1] == '\n') {
                    const std::size_t first = text.find_first_not_of(tabs ? " \r\v\f" : " \t\r\v\f", i);
                    expected += first < text.size() && marks.find(text[first]) == std::string::npos;
                }
            }
            for (std::size_t at = 0; at < text.size();) {
                const std::size_t some = std::min(text.size() - at, below(seed % 2 == 0 ? 5 : 9000) + 1);
                counter.add(text.data() + at, static_cast<std::int64_t>(some));
                at += some;
            }
            CHECK(counter.count() == expected);
            CHECK(counter.has_lone_return(true) == lone);
        }
    }
}

TEST_CASE("integers are exact, may look like floats, and must be whole and fit") {
    CHECK(
        parsed<std::int64_t>("9223372036854775807 -9223372036854775808\n", {' ', 2}, Dtype::int64) ==
        std::vector<std::int64_t>{std::numeric_limits<std::int64_t>::max(), std::numeric_limits<std::int64_t>::min()});
    CHECK(parsed<std::uint64_t>("18446744073709551615 1844674407370955161.50e1\n", {' ', 2}, Dtype::uint64) ==
          std::vector<std::uint64_t>{std::numeric_limits<std::uint64_t>::max(),
                                     std::numeric_limits<std::uint64_t>::max()});
    CHECK(parsed<std::int8_t>("-128,1.20e2\n3.0,-0.000\n1d1,500e-2\n", {',', 2}, Dtype::int8) ==
          std::vector<std::int8_t>{-128, 120, 3, 0, 10, 5});
    CHECK(parsed<std::uint8_t>("0e999 -0\n" + std::string("1") + std::string(30, '0') + "e-30 .0\n", {' ', 2},
                               Dtype::uint8) == std::vector<std::uint8_t>{0, 0, 1, 0});

    const TextStyle one{' ', 1};
    CHECK(complaint("3.5\n", one, Dtype::int32) == "line 1, column 1: \"3.5\" is not a whole number, as int32 needs");
    CHECK(complaint("nan\n", one, Dtype::int32) == "line 1, column 1: \"nan\" is not a whole number, as int32 needs");
    CHECK(complaint("\n300\n", one, Dtype::uint8) == "line 2, column 1: \"300\" is beyond uint8, which holds 0 to 255");
    CHECK(complaint("-1", one, Dtype::uint64) ==
          "line 1, column 1: \"-1\" is beyond uint64, which holds 0 to 18446744073709551615");
    CHECK(complaint("-129", one, Dtype::int8).find("-128 to 127") != std::string::npos);
    CHECK(complaint("1e19", one, Dtype::int64).find("beyond int64") != std::string::npos);
    CHECK(complaint("1e999999999999999999999", one, Dtype::int64).find("beyond int64") != std::string::npos);
    CHECK(complaint("1e-1", one, Dtype::int64).find("is not a whole number") != std::string::npos);
    CHECK(complaint("123456789012345678901234567890.5", one, Dtype::int64).find("is not a whole number") !=
          std::string::npos);
    for (const char* text : {"1e", "-", "+-3", ".", "1.2.3", "0x10", "1_0", "--1", "1e+", "e5", "1f"}) {
        CHECK(complaint(text, one, Dtype::int16) == "line 1, column 1: \"" + std::string(text) + "\" is not a number");
    }
}

TEST_CASE("what is not a number is quoted with its line") {
    const TextStyle one{' ', 1};
    for (const Dtype dtype : {Dtype::float16, Dtype::float32, Dtype::float64, Dtype::complex64, Dtype::complex128}) {
        for (const char* text : {"abc", "1_000", "0x1p3", "nan(abc)", "1e", "1d", ".", "-", "+", "+-3", "1..2",
                                 "infinit", "1,2", "1;2", "(1", "((1))", "1\r2", "1)"}) {
            std::string shown(text);
            std::replace(shown.begin(), shown.end(), '\r', '?');
            CAPTURE(text);
            CHECK(complaint("1\n\n" + std::string(text) + "\n", one, dtype) ==
                  "line 3, column 1: \"" + shown + "\" is not a number");
        }
    }
    CHECK(complaint(std::string("a\0\x80z", 4), one, Dtype::float64) == "line 1, column 1: \"a??z\" is not a number");
    CHECK(complaint(std::string(50, 'x'), one, Dtype::float64) ==
          "line 1, column 1: \"" + std::string(37, 'x') + "...\" is not a number");
    CHECK(complaint("1 2 , 3\n", {',', 2}, Dtype::float64) == "line 1, column 1: \"1 2\" is not a number");
}

TEST_CASE("a comment begins a line or follows a blank; where there are none, '#' is a character like others") {
    for (const TextStyle& style : styles) {
        const std::string s(1, style.separator);
        for (const std::string word : {"1.#INF", "-1.#IND", "1#", "1#2"}) {
            CHECK(complaint("1" + s + word + "\n", style, Dtype::float64) ==
                  "line 1, column 2: \"" + word + "\" is not a number");
        }
        TextStyle none = style;
        none.hash_comments = false;
        CHECK(complaint("1" + s + "2\n# 3\n", none, Dtype::float64).find("line 2") == 0);
        CHECK(complaint("1" + s + "2 # 3\n", none, Dtype::int32).find("line 1") == 0);
    }
    CHECK(complaint("1\n #N/A\n", {',', 1}, Dtype::float64) == "line 2, column 1: \"#N/A\" is not a number");
    CHECK(complaint("1,#2\n", {',', 2}, Dtype::float64) == "line 1, column 2: \"#2\" is not a number");
    CHECK(complaint("\"1\"#,2\n", {',', 2}, Dtype::float64) == "line 1, column 1: \"\"1\"#\" is not a number");
}

TEST_CASE("lines of the wrong length and empty fields are refused with both counts") {
    for (const TextStyle& style : styles) {
        const std::string s(1, style.separator);
        CAPTURE(s);
        CHECK(complaint("1" + s + "2\n1\n", style, Dtype::float64) == "line 2: found 1 number, expected 2");
        CHECK(complaint("1" + s + "2" + s + "3 # " + s + "4\n", style, Dtype::int32) ==
              "line 1: found 3 numbers, expected 2");
        if (s != " ") {
            CHECK(complaint("1" + s + s + "2\n", style, Dtype::float64) ==
                  "line 1, column 2: an empty field where a number was expected");
            CHECK(complaint("1" + s, style, Dtype::float64) ==
                  "line 1, column 2: an empty field where a number was expected");
            CHECK(complaint(s + "1\n", style, Dtype::float64) ==
                  "line 1, column 1: an empty field where a number was expected");
            CHECK(complaint("1" + s + "2" + s + "\n", style, Dtype::float64) == "line 1: found 3 numbers, expected 2");
        }
    }
    CHECK(complaint("1 2\n3 4\n", {' ', 2}, Dtype::int32, 3) == "line 2: more than the 3 numbers that were expected");
    CHECK(complaint("1 2\n", {' ', 0}, Dtype::int32) == "line 1: found 2 numbers, expected 0");
}

TEST_CASE("complex numbers read in all their forms, and as pairs") {
    using C = std::complex<double>;
    const std::string text = "(1+2j) 1-2j\n3 2j\n(-1.5e-3-2.5D1j) 1+-2j\n(nan+infj) -INFJ\n";
    const auto numbers = parsed<C>(text, {' ', 2}, Dtype::complex128);
    REQUIRE(numbers.size() == 8);
    CHECK(numbers[0] == C(1, 2));
    CHECK(numbers[1] == C(1, -2));
    CHECK(numbers[2] == C(3, 0));
    CHECK(numbers[3] == C(0, 2));
    CHECK(numbers[4] == C(-1.5e-3, -25));
    CHECK(numbers[5] == C(1, -2));
    CHECK(std::isnan(numbers[6].real()));
    CHECK(numbers[6].imag() == std::numeric_limits<double>::infinity());
    CHECK(numbers[7] == C(0, -std::numeric_limits<double>::infinity()));
    CHECK(parsed<std::complex<float>>("1 2\n3 4\n", {' ', 2, true}, Dtype::complex64) ==
          std::vector<std::complex<float>>{{1, 2}, {3, 4}});
    for (const char* wrong : {"(1+2j", "1+2", "1+j", "j", "1+2j3", "()", "(5)", "1j+2"}) {
        CHECK(complaint(wrong, {' ', 1}, Dtype::complex64) ==
              "line 1, column 1: \"" + std::string(wrong) + "\" is not a number");
    }
    CHECK(complaint("1 2 3\n", {' ', 3, true}, Dtype::complex64).find("even count") != std::string::npos);
    std::array<char, 64> out;
    const C one(1, 1);
    CHECK_THROWS_AS(
        format_text(reinterpret_cast<const std::byte*>(&one), Dtype::complex128, 1, {' ', 1}, true, out.data()),
        UsageError);
}

TEST_CASE(
    "formatted numbers of every dtype read back exactly, in no more digits than needed, within the promised width") {
    for (const DtypeFacts& kind : dtypes) {
        const std::int64_t rows = 200;
        std::vector<std::byte> data(static_cast<std::size_t>(rows * 5) * kind.size);
        for (std::size_t i = 0; i < data.size(); ++i) {
            data[i] = static_cast<std::byte>(mix(i) >> (i % 3 * 8));
        }
        CAPTURE(kind.name);
        for (const bool pairs : {false, true}) {
            const bool halved = pairs && is_complex(kind.dtype);
            const TextStyle used{',', halved ? 10 : 5, pairs};
            const std::string text = formatted(data.data(), kind.dtype, rows, used, pairs);
            const std::string plain = plain_format_text(data.data(), kind.dtype, rows, used, pairs);
            REQUIRE(std::count(text.begin(), text.end(), '\n') == rows);
            std::vector<std::byte> back(data.size());
            REQUIRE(parse_text(text.data(), text.data() + text.size(), used, kind.dtype, back.data(), rows * 5, 1) ==
                    rows * 5);
            REQUIRE(formatted(back.data(), kind.dtype, rows, used, pairs) == text);
            REQUIRE(plain_parse_text(text, used, kind.dtype, 1).size() == data.size());
            REQUIRE(digits_in(text.substr(0, text.find(','))) == digits_in(plain.substr(0, plain.find(','))));
            if (is_integer(kind.dtype)) {
                REQUIRE(text == plain);
                REQUIRE(back == data);
            }
            for (std::size_t at = 0, next = 0; at < text.size(); at = next + 1) {
                next = text.find_first_of(",\n", at);
                REQUIRE(next - at < text_width(kind.dtype));
            }
        }
    }
    const std::array values{1.0, -0.1, 1e300, -0.0, 1e22};
    CHECK(formatted(reinterpret_cast<const std::byte*>(values.data()), Dtype::float64, 1, {' ', 5}) ==
          "1 -0.1 1e+300 -0 1e+22\n");
    const std::array special{std::complex<float>(1, -2), std::complex<float>(-INFINITY, NAN)};
    CHECK(formatted(reinterpret_cast<const std::byte*>(special.data()), Dtype::complex64, 1, {';', 2}) ==
          "(1-2j);(-inf+nanj)\n");
    CHECK(formatted(reinterpret_cast<const std::byte*>(special.data()), Dtype::complex64, 2, {' ', 2}, true) ==
          "1 -2\n-inf nan\n");
    CHECK(formatted(nullptr, Dtype::float64, 2, {' ', 0}) == "\n\n");
}

TEST_CASE("numbers may stand in quotes, be missing, and have a comma for a point") {
    const double nan = std::numeric_limits<double>::quiet_NaN();
    const auto same = [](const std::vector<double>& found, const std::vector<double>& expected) {
        return std::equal(found.begin(), found.end(), expected.begin(), expected.end(),
                          [](double a, double b) { return a == b || (std::isnan(a) && std::isnan(b)); });
    };
    CHECK(parsed<double>("\"1.5\", \" -2 \"\n3,\"4\" #\n", {',', 2}, Dtype::float64) ==
          std::vector<double>{1.5, -2, 3, 4});
    CHECK(parsed<std::int64_t>("\"9007199254740993\" 2\n", {' ', 2}, Dtype::int64) ==
          std::vector<std::int64_t>{9007199254740993, 2});
    CHECK(parsed<double>("1,5;-,5e1\n2d2;3\n", {';', 2, false, ','}, Dtype::float64) ==
          std::vector<double>{1.5, -5, 200, 3});
    CHECK(parsed<double>("\"1,5\",\"2,5\"\n", {',', 2, false, ','}, Dtype::float64) == std::vector<double>{1.5, 2.5});
    CHECK(parsed<std::complex<double>>("(1,5-2,5j) 3\n", {' ', 2, false, ','}, Dtype::complex128) ==
          std::vector<std::complex<double>>{{1.5, -2.5}, {3, 0}});
    const TextStyle commas{',', 3, false, '.', {"NA", "-999"}};
    CHECK(same(parsed<double>("NA,,\n , -999,\"NA\"\n\"\",-999.5,1\n", commas, Dtype::float64),
               {nan, nan, nan, nan, nan, nan, nan, -999.5, 1}));
    const TextStyle tabs{'\t', 2, false, '.', {""}};
    CHECK(same(parsed<double>("\t\n1\t\n\n\t2\n  \t#x\n", tabs, Dtype::float64), {nan, nan, 1, nan, nan, 2, nan, nan}));
    CHECK(std::isnan(parsed<std::complex<double>>("NA\n", {' ', 1, false, '.', {"NA"}}, Dtype::complex128)[0].real()));
    CHECK(complaint("1.5;2\n", {';', 2, false, ','}, Dtype::float64) == "line 1, column 1: \"1.5\" is not a number");
    CHECK(complaint("1;1.000,5\n", {';', 2, false, ','}, Dtype::float64) ==
          "line 1, column 2: \"1.000,5\" is not a number");
    CHECK(complaint("1,na,2\n", commas, Dtype::float64) == "line 1, column 2: \"na\" is not a number");
    CHECK(complaint("1,2,NA\n", commas, Dtype::int16) ==
          "line 1, column 3: a missing number, for which int16 has no nan");
    CHECK(complaint("\"1,2\n", {',', 2}, Dtype::float64).find("is not a number") != std::string::npos);
    CHECK(complaint("1,\"2,3\",4\n", {',', 3}, Dtype::float64) == "line 1, column 2: \"\"2,3\"\" is not a number");

    const std::array values{0.5, nan, 1e300};
    const auto* data = reinterpret_cast<const std::byte*>(values.data());
    CHECK(formatted(data, Dtype::float64, 1, {';', 3, false, ',', {"not there"}}) == "0,5;not there;1e+300\n");
    CHECK(formatted(data, Dtype::float64, 1, {',', 3, false, '.', {""}}) == "0.5,,1e+300\n");
}

TEST_CASE("what a float cannot hold is counted, with the place of the first") {
    const auto losses = [](const std::string& text, TextStyle style, Dtype dtype) {
        Losses found;
        parse_text(text.data(), text.data() + text.size(), style, dtype, nullptr, room, 1, &found);
        const auto place = [&](const Losses::Kind& kind) {
            return kind.count == 0 ? "none"
                                   : std::to_string(kind.count) + " " + text.substr(kind.first - text.data(), 3) + " " +
                                         std::to_string(kind.column);
        };
        return place(found.rounded) + ", " + place(found.overflow);
    };
    const std::string text =
        "1 9007199254740992\n9007199254740993 -9007199254740995\n1e400 9007199254740993.0\n"
        "-1d999 36893488147419103232\n0009007199254740994 1e300\n1e-400 " +
        std::string(400, '9') + "\n";
    CHECK(losses(text, {' ', 2}, Dtype::float64) == "2 900 1, 3 1e4 1");
    CHECK(losses("1 9007199254740993\n", {' ', 2}, Dtype::uint64) == "none, none");
    CHECK(losses("1,(1+1e999j)\n9007199254740993-9007199254740993j,2\n", {',', 2}, Dtype::complex128) ==
          "1 900 1, 1 (1+ 2");
    CHECK(losses("1;\"9007199254740993\"\n", {';', 2, false, ','}, Dtype::float64) == "1 \"90 2, none");
}

TEST_CASE("fields that are not taken may hold anything") {
    TextStyle style{',', 3};
    style.taken = {1};
    CHECK(parsed<double>("\"a, \"\"b\"\"\",1,x\n# 2,3,\n %,4,\"\"\n", style, Dtype::float64) ==
          std::vector<double>{1, 3, 4});
    style.taken = {0, 2};
    CHECK(parsed<double>("1,#N/A,2\n3,4 # 5,6\n", style, Dtype::float64) == std::vector<double>{1, 2, 3, 6});
    CHECK(complaint("1,a,2\n3,b,c\n", style, Dtype::float64) == "line 2, column 3: \"c\" is not a number");
    CHECK(complaint("1,a\n", style, Dtype::float64) == "line 1: found 2 numbers, expected 3");
}

TEST_CASE("fast and plain agree on random texts, right and wrong") {
    const std::string alphabet = "0123456789.,+-eEdDjn#% \t\n\r()0123456789,,  \"\"nN\f#";
    int accepted = 0;
    for (std::uint64_t i = 0; i < 200000; ++i) {
        std::string text;
        for (std::uint64_t j = 0; j < 1 + mix(i) % 9; ++j) {
            text += alphabet[random_bits(mix(i), j) % alphabet.size()];
        }
        const Dtype dtype = dtypes[mix(i + 1) % dtypes.size()].dtype;
        TextStyle style{" ,\t"[mix(i + 2) % 3], static_cast<std::int64_t>(1 + mix(i + 3) % 2), false};
        style.decimal = mix(i + 4) % 4 == 0 ? ',' : '.';
        style.hash_comments = mix(i + 6) % 4 != 0;
        if (mix(i + 7) % 4 == 0) {
            style.taken = {static_cast<std::int64_t>(mix(i + 8)) & (style.line_numbers - 1)};
        }
        if (mix(i + 5) % 3 == 0) {
            style.missing = {"n", "-9"};
        }
        CAPTURE(text);
        CAPTURE(name_of(dtype));
        std::vector<std::byte> fast(static_cast<std::size_t>(room) * 16), plain;
        bool fast_refuses = false, plain_refuses = false;
        try {
            const std::int64_t count =
                parse_text(text.data(), text.data() + text.size(), style, dtype, fast.data(), room, 1);
            fast.resize(static_cast<std::size_t>(count) * size_of(dtype));
            CHECK(count == count_lines(text.data(), text.data() + text.size(), style) * style.line_taken());
        } catch (const UsageError&) {
            fast_refuses = true;
        }
        try {
            plain = plain_parse_text(text, style, dtype, 1);
        } catch (const UsageError&) {
            plain_refuses = true;
        }
        REQUIRE(fast_refuses == plain_refuses);
        if (!fast_refuses) {
            accepted += !fast.empty();
            REQUIRE(fast == plain);  // the NaN of a missing number too
        }
    }
    CHECK(accepted > 10000);
}
