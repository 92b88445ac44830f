// Fuzzes the parser of texts: the fast one takes what the plain one takes, to the last bit, and reads nothing beyond
// the end.
#include "tilewise/kernel/text/text.hpp"

#include <algorithm>
#include <cmath>
#include <complex>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "require.hpp"
#include "text_plain.hpp"
#include "tilewise/base/error.hpp"
#include "tilewise/kernel/file_type.hpp"

using namespace tilewise;
using namespace tilewise::kernel;

namespace {

/// Whether two numbers are the same; any NaN is any other.
template <class T> bool same(const T& a, const T& b) {
    if constexpr (IsComplex<T>::value) {
        return same(a.real(), b.real()) && same(a.imag(), b.imag());
    } else if constexpr (std::is_floating_point_v<T>) {
        return (std::isnan(a) && std::isnan(b)) || std::memcmp(&a, &b, sizeof a) == 0;
    } else if constexpr (std::is_same_v<T, Half>) {
        return same(half_to_double(a.bits), half_to_double(b.bits));
    } else {
        return a == b;
    }
}

/// The numbers of `text`, or nothing where it is refused. The text lies at the end of its memory.
std::optional<std::vector<std::byte>> parsed(std::string_view text, const TextStyle& style, Dtype dtype,
                                             std::int64_t capacity) {
    const std::unique_ptr<char[]> copy(new char[text.size()]);
    std::copy(text.begin(), text.end(), copy.get());
    std::vector<std::byte> out(static_cast<std::size_t>(capacity) * size_of(dtype));
    try {
        const char* end = copy.get() + text.size();
        const std::int64_t count = parse_text(copy.get(), end, style, dtype, out.data(), capacity, 1);
        const std::int64_t parts = is_complex(dtype) && style.pairs ? 2 : 1;
        const std::int64_t lines = count_lines(copy.get(), end, style);
        require(count * parts == lines * style.line_taken(), "as many numbers as lines say");
        out.resize(static_cast<std::size_t>(count) * size_of(dtype));
        return out;
    } catch (const UsageError& error) {
        const std::string said = error.what();
        require(said.size() < 200 && std::all_of(said.begin(), said.end(), [](char c) { return c >= ' ' && c <= '~'; }),
                "a short message of printable characters");
        return std::nullopt;
    }
}

std::optional<std::vector<std::byte>> plainly_parsed(std::string_view text, const TextStyle& style, Dtype dtype) {
    try {
        return plain_parse_text(text, style, dtype, 1);
    } catch (const UsageError&) {
        return std::nullopt;
    }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    if (size < 2) {
        return 0;
    }
    TextStyle style{" ,;\t"[data[0] & 3], (data[0] >> 2) & 7, (data[0]& 32) != 0};
    style.decimal = (data[0] & 64) != 0 ? ',' : '.';
    if ((data[0] & 128) != 0) {
        style.missing = {"NA", "-9"};
    }
    const Dtype dtype = dtypes[data[1] % dtypes.size()].dtype;
    if (style.line_numbers > 1 && !style.pairs && data[1] / dtypes.size() % 2 != 0) {
        style.taken = {0, style.line_numbers - 1};
    }
    const std::string_view text(reinterpret_cast<const char*>(data) + 2, size - 2);
    const auto capacity = static_cast<std::int64_t>(text.size() + 1);  // a number takes a character and its separator
    const auto fast = parsed(text, style, dtype, capacity), plain = plainly_parsed(text, style, dtype);
    require(fast.has_value() == plain.has_value(), "both take a text, or neither");
    if (!fast) {
        return 0;
    }
    require(fast->size() == plain->size(), "both find as many numbers");
    const auto count = static_cast<std::int64_t>(fast->size() / size_of(dtype));
    with_file_type(dtype, [&](auto tag) {
        using T = typename decltype(tag)::type;
        for (std::int64_t i = 0; i < count; ++i) {
            require(same(load<T>(fast->data(), i), load<T>(plain->data(), i)), "both find the same numbers");
        }
    });
    if (count > 0) {
        parsed(text, style, dtype, count - 1);  // with too little room: refused, and nothing written beyond it
    }
    return 0;
}
