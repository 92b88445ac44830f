// Writes rows of numbers as text, each number in the fewest digits that say exactly which it is.
#include <algorithm>
#include <cmath>
#include <type_traits>

#include "tilewise/kernel/text/text.hpp"

namespace tilewise::kernel {
namespace {

template <class T> char* print_any(const T& value, char* out) {
    if constexpr (std::is_integral_v<T>) {
        return print(static_cast<std::conditional_t<std::is_signed_v<T>, std::int64_t, std::uint64_t>>(value), out);
    } else {
        return print(value, out);
    }
}

template <class T> bool has_nan(const T& value) {
    if constexpr (IsComplex<T>::value) {
        return has_nan(value.real()) || has_nan(value.imag());
    } else if constexpr (std::is_same_v<T, Half>) {
        return std::isnan(half_to_double(value.bits));
    } else if constexpr (std::is_floating_point_v<T>) {
        return std::isnan(value);
    } else {
        return false;
    }
}

/// As a style with another decimal mark, or a word for missing numbers, has it.
template <class T> char* print_styled(const T& value, const TextStyle& style, char* out) {
    if (!style.missing.empty() && has_nan(value)) {
        return std::copy(style.missing.front().begin(), style.missing.front().end(), out);
    }
    char* end = print_any(value, out);
    std::replace(out, end, '.', style.decimal);
    return end;
}

template <class T> char* format_rows(const std::byte* data, std::int64_t rows, const TextStyle& style, char* out) {
    const bool plain = style.decimal == '.' && style.missing.empty();
    std::int64_t index = 0;
    for (std::int64_t row = 0; row < rows; ++row) {
        for (std::int64_t field = 0; field < style.line_numbers; ++field) {
            if (field > 0) {
                *out++ = style.separator;
            }
            const T value = load<T>(data, index++);
            out = plain ? print_any(value, out) : print_styled(value, style, out);
        }
        *out++ = '\n';
    }
    return out;
}

}  // namespace

std::size_t text_width(Dtype dtype, const TextStyle& style) {
    return std::max(text_width(dtype), style.missing.empty() ? 0 : style.missing.front().size() + 1);
}

char* format_text(const std::byte* data, Dtype dtype, std::int64_t rows, const TextStyle& style, bool pairs,
                  char* out) {
    return with_file_type(dtype, [&](auto tag) {
        using T = typename decltype(tag)::type;
        if constexpr (IsComplex<T>::value) {
            if (pairs) {
                check_pairs(style);
                return format_rows<typename T::value_type>(data, rows, style, out);
            }
        }
        return format_rows<T>(data, rows, style, out);
    });
}

}  // namespace tilewise::kernel
