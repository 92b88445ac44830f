// Lines and fields cut into strings, strtod and snprintf: slow, and simple enough to be believed.
#include "text_plain.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <type_traits>

#include "tilewise/base/error.hpp"
#include "tilewise/kernel/file_type.hpp"

namespace tilewise::kernel {
namespace {

constexpr const char* blanks = " \t\f\v";

std::string stripped(const std::string& text) {
    const auto first = text.find_first_not_of(blanks);
    return first == std::string::npos ? "" : text.substr(first, text.find_last_not_of(blanks) - first + 1);
}

/// Fields without blanks around them. What stands in quotes is of one field, in which two quotes stand for one.
std::vector<std::string> split(const std::string& line, char separator) {
    std::vector<std::string> fields(1);
    bool quoted = false;
    for (std::size_t i = 0; i < line.size(); ++i) {
        const char c = line[i];
        if (quoted && line.substr(i, 2) == "\"\"") {
            fields.back() += line[i++];
        } else if (c == '"') {
            quoted = !quoted && stripped(fields.back()).empty();
        }
        if (!quoted && (c == separator || (separator == ' ' && std::string(blanks).find(c) != std::string::npos))) {
            fields.emplace_back();
        } else {
            fields.back() += c;
        }
    }
    std::transform(fields.begin(), fields.end(), fields.begin(), stripped);
    if (separator == ' ') {
        std::erase(fields, "");
    }
    return fields;
}

[[noreturn]] void refuse(const std::string& field) { throw UsageError(field + " is not a number"); }

/// The part of `text` from `at` on that strtod takes for a number, by the rules of our texts; moves `at` behind it.
template <class F> F take_float(const std::string& text, std::size_t& at) {
    std::string rest = text.substr(at);
    std::transform(rest.begin(), rest.end(), rest.begin(), [](char c) { return c == 'd' || c == 'D' ? 'e' : c; });
    const std::size_t body = !rest.empty() && (rest[0] == '+' || rest[0] == '-') ? 1 : 0;
    if (rest.find_first_of(" \t\r\v\f") == body || rest.find_first_of("xX") == body + 1) {
        refuse(text);
    }
    char* stop = nullptr;
    const F value = std::is_same_v<F, float> ? static_cast<F>(std::strtof(rest.c_str(), &stop))
                                             : static_cast<F>(std::strtod(rest.c_str(), &stop));
    const auto length = static_cast<std::size_t>(stop - rest.c_str());
    if (length == 0 || rest.substr(0, length).find('(') != std::string::npos) {
        refuse(text);
    }
    at += length;
    return value;
}

/// The whole number in `field`, which is a decimal without mistakes: its digits are moved over the point, so that none
/// is rounded away.
template <class T> T whole_number(const std::string& field) {
    const std::size_t letter = field.find_first_of("eEdD");
    std::string digits = field.substr(0, letter);
    constexpr std::int64_t far = std::int64_t{1}
                                 << 40;  // further than any point is moved; sums of such do not overflow
    const std::int64_t exponent =
        letter == std::string::npos ? 0 : std::strtoll(field.c_str() + letter + 1, nullptr, 10);
    std::int64_t scale = std::clamp(exponent, -far, far);
    const bool negative = digits[0] == '-';
    digits.erase(0, digits.find_first_not_of("+-"));
    if (const std::size_t point = digits.find('.'); point != std::string::npos) {
        scale -= static_cast<std::int64_t>(digits.size() - point - 1);
        digits.erase(point, 1);
    }
    digits.erase(0, digits.find_first_not_of('0'));
    for (; !digits.empty() && digits.back() == '0'; ++scale) {
        digits.pop_back();
    }
    constexpr std::int64_t most = 20;  // digits of the largest number
    if (!digits.empty() && (scale < 0 || scale > most || static_cast<std::int64_t>(digits.size()) + scale > most)) {
        refuse(field);
    }
    digits.append(digits.empty() ? 1 : static_cast<std::size_t>(scale), '0');
    T value{};
    const std::string text = (negative && digits != "0" ? "-" : "") + digits;
    if (std::from_chars(text.data(), text.data() + text.size(), value).ec != std::errc{}) {
        refuse(field);
    }
    return value;
}

template <class T> T number_in(const std::string& field) {
    std::size_t at = 0;
    T value{};
    if constexpr (IsComplex<T>::value) {
        using R = typename T::value_type;
        const bool bracket = !field.empty() && field.front() == '(' && field.back() == ')';
        const std::string text = bracket ? field.substr(1, field.size() - 2) : field;
        R real = take_float<R>(text, at), imaginary{};
        if (at < text.size() && (text[at] == 'j' || text[at] == 'J')) {
            std::swap(real, imaginary);
            ++at;
        } else if (at < text.size()) {
            if (text[at] != '+' && text[at] != '-') {
                refuse(field);  // as in "1.5.5j"
            }
            at += text.compare(at, 2, "+-") == 0;
            imaginary = take_float<R>(text, at);
            if (at == text.size() || (text[at] != 'j' && text[at] != 'J')) {
                refuse(field);
            }
            ++at;
        } else if (bracket) {
            refuse(field);
        }
        at += bracket ? 2 : 0;
        value = {real, imaginary};
    } else if constexpr (std::is_same_v<T, Half>) {
        value.bits = double_to_half(take_float<double>(field, at));
    } else if constexpr (std::is_floating_point_v<T>) {
        value = take_float<T>(field, at);
    } else {
        // The checks of syntax are those of a double.
        take_float<double>(field, at);
        value = whole_number<T>(field);
    }
    if (at != field.size()) {
        refuse(field);
    }
    return value;
}

/// Digits are added until the number reads back as itself.
template <class T> std::string real_text(T value) {
    if (std::isnan(value)) {
        return "nan";
    }
    for (int digits = 1;; ++digits) {
        char text[64];
        std::snprintf(text, sizeof text, "%.*g", digits, static_cast<double>(value));
        if (number_in<T>(text) == value) {
            return text;
        }
    }
}

template <class T> std::string number_text(const T& value) {
    if constexpr (IsComplex<T>::value) {
        const std::string imaginary = real_text(value.imag());
        std::string text(1, '(');
        text += real_text(value.real());
        text += imaginary[0] == '-' ? "" : "+";
        return text + imaginary + "j)";
    } else if constexpr (std::is_integral_v<T>) {
        return std::to_string(value);
    } else if constexpr (std::is_same_v<T, Half>) {
        const double wide = half_to_double(value.bits);
        for (int digits = 1; std::isfinite(wide); ++digits) {
            char text[64];
            std::snprintf(text, sizeof text, "%.*g", digits, wide);
            if (number_in<Half>(text).bits == value.bits) {
                return text;
            }
        }
        return real_text(wide);
    } else {
        return real_text(value);
    }
}

/// What a field says, however the style writes it.
template <class T> T value_in(const std::string& field, const TextStyle& style) {
    const bool quoted = field.size() > 1 && field.front() == '"' && field.back() == '"';
    std::string text = quoted ? stripped(field.substr(1, field.size() - 2)) : field;
    const auto& words = style.missing;
    if (!words.empty() && (text.empty() || std::count(words.begin(), words.end(), text) > 0 ||
                           std::count(words.begin(), words.end(), field) > 0)) {
        if constexpr (std::is_integral_v<T>) {
            refuse(field);
        }
        text = "nan";
    } else if (style.decimal != '.') {
        std::replace(text.begin(), text.end(), '.', '?');
        std::replace(text.begin(), text.end(), style.decimal, '.');
    }
    return number_in<T>(text);
}

/// Calls `f(Tag<T>{})` with what one field holds.
template <class F> decltype(auto) with_field_type(Dtype dtype, bool pairs, F&& f) {
    const Dtype part = dtype == Dtype::complex64 ? Dtype::float32 : Dtype::float64;
    return with_file_type(is_complex(dtype) && pairs ? part : dtype, f);
}

}  // namespace

std::vector<std::byte> plain_parse_text(std::string_view text, const TextStyle& style, Dtype dtype,
                                        std::int64_t first_line) {
    if (is_complex(dtype) && style.pairs) {
        check_pairs(style);
    }
    std::vector<std::byte> bytes;
    for (std::int64_t line = first_line; !text.empty(); ++line) {
        const std::size_t length = std::min(text.find('\n'), text.size());
        std::string whole(text.substr(0, length));
        whole.resize(whole.find_last_not_of('\r') + 1);
        text.remove_prefix(std::min(length + 1, text.size()));
        const bool hash = style.hash_comments && style.taken.empty();
        for (const char* word : {"#N/A", "#NULL!", "#DIV/0!", "#VALUE!", "#REF!", "#NAME?", "#NUM!"}) {
            if (hash && stripped(whole).starts_with(word)) {
                refuse(word);
            }
        }
        const bool tabs = style.tabs_are_fields();
        const std::size_t first = whole.find_first_not_of(tabs ? " \f\v" : blanks);
        const bool percent = first != std::string::npos && whole[first] == '%' && style.taken.empty();
        if (first == std::string::npos || percent || (whole[first] == '#' && hash)) {
            continue;
        }
        std::size_t stop = whole.size();
        for (std::size_t i = whole.size(); hash && i-- > 1;) {
            stop = whole[i] == '#' && std::string(blanks).find(whole[i - 1]) != std::string::npos ? i : stop;
        }
        const std::string data = whole.substr(0, stop);
        try {
            auto fields = split(data, style.separator);
            if (static_cast<std::int64_t>(fields.size()) != style.line_numbers) {
                throw UsageError(std::to_string(fields.size()) + " numbers");
            }
            if (!style.taken.empty()) {
                std::vector<std::string> some;
                for (const std::int64_t field : style.taken) {
                    some.push_back(fields[static_cast<std::size_t>(field)]);
                }
                fields = std::move(some);
            }
            with_field_type(dtype, style.pairs, [&](auto tag) {
                using T = typename decltype(tag)::type;
                for (const auto& field : fields) {
                    const T value = value_in<T>(field, style);
                    bytes.resize(bytes.size() + sizeof(T));
                    store(bytes.data() + bytes.size() - sizeof(T), 0, value);
                }
            });
        } catch (const UsageError& error) {
            throw UsageError(std::string("line ") + std::to_string(line) + ": " + error.what());
        }
    }
    return bytes;
}

std::string plain_format_text(const std::byte* data, Dtype dtype, std::int64_t rows, const TextStyle& style,
                              bool pairs) {
    std::string text;
    with_field_type(dtype, pairs, [&](auto tag) {
        for (std::int64_t index = 0; index < rows * style.line_numbers; ++index) {
            std::string number = number_text(load<typename decltype(tag)::type>(data, index));
            if (!style.missing.empty() && number.find("nan") != std::string::npos) {
                number = style.missing.front();
            }
            std::replace(number.begin(), number.end(), '.', style.decimal);
            text += number;
            text += (index + 1) % style.line_numbers == 0 ? '\n' : style.separator;
        }
    });
    return text;
}

std::size_t digits_in(const std::string& text) {
    std::string digits = text.substr(0, text.find('e'));
    std::erase_if(digits, [](char c) { return c < '0' || c > '9'; });
    const std::size_t first = digits.find_first_not_of('0'), last = digits.find_last_not_of('0');
    return first == std::string::npos ? 0 : last - first + 1;
}

}  // namespace tilewise::kernel
