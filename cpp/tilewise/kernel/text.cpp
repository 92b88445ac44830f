// Parses text line by line in one pass; what is wrong is worked out only once something is.
#include "tilewise/kernel/text.hpp"

#include <algorithm>
#include <cstring>
#include <limits>
#include <string>
#include <string_view>
#include <type_traits>

#include "tilewise/base/error.hpp"

namespace tilewise::kernel {
namespace {

const char* find_newline(const char* at, const char* end) {
    const auto* found = static_cast<const char*>(std::memchr(at, '\n', static_cast<std::size_t>(end - at)));
    return found != nullptr ? found : end;
}

const char* behind_line(const char* at, const char* end) {
    at = find_newline(at, end);
    return at < end ? at + 1 : end;
}

/// Whether nothing but an end of line stands at `at`. A carriage return elsewhere is a character like others, and no
/// number.
bool at_line_end(const char* at, const char* end) {
    while (at < end && *at == '\r') {
        ++at;
    }
    return at == end || *at == '\n';
}

const char* skip_blanks(const char* at, const char* end) {
    while (at < end && (*at == ' ' || *at == '\t')) {
        ++at;
    }
    return at;
}

/// Whether a line whose first character that is no blank is at `at` holds numbers.
bool holds_data(const char* at, const char* end) { return !at_line_end(at, end) && *at != '#' && *at != '%'; }

/// One place in a text, and all that messages need to know about it.
struct Place {
    const char *line_begin, *end;
    TextStyle style;
    Dtype dtype;
    std::int64_t line;

    const char* skip(const char* at) const {
        while (at < end && (*at == ' ' || (*at == '\t' && style.separator != '\t'))) {
            ++at;
        }
        return at;
    }
    bool line_is_over(const char* at) const { return at_line_end(at, end) || *at == '#'; }
    bool separates(char c) const { return c == style.separator || (style.separator == ' ' && c == '\t'); }
    bool ends_number(const char* at) const {
        return at == end || *at == ' ' || *at == '\t' || separates(*at) || line_is_over(at);
    }
    /// The field that begins at `at`, without blanks at its end.
    std::string_view field(const char* at) const {
        const char* stop = at;
        while (!line_is_over(stop) && !separates(*stop)) {
            ++stop;
        }
        while (stop > at && (stop[-1] == ' ' || stop[-1] == '\t')) {
            --stop;
        }
        return {at, static_cast<std::size_t>(stop - at)};
    }
    std::int64_t count_fields() const {
        std::int64_t count = 0;
        for (const char* at = skip(line_begin); !line_is_over(at); ++count) {
            const std::string_view here = field(at);
            at = skip(here.data() + here.size());
            if (style.separator != ' ' && !line_is_over(at)) {
                at = skip(at + 1);
                count += line_is_over(at);  // a separator at the end has an empty field behind it
            }
        }
        return count;
    }

