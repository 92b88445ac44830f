// Tests of quick reading: as many lines as are plain, the same numbers as the plain reference, in every version.
#include <algorithm>
#include <array>
#include <cstdio>
#include <doctest/doctest.h>
#include <string>
#include <vector>

#include "text_plain.hpp"
#include "tilewise/base/error.hpp"
#include "tilewise/base/random.hpp"
#include "tilewise/kernel/isa/backend.hpp"
#include "tilewise/kernel/text/text.hpp"
#include "tilewise/kernel/text/text_quick.hpp"

using namespace tilewise;
using namespace tilewise::kernel;

namespace {

std::vector<const Backend*> versions() {
    std::vector<const Backend*> all;
    for (const KnownBackend& row : backends()) {
        if (row.supported()) {
            all.push_back(&row.set);
        }
    }
    return all;
}

/// A number of the kind that `what` says, as programs write them.
std::string number(std::uint64_t what, std::uint64_t seed) {
    constexpr std::array formats{"%.17g", "%.18e", "%.2f", "%.0f", "%+.1f", "%g", "%.25f", "%.3E", "%.15g"};
    const double scale = std::array{1.0, 1e-3, 1e4, 1e-12, 1e9}[mix(seed) % 5];
    const double value = scale * (static_cast<double>(mix(seed + 1) >> 11) * 0x1p-52 - 1);
    std::array<char, 64> text;
    const int size = std::snprintf(text.data(), text.size(), formats[what % formats.size()], value);
    return {text.data(), static_cast<std::size_t>(size)};
}

struct Result {
    std::int64_t lines, read;  ///< bytes
    std::vector<std::byte> numbers;
};

Result quick(const std::string& text, const TextStyle& style, Dtype dtype, const Backend* version, std::int64_t most) {
    std::vector<std::byte> out(static_cast<std::size_t>(most * style.line_numbers) * size_of(dtype) + 1);
    out.back() = std::byte{77};
    const char *begin = text.data(), *end = begin + text.size();
    const QuickEnd got = version->quick_reader(dtype)(
        {begin, end, style.separator, style.decimal, style.line_numbers, most, out.data()});
    CHECK(out.back() == std::byte{77});
    out.resize(static_cast<std::size_t>(got.lines * style.line_numbers) * size_of(dtype));
    return {got.lines, got.at - begin, out};
}

}  // namespace

TEST_CASE("plain lines are read whole, as the plain reference reads them") {
    constexpr std::int64_t lines = 60;
    for (const Backend* version : versions()) {
        for (std::uint64_t seed = 0; seed < 200; ++seed) {
            const std::int64_t fields = 1 + static_cast<std::int64_t>(mix(seed) % 9);
            TextStyle style{" ,;\t"[mix(seed + 1) % 4], fields};
            style.decimal = style.separator != ',' && mix(seed + 2) % 3 == 0 ? ',' : '.';
            const std::string gap = style.separator == ' '                     ? std::array{" ", "  ", "\t "}[seed % 3]
                                    : style.separator != '\t' && seed % 3 == 0 ? std::string(1, style.separator) + " "
                                                                               : std::string(1, style.separator);
            const std::string quote = gap.size() == 1 && gap[0] == style.separator && seed % 4 < 2 ? "\"" : "";
            std::string text;
            for (std::int64_t i = 0; i < lines * fields; ++i) {
                std::string one = number(mix(seed + 3), mix(seed) + static_cast<std::uint64_t>(i));
                std::replace(one.begin(), one.end(), '.', style.decimal);
                text += quote + one + quote + ((i + 1) % fields != 0 ? gap : seed % 2 == 0 ? "\n" : "\r\n");
            }
            for (const Dtype dtype : {Dtype::float64, Dtype::float32, Dtype::float16}) {
                CAPTURE(text);
                const std::vector<std::byte> plain = plain_parse_text(text, style, dtype, 1);
                // Others are numbers of more digits than fit, and halves between two of float32.
                const bool certain = dtype == Dtype::float64 && mix(seed + 3) % 9 != 3 && mix(seed + 3) % 9 != 6;
                const Result all = quick(text, style, dtype, version, lines);
                CHECK((!certain || all.lines == lines));
                CHECK(std::equal(all.numbers.begin(), all.numbers.end(), plain.begin()));
                const Result some = quick(text, style, dtype, version, 7);
                CHECK((!certain || some.lines == 7));
                CHECK(std::equal(some.numbers.begin(), some.numbers.end(), plain.begin()));
                std::vector<std::byte> fast(plain.size());
                parse_text(text.data(), text.data() + text.size(), style, dtype, fast.data(), lines * fields, 1);
                REQUIRE(fast == plain);
            }
        }
    }
}

