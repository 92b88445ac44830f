// Writes rows of numbers as text, each number in the fewest digits that say exactly which it is.
#include <type_traits>

#include "tilewise/kernel/text.hpp"

namespace tilewise::kernel {
namespace {

template <class T> char* print_any(const T& value, char* out) {
    if constexpr (std::is_integral_v<T>) {
        return print(static_cast<std::conditional_t<std::is_signed_v<T>, std::int64_t, std::uint64_t>>(value), out);
    } else {
        return print(value, out);
    }
}

template <class T> char* format_rows(const std::byte* data, std::int64_t rows, const TextStyle& style, char* out) {
    std::int64_t index = 0;
    for (std::int64_t row = 0; row < rows; ++row) {
        for (std::int64_t field = 0; field < style.line_numbers; ++field) {
            if (field > 0) {
                *out++ = style.separator;
            }
            out = print_any(load<T>(data, index++), out);
        }
        *out++ = '\n';
    }
    return out;
}

}  // namespace

char* format_text(const std::byte* data, Dtype dtype, std::int64_t rows, TextStyle style, bool pairs, char* out) {
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