    [[noreturn]] void fail(const std::string& what) const {
        throw UsageError("line " + std::to_string(line) + ": " + what);
    }
    [[noreturn]] void fail_count() const {
        const std::int64_t count = count_fields();
        fail("found " + std::to_string(count) + (count == 1 ? " number" : " numbers") + ", expected " +
             std::to_string(style.line_numbers));
    }
    [[noreturn]] void fail_field(const char* at, Fault fault) const;
};

std::string quoted(std::string_view text) {
    constexpr std::size_t longest = 40;
    std::string shown(text.substr(0, longest));
    if (text.size() > longest) {
        shown.replace(longest - 3, 3, "...");
    }
    std::replace_if(shown.begin(), shown.end(), [](char c) { return c < ' ' || c > '~'; }, '?');
    return "\"" + shown + "\"";
}

std::string range_of(Dtype dtype) {
    return with_file_type(dtype, [](auto tag) -> std::string {
        using T = typename decltype(tag)::type;
        if constexpr (std::is_integral_v<T>) {
            return std::to_string(std::numeric_limits<T>::min()) + " to " +
                   std::to_string(std::numeric_limits<T>::max());
        } else {
            return "any number";
        }
    });
}

void Place::fail_field(const char* at, Fault fault) const {
    const std::string_view text = field(at);
    if (text.empty()) {
        const auto before = std::count_if(line_begin, at, [&](char c) { return separates(c); });
        fail("field " + std::to_string(before + 1) + " is empty where a number was expected");
    }
    switch (fault) {
        case Fault::no_whole_number:
            fail(quoted(text) + " is not a whole number, as " + std::string(name_of(dtype)) + " needs");
        case Fault::beyond_type:
            fail(quoted(text) + " is beyond " + std::string(name_of(dtype)) + ", which holds " + range_of(dtype));
        default:
            fail(quoted(text) + " is not a number");
    }
}

/// Parses the data line that begins at `at` into `out`, from number `index` on, and returns the end of its last field.
template <class T> const char* parse_line(const Place& place, const char* at, std::byte* out, std::int64_t index) {
    for (std::int64_t field = 0; field < place.style.line_numbers; ++field) {
        T value;
        const Scan found = scan(at, place.end, value);
        if (found.fault != Fault::none || !place.ends_number(found.end)) [[unlikely]] {
            place.fail_field(at, place.ends_number(found.end) ? found.fault : Fault::no_number);
        }
        store(out, index + field, value);
        const char* next = place.skip(found.end);
        const bool over = place.line_is_over(next);
        if (place.style.separator == ' ' || over) {
            if (over != (field + 1 == place.style.line_numbers)) [[unlikely]] {
                place.fail_count();
            }
        } else if (*next != place.style.separator) {
            place.fail_field(at, Fault::no_number);  // "1 2,3": what stands between two separators is not one number
        } else if (field + 1 == place.style.line_numbers) {
            place.fail_count();
        } else {
            next = place.skip(next + 1);
        }
        at = next;
    }
    return at;
}

template <class T> std::int64_t parse_lines(Place place, std::byte* out, std::int64_t capacity) {
    const std::int64_t line_numbers = place.style.line_numbers;
    std::int64_t count = 0;
    for (const char* end = place.end; place.line_begin < end; ++place.line) {
        const char* at = skip_blanks(place.line_begin, end);
        if (holds_data(at, end)) {
            if (place.style.separator == '\t') {
                at = place.skip(place.line_begin);  // a tab before the first number stands behind an empty field
            }
            if (line_numbers > capacity - count) {
                place.fail("more than the " + std::to_string(capacity) + " numbers that were expected");
            }
            if (line_numbers == 0) {
                place.fail_count();
            }
            at = parse_line<T>(place, at, out, count);
            count += line_numbers;
        }
        place.line_begin = behind_line(at, end);
    }
    return count;
}

}  // namespace

std::int64_t count_lines(const char* begin, const char* end) {
    std::int64_t count = 0;
    while (begin < end) {
        const char* at = skip_blanks(begin, end);
        count += holds_data(at, end);
        begin = behind_line(at, end);
    }
    return count;
}

void check_pairs(const TextStyle& style) {
    if (style.line_numbers % 2 != 0) {
        throw UsageError("a line of " + std::to_string(style.line_numbers) +
                         " numbers cannot hold complex numbers as pairs; an even count was expected");
    }
}

std::int64_t parse_text(const char* begin, const char* end, TextStyle style, Dtype dtype, std::byte* out,
                        std::int64_t capacity, std::int64_t first_line) {
    const Place place{begin, end, style, dtype, first_line};
    return with_file_type(dtype, [&](auto tag) -> std::int64_t {
        using T = typename decltype(tag)::type;
        if constexpr (IsComplex<T>::value) {
            if (style.pairs) {
                check_pairs(style);
                return parse_lines<typename T::value_type>(place, out, 2 * capacity) / 2;
            }
        }
        return parse_lines<T>(place, out, capacity);
    });
}

}  // namespace tilewise::kernel