TEST_CASE("quick reading stops before the first line that is not plain") {
    for (const Backend* version : versions()) {
        for (const std::string wrong : {"1,2,3,4",
                                        "1,2",
                                        "1,,3",
                                        "1,2,",
                                        ",1,2",
                                        "1,2,x",
                                        "1,2,3#",
                                        "# 1,2,3",
                                        "1,\"2\",3",
                                        "1,nan,3",
                                        "",
                                        "1 2,3,4",
                                        "1,2,3.5.5",
                                        "1,2,.",
                                        "1,2,-",
                                        "1,2,1e99999",
                                        "1,2,9007199254740993",
                                        "1,2,3\t4",
                                        "1,2,3\v",
                                        "1,2,123456789012345678901"}) {
            for (std::size_t before = 0; before < 150; before += 7) {
                for (std::size_t after = 0; after < 80; after += 40) {
                    std::string plain;
                    for (std::size_t i = 0; i < before; ++i) {
                        plain += number(i, i) + ",-1.5," + std::to_string(i) + "\n";
                    }
                    std::string text = plain + wrong + "\n";
                    for (std::size_t i = 0; i < after; ++i) {
                        text += "1,2,3\n";
                    }
                    CAPTURE(wrong);
                    const auto got = quick(text, {',', 3}, Dtype::float64, version, 1000);
                    const auto most = static_cast<std::int64_t>(before);
                    // A number of more digits than fit may stop it before.
                    CHECK(got.lines <= most);
                    CHECK(text.substr(0, static_cast<std::size_t>(got.read)) ==
                          plain.substr(0, static_cast<std::size_t>(got.read)));
                }
            }
        }
    }
}

TEST_CASE("quoted lines are read quickly where all numbers are quoted, and as the plain reference reads them") {
    for (const Backend* version : versions()) {
        for (const std::string last :
             {"\"7\",\"8\"", "\"7\",\"8\"\n", "\"7\",\"8\"\r\n", "\"7\",8\n", "7,\"8\"\n", "\"7\", \"8\"\n",
              "\" 7\",\"8\"\n", "7,8\n", "\n\"7\",\"8\"\n", "# c\n\"7\",\"8\"\n", "\"7\",\"8\" \n", " \"7\",\"8\"\n"}) {
            for (int before = 0; before < 300; before += 11) {
                std::string text;
                for (int i = 0; i < before; ++i) {
                    text += "\"" + number(2, static_cast<std::uint64_t>(i)) + "\",\"-1.5\"\n";
                }
                text += last;
                CAPTURE(text);
                const TextStyle style{',', 2};
                const Result got = quick(text, style, Dtype::float64, version, 1000);
                CHECK(got.lines >= before - 1);
                const std::vector<std::byte> plain = plain_parse_text(text, style, Dtype::float64, 1);
                CHECK(std::equal(got.numbers.begin(), got.numbers.end(), plain.begin()));
                std::vector<std::byte> fast(plain.size());
                parse_text(text.data(), text.data() + text.size(), style, Dtype::float64, fast.data(),
                           before + before + 2, 1);
                CHECK(fast == plain);
            }
        }
        for (const std::string wrong :
             {"\"1,\"2\"", "\"1 ,\"2\"", "\"1\", 2\"", "\"1\",\"2", "1\",\"2\"", "\"1\"\"2\"", "\"\",\"2\"",
              "\"1\";\"2\"", "\"1\",\"2\",", "\"1\",\"2\",\"3\"", "\"1\"", "\"1\",\"2\"\"", "\"1\"x\"2\""}) {
            for (const std::string before : {"", "\"5\",\"6\"\n"}) {
                for (const std::string after : {"", "\n", "\n\"5\",\"6\"\n"}) {
                    const std::string text = before + wrong + after;
                    CAPTURE(text);
                    const Result got = quick(text, {',', 2}, Dtype::float64, version, 1000);
                    CHECK(got.read <= static_cast<std::int64_t>(before.size()));
                    std::vector<double> out(8);
                    CHECK_THROWS_AS(parse_text(text.data(), text.data() + text.size(), {',', 2}, Dtype::float64,
                                               reinterpret_cast<std::byte*>(out.data()), 8, 1),
                                    UsageError);
                }
            }
        }
    }
}

TEST_CASE("integers are read quickly where they fit, and not where they do not") {
    for (const Backend* version : versions()) {
        const auto lines = [&](const std::string& text, Dtype dtype) {
            return quick(text, {',', 1}, dtype, version, 9).lines;
        };
        CHECK(lines("127\n-127\n+3\n128\n", Dtype::int8) == 3);
        CHECK(lines("255\n-0\n-1\n", Dtype::uint8) == 2);
        CHECK(lines("9223372036854775807\n-9223372036854775807\n9223372036854775808\n", Dtype::int64) == 2);
        CHECK(lines("18446744073709551615\n18446744073709551616\n", Dtype::uint64) <= 1);
        CHECK(lines("1\n2.0\n", Dtype::int32) == 1);
        CHECK(lines("1e3\n", Dtype::int32) == 0);
        CHECK(version->quick_reader(Dtype::complex128) == nullptr);
    }
}
