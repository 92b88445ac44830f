// Fuzzes the writing of texts: what is written reads back as the same numbers, and keeps to the width that was
// promised.
#include <algorithm>
#include <cmath>
#include <complex>
#include <cstdint>
#include <limits>
#include <memory>
#include <vector>

#include "require.hpp"
#include "tilewise/kernel/file_type.hpp"
#include "tilewise/kernel/text/text.hpp"

using namespace tilewise;
using namespace tilewise::kernel;

namespace {

template <class T> void make_plain_nan(T& value) {
    if constexpr (IsComplex<T>::value) {
        auto real = value.real(), imaginary = value.imag();
        make_plain_nan(real);
        make_plain_nan(imaginary);
        value = {real, imaginary};
    } else if constexpr (std::is_floating_point_v<T>) {
        value = std::isnan(value) ? std::numeric_limits<T>::quiet_NaN() : value;
    } else if constexpr (std::is_same_v<T, Half>) {
        value.bits = std::isnan(half_to_double(value.bits)) ? double_to_half(std::nan("")) : value.bits;
    }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    if (size < 2) {
        return 0;
    }
    const Dtype dtype = dtypes[data[1] % dtypes.size()].dtype;
    const bool pairs = is_complex(dtype) && (data[0] & 32) != 0;
    TextStyle style{" ,;\t"[data[0] & 3], 1 + ((data[0] >> 2) & 7)};
    if ((data[0] & 64) != 0 && style.separator != ',') {
        style.decimal = ',';
    }
    if ((data[0] & 128) != 0 && (pairs || !is_complex(dtype))) {  // of a complex number a part may be NaN
        style.missing = {"none"};
    }
    const std::int64_t columns = style.line_numbers;
    style.line_numbers *= pairs ? 2 : 1;
    const auto rows = static_cast<std::int64_t>((size - 2) / size_of(dtype)) / columns;
    std::vector<std::byte> numbers(static_cast<std::size_t>(rows * columns) * size_of(dtype));
    std::copy_n(reinterpret_cast<const std::byte*>(data) + 2, numbers.size(), numbers.begin());
    with_file_type(dtype, [&](auto tag) {
        using T = typename decltype(tag)::type;
        for (std::int64_t i = 0; i < rows * columns; ++i) {  // a NaN's payload is not written
            T value = load<T>(numbers.data(), i);
            make_plain_nan(value);
            store(numbers.data(), i, value);
        }
    });
    const std::size_t room = static_cast<std::size_t>(rows * columns) * text_width(dtype, style);
    const std::unique_ptr<char[]> text(new char[room]);
    const char* end = format_text(numbers.data(), dtype, rows, style, pairs, text.get());
    style.pairs = pairs;
    std::vector<std::byte> back(numbers.size());
    const std::int64_t count = parse_text(text.get(), end, style, dtype, back.data(), rows * columns, 1);
    require(count == rows * columns, "as many numbers come back as were written");
    require(numbers == back, "the same numbers come back");
    return 0;
}
