// Parses text line by line in one pass; what is wrong is worked out only once something is.
#include "tilewise/kernel/text/text.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <string>
#include <string_view>
#include <type_traits>

#include "tilewise/base/error.hpp"
#include "tilewise/kernel/isa/backend.hpp"
#include "tilewise/kernel/text/text_quick.hpp"

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

bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\f' || c == '\v'; }

const char* skip_blanks(const char* at, const char* end, bool tabs) {
    while (at < end && is_blank(*at) && (tabs || *at != '\t')) {
        ++at;
    }
    return at;
}

/// Whether a line whose first character that is no blank is at `at` holds numbers.
bool holds_data(const char* at, const char* end, const TextStyle& style) {
    return !at_line_end(at, end) && !(style.comments() && (*at == '%' || (*at == '#' && style.hash_comments)));
}

/// The word of Excel for no number that a line begins with, which is no comment; or nothing.
std::string_view error_word(const char* at, const char* end) {
    constexpr std::array<std::string_view, 7> words{"#N/A", "#NULL!", "#DIV/0!", "#VALUE!", "#REF!", "#NAME?", "#NUM!"};
    const std::string_view line(at, static_cast<std::size_t>(end - at));
    const auto* found = std::find_if(words.begin(), words.end(), [&](auto word) { return line.starts_with(word); });
    return found == words.end() ? std::string_view() : *found;
}

std::string_view without_blanks(std::string_view text) {
    constexpr std::string_view blanks = " \t\f\v";
    const auto first = std::min(text.find_first_not_of(blanks), text.size());
    return text.substr(first, text.find_last_not_of(blanks) + 1 - first);
}

/// Whether all that looks like a number is one: a word such as -999 may stand for a missing one.
bool is_certain(const TextStyle& style) {
    return std::none_of(style.missing.begin(), style.missing.end(), [&](std::string word) {
        std::replace(word.begin(), word.end(), style.decimal, '.');
        double value = 0;
        const Scan found = scan(word.data(), word.data() + word.size(), value);
        return found.fault == Fault::none && found.end == word.data() + word.size() && value == value;
    });
}

/// One place in a text, and all that messages need to know about it.
struct Place {
    const char *line_begin, *end;
    const TextStyle& style;
    Dtype dtype;
    std::int64_t line;
    Losses* losses;
    char separator = style.separator;
    bool hash = style.hash_comments && style.comments();
    bool certain = is_certain(style);
    bool plain = certain && style.decimal == '.';  ///< only what `scan` refuses must be looked at as a field

    const char* skip(const char* at) const { return skip_blanks(at, end, separator != '\t'); }
    /// Behind the last number; a '#' inside a word, as in 1.#INF, begins no comment.
    bool line_is_over(const char* at) const {
        return at_line_end(at, end) || (*at == '#' && hash && (at == line_begin || is_blank(at[-1])));
    }
    bool separates(char c) const { return c == separator || (separator == ' ' && is_blank(c)); }
    bool ends_number(const char* at) const {
        return at == end || is_blank(*at) || *at == separator || at_line_end(at, end);
    }
    /// The separator or the end of the line behind the field that begins at `at`.
    const char* behind_field(const char* at) const {
        const char* stop = at;
        if (stop < end && *stop == '"') {
            // Two quotes inside of quotes stand for one.
            while (++stop < end && *stop != '\n' && (*stop != '"' || (stop + 1 < end && stop[1] == '"' && ++stop))) {
            }
        }
        while (!line_is_over(stop) && !separates(*stop)) {
            ++stop;
        }
        return stop;
    }
    /// The field that begins at `at`, without blanks at its end, with quotes where it has them.
    std::string_view field(const char* at) const {
        const char* stop = behind_field(at);
        while (stop > at && is_blank(stop[-1])) {
            --stop;
        }
        return {at, static_cast<std::size_t>(stop - at)};
    }
    /// Fields that begin before `limit`, or all of the line.
    std::int64_t count_fields(const char* limit) const {
        std::int64_t count = 0;
        for (const char* at = skip(line_begin); at <= limit && !line_is_over(at); ++count) {
            at = skip(behind_field(at));
            if (separator != ' ' && !line_is_over(at)) {
                at = skip(at + 1);
                count += line_is_over(at) && at <= limit;  // a separator at the end has an empty field behind it
            }
        }
        return count;
    }
    /// The number of the field at `at`, from 1.
    std::int64_t column(const char* at) const { return std::max<std::int64_t>(1, count_fields(at)); }

