// Prints numbers of every type: floats in the fewest digits, float16 from a table, complex numbers as two.
#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>
#include <vector>

#include "tilewise/kernel/text/number.hpp"
#include "tilewise/kernel/text/print_float.hpp"

namespace tilewise::kernel {
namespace {

template <class R> char* print_complex(const std::complex<R>& value, char* out) {
    *out++ = '(';
    out = print(value.real(), out);
    if (!std::signbit(value.imag()) || std::isnan(value.imag())) {
        *out++ = '+';
    }
    out = print(value.imag(), out);
    *out++ = 'j';
    *out++ = ')';
    return out;
}

/// The shortest decimals of all positive float16, made once: trying one to five digits takes longer than printing many
/// numbers.
struct HalfTable {
    static constexpr std::size_t width = 11;
    struct Entry {
        std::array<char, width> text;
        std::uint8_t length;
    };
    std::vector<Entry> entries{std::size_t{1} << 15};

    HalfTable() {
        for (std::size_t bits = 0; bits < entries.size(); ++bits) {
            const double exact = half_to_double(static_cast<std::uint16_t>(bits));
            Entry& entry = entries[bits];
            std::array<char, print_width(Dtype::float64)> text;
            const char* end = print(fewest_digits(exact, static_cast<std::uint16_t>(bits)), text.data());
            entry.length = static_cast<std::uint8_t>(end - text.data());
            std::copy_n(text.data(), entry.length, entry.text.data());
        }
    }

    /// The double nearest to the decimal of fewest digits that rounds to this float16; printing it gives that decimal
    /// back.
    static double fewest_digits(double exact, std::uint16_t bits) {
        // From just above too: a decimal halfway between two is rounded to even, but below a power of two half as much
        // rounds to it.
        const double above = std::nextafter(exact, std::numeric_limits<double>::infinity());
        for (int digits = 1; std::isfinite(exact); ++digits) {
            for (const double start : {exact, above}) {
                const double decimal = rounded(start, digits);
                if (double_to_half(decimal) == bits) {
                    return decimal;
                }
            }
        }
        return exact;
    }

    static double rounded(double value, int digits) {
        std::array<char, 32> text;
        const auto end =
            std::to_chars(text.data(), text.data() + text.size(), value, std::chars_format::scientific, digits - 1).ptr;
        double decimal = 0;
        std::from_chars(text.data(), end, decimal);
        return decimal;
    }
};

}  // namespace

char* print(double value, char* out) { return print_float(value, out); }
char* print(float value, char* out) { return print_float(value, out); }
char* print(std::int64_t value, char* out) { return std::to_chars(out, out + 20, value).ptr; }
char* print(std::uint64_t value, char* out) { return std::to_chars(out, out + 20, value).ptr; }
char* print(const std::complex<float>& value, char* out) { return print_complex(value, out); }
char* print(const std::complex<double>& value, char* out) { return print_complex(value, out); }
char* print(Half value, char* out) {
    static const HalfTable table;
    const bool negative = value.bits >> 15 != 0;
    const HalfTable::Entry& entry = table.entries[value.bits & 0x7FFFU];
    if (negative && (value.bits & 0x7FFFU) <= 0x7C00U) {
        *out++ = '-';
    }
    return std::copy_n(entry.text.data(), entry.length, out);
}

}  // namespace tilewise::kernel