    [[noreturn]] void fail(const std::string& what) const {
        throw UsageError("line " + std::to_string(line) + ": " + what);
    }
    [[noreturn]] void fail_count() const {
        const std::int64_t count = count_fields(end);
        fail("found " + std::to_string(count) + (count == 1 ? " number" : " numbers") + ", expected " +
             std::to_string(style.line_numbers));
    }
    [[noreturn]] void fail_field(const char* at, Fault fault) const;

    /// The number in the field at `at` where it may be missing, quoted or with another decimal mark; the end is that of
    /// the field.
    template <class T> Scan scan_field(const char* at, T& value) const;

    /// What was `found` at `at`, where more is to be said of it than its end. Throws UsageError for what is no number.
    template <class T> [[gnu::noinline]] Scan settled(Scan found, const char* at, T& value) const {
        if (plain && (found.fault != Fault::none || !ends_number(found.end))) {
            found = scan_field(at, value);
        }
        if (found.fault != Fault::none) {
            fail_field(at, found.fault);
        }
        if (found.loss != Loss::none && losses != nullptr) {
            Losses::Kind& kind = found.loss == Loss::rounded ? losses->rounded : losses->overflow;
            if (kind.count++ == 0) {
                kind.first = at;
                kind.column = column(at);
            }
        }
        return found;
    }
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

/// Whether a word usually stands for a missing number.
bool may_be_missing(std::string_view text) {
    constexpr std::array<std::string_view, 8> words{"na", "n/a", "null", "none", "missing", "nil", "void", "undefined"};
    std::string small(text);
    std::transform(small.begin(), small.end(), small.begin(),
                   [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
    return std::find(words.begin(), words.end(), small) != words.end() ||
           (text.size() <= 3 && text.find_first_not_of("-.?*") == text.npos);
}

/// The characters that are no digits, each run of digits before them as one 0: "-0.0-0" for -1.5-300.
std::string outline(std::string_view text) {
    std::string line;
    for (const char c : text) {
        if (c < '0' || c > '9') {
            line += c;
        } else if (line.empty() || line.back() != '0') {
            line += '0';
        }
    }
    return line;
}

/// What helps with a field that stands for a missing number, or is written in another way.
std::string advice_on(std::string_view text) {
    if (text == "\"\"") {
        return "--missing '' reads empty fields as nan";
    }
    const std::string line = outline(text.substr(text.find_first_not_of("+-") == 1 ? 1 : 0));
    if (line == "0.0-0" || line == "0.0+0" || line == ".0-0" || line == ".0+0") {
        return R"(sed -E 's/([0-9.])([-+][0-9]{3})/\1E\2/g' writes exponents with their letter)";
    }
    if (text.size() > 1 && text.ends_with('i') && text.find_first_not_of("+-0123456789.eE") == text.size() - 1) {
        return "sed 's/i/j/g' writes the imaginary unit as j";
    }
    if (!text.empty() && error_word(text.data(), text.data() + text.size()) == text) {
        return "write nan in its place";
    }
    if (may_be_missing(text)) {
        const std::string quote(text.find_first_of("?*") == text.npos ? "" : "'");
        return "--missing=" + quote + std::string(text) + quote + " reads such fields as nan";
    }
    if (text.find(".#") != text.npos) {
        return R"(sed 's/1\.#INF0*/inf/g; s/1\.#[A-Z]*0*/nan/g' writes such numbers as inf and nan)";
    }
    return text.find('#') != text.npos && text.front() != '#' ? "a comment begins a line, or behind a blank" : "";
}

void Place::fail_field(const char* at, Fault fault) const {
    const std::string where = "line " + std::to_string(line) + ", column " + std::to_string(column(at)) + ": ";
    const std::string_view text = field(at);
    const auto refused = [&](const std::string& what, const std::string& advice = {}) {
        return UsageError(where + what, -1, 0, advice);
    };
    const auto is_missing = [&](const std::string& word) { return word == text; };
    if (text.empty() && style.missing.empty()) {
        throw refused("an empty field where a number was expected", "--missing '' reads empty fields as nan");
    }
    if (text.empty() || std::any_of(style.missing.begin(), style.missing.end(), is_missing)) {
        throw refused("a missing number, for which " + std::string(name_of(dtype)) + " has no nan",
                      "a float, as --dtype float64");
    }
    switch (fault) {
        case Fault::no_whole_number:
            throw refused(quoted(text) + " is not a whole number, as " + std::string(name_of(dtype)) + " needs");
        case Fault::beyond_type:
            throw refused(quoted(text) + " is beyond " + std::string(name_of(dtype)) + ", which holds " +
                          range_of(dtype));
        default:
            throw refused(quoted(text) + " is not a number", advice_on(text));
    }
}

template <class T> void make_nan(T& value) {
    if constexpr (IsComplex<T>::value) {
        value = {std::numeric_limits<typename T::value_type>::quiet_NaN(), 0};
    } else if constexpr (std::is_same_v<T, Half>) {
        value.bits = double_to_half(std::numeric_limits<double>::quiet_NaN());
    } else {
        value = std::numeric_limits<T>::quiet_NaN();
    }
}

template <class T> Scan Place::scan_field(const char* at, T& value) const {
    const std::string_view whole = field(at);
    const char* stop = whole.data() + whole.size();
    const bool quoted = whole.size() > 1 && whole.front() == '"' && whole.back() == '"';
    const std::string_view text = quoted ? without_blanks(whole.substr(1, whole.size() - 2)) : whole;
    const auto is_missing = [&](const std::string& word) { return word == text || word == whole; };
    if (!style.missing.empty() &&
        (text.empty() || std::any_of(style.missing.begin(), style.missing.end(), is_missing))) {
        if constexpr (std::is_integral_v<T>) {
            return {stop, Fault::no_number};
        } else {
            make_nan(value);
            return {stop};
        }
    }
    std::string point(text);
    if (style.decimal != '.') {
        std::replace(point.begin(), point.end(), '.', '?');  // which is no number
        std::replace(point.begin(), point.end(), style.decimal, '.');
    }
    Scan found = scan(point.data(), point.data() + point.size(), value);
    if (found.end != point.data() + point.size()) {
        found.fault = Fault::no_number;
    }
    found.end = stop;
    return found;
}

/// Parses the data line that begins at `at` into `out`, from number `index` on, and returns the end of its last field.
/// Fields that are not taken are passed over.
template <class T> const char* parse_line(const Place& place, const char* at, std::byte* out, std::int64_t index) {
    const std::int64_t line_numbers = place.style.line_numbers;
    const char separator = place.separator;
    const std::vector<std::int64_t>& taken = place.style.taken;
    auto wanted = taken.begin();
    for (std::int64_t field = 0; field < line_numbers; ++field) {
        const char* stop;
        if (taken.empty() || (wanted != taken.end() && *wanted == field)) {
            T value;
            Scan found = place.plain ? scan(at, place.end, value) : place.scan_field(at, value);
            if (!found.is_plain() || !place.ends_number(found.end)) [[unlikely]] {
                found = place.settled(found, at, value);
            }
            store(out, index++, value);
            stop = found.end;
            wanted += static_cast<std::ptrdiff_t>(!taken.empty());
        } else {
            stop = place.behind_field(at);
        }
        const char* next = place.skip(stop);
        const bool over = place.line_is_over(next);
        if (separator == ' ' || over) {
            if (over != (field + 1 == line_numbers)) [[unlikely]] {
                place.fail_count();
            }
        } else if (*next != separator) {
            place.fail_field(at, Fault::no_number);  // "1 2,3": what stands between two separators is not one number
        } else if (field + 1 == line_numbers) {
            place.fail_count();
        } else {
            next = place.skip(next + 1);
        }
        at = next;
    }
    return at;
}

/// Leaves to the quick reader what it can read, for as long as that is more than a line now and then.
class Quick {
public:
    Quick(const Place& place, Dtype dtype, const std::byte* out)
        : reader_(place.certain && place.separator != place.style.decimal && place.style.line_numbers > 0 &&
                          place.style.taken.empty() && out != nullptr
                      ? backend().quick_reader(dtype)
                      : nullptr) {}

    /// Moves `place` behind the lines that were read into `out`; returns how many.
    std::int64_t read(Place& place, std::byte* out, std::int64_t most) {
        constexpr std::int64_t patience = 16;
        if (reader_ == nullptr || most == 0 || stops_ > patience + lines_) {
            return 0;
        }
        const QuickEnd end = reader_(
            {place.line_begin, place.end, place.separator, place.style.decimal, place.style.line_numbers, most, out});
        place.line_begin = end.at;
        place.line += end.lines;
        lines_ += end.lines;
        ++stops_;
        return end.lines;
    }

private:
    QuickReader reader_;
    std::int64_t lines_ = 0, stops_ = 0;
};

/// `dtype` is that of T.
template <class T>
std::int64_t parse_lines(Place place, Dtype dtype, std::byte* out, std::int64_t capacity) {
    constexpr auto item = static_cast<std::int64_t>(sizeof(T));
    const std::int64_t line_taken = place.style.line_taken();
    const bool tabs = !place.style.tabs_are_fields();
    std::int64_t count = 0;
    std::vector<std::byte> unread(out == nullptr ? static_cast<std::size_t>(line_taken) * sizeof(T) : 0);
    std::byte* const line_out = out == nullptr ? unread.data() : out;
    Quick quick(place, dtype, out);
    for (const char* end = place.end; place.line_begin < end; ++place.line) {
        count +=
            quick.read(place, line_out + count * item, (capacity - count) / std::max<std::int64_t>(1, line_taken)) *
            line_taken;
        const char* at = skip_blanks(place.line_begin, end, tabs);
        if (holds_data(at, end, place.style)) {
            if (place.separator == '\t') {
                at = place.skip(place.line_begin);  // a tab before the first number stands behind an empty field
            }
            if (line_taken > capacity - count) {
                place.fail("more than the " + std::to_string(capacity) + " numbers that were expected");
            }
            if (place.style.line_numbers == 0) {
                place.fail_count();
            }
            at = parse_line<T>(place, at, line_out, out == nullptr ? 0 : count);
            count += line_taken;
        } else if (const auto word = place.hash ? error_word(at, end) : ""; !word.empty()) {
            throw UsageError("line " + std::to_string(place.line) + ", column 1: " + quoted(word) + " is not a number",
                             -1, 0, "write nan in its place; it begins no comment");
        }
        place.line_begin = behind_line(at, end);
    }
    return count;
}

}  // namespace

std::int64_t count_lines(const char* begin, const char* end, const TextStyle& style) {
    const bool tabs = !style.tabs_are_fields();
    std::int64_t count = 0;
    while (begin < end) {
        const char* at = skip_blanks(begin, end, tabs);
        count += holds_data(at, end, style);
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

std::int64_t parse_text(const char* begin, const char* end, const TextStyle& style, Dtype dtype, std::byte* out,
                        std::int64_t capacity, std::int64_t first_line, Losses* losses) {
    const Place place{begin, end, style, dtype, first_line, losses};
    return with_file_type(dtype, [&](auto tag) -> std::int64_t {
        using T = typename decltype(tag)::type;
        if constexpr (IsComplex<T>::value) {
            if (style.pairs) {
                check_pairs(style);
                const Dtype part = dtype == Dtype::complex64 ? Dtype::float32 : Dtype::float64;
                return parse_lines<typename T::value_type>(place, part, out, 2 * capacity) / 2;
            }
        }
        return parse_lines<T>(place, dtype, out, capacity);
    });
}

}  // namespace tilewise::kernel
