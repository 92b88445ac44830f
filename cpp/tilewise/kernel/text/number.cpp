// The library's exact conversions, and around them what it leaves to others: signs, names, Fortran's exponents, range,
// complex.
#include "tilewise/kernel/text/number.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

namespace tilewise::kernel {
namespace {

constexpr bool is_digit(char c) { return c >= '0' && c <= '9'; }
constexpr char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }
constexpr bool is_sign(char c) { return c == '+' || c == '-'; }

bool begins_with(const char* at, const char* end, std::string_view word) {
    return end - at >= static_cast<std::ptrdiff_t>(word.size()) &&
           std::equal(word.begin(), word.end(), at, [](char expected, char c) { return expected == lower(c); });
}

/// nan, inf or infinity at `body`, or no number at all.
Scan scan_name(const char* body, const char* end, bool negative, double& value) {
    constexpr double infinity = std::numeric_limits<double>::infinity();
    if (begins_with(body, end, "nan")) {
        value = std::numeric_limits<double>::quiet_NaN();
        return {body + 3};
    }
    value = negative ? -infinity : infinity;
    if (begins_with(body, end, "infinity")) {
        return {body + 8};
    }
    if (begins_with(body, end, "inf")) {
        return {body + 3};
    }
    return {body, Fault::no_number};
}

/// The end of an exponent at `at` (its letter, an optional sign, digits) with its value, held within ±2³⁰; or `at`
/// where there is none.
std::pair<const char*, std::int64_t> scan_exponent(const char* at, const char* end) {
    const char* digits = at + 1 + (end - at > 1 && is_sign(at[1]));
    if (digits >= end || !is_digit(*digits)) {
        return {at, 0};
    }
    std::int64_t exponent = 0;
    for (; digits < end && is_digit(*digits); ++digits) {
        exponent = std::min(exponent * 10 + (*digits - '0'), std::int64_t{1} << 30);
    }
    return {digits, at[1] == '-' ? -exponent : exponent};
}

/// A decimal without its sign: significant · 10^scale, `significant` ending in no zero. Zero has `significant` 0.
struct Decimal {
    std::uint64_t significant = 0;
    bool overflow = false;       ///< more digits than `significant` can hold
    std::int64_t scale = 0;      ///< exact, whatever the number of digits
    std::int64_t magnitude = 0;  ///< the number lies in [10^(magnitude−1), 10^magnitude)
    const char* end = nullptr;
};

Decimal scan_decimal(const char* at, const char* end) {
    Decimal decimal;
    std::int64_t zeros = 0, fraction = 0;  // zeros since the last significant digit; digits behind the point
    bool point = false, begun = false;
    for (; at < end && (is_digit(*at) || (*at == '.' && !point)); ++at) {
        if (*at == '.') {
            point = true;
            continue;
        }
        fraction += point;
        decimal.magnitude += begun ? !point : (*at != '0' ? 1 - fraction : 0);
        begun = begun || *at != '0';
        if (*at == '0') {
            zeros += begun;
            decimal.scale += begun && !point;
            continue;
        }
        for (; zeros >= 0; --zeros) {
            decimal.overflow |= __builtin_mul_overflow(decimal.significant, 10U, &decimal.significant);
        }
        zeros = 0;
        decimal.overflow |=
            __builtin_add_overflow(decimal.significant, static_cast<std::uint64_t>(*at - '0'), &decimal.significant);
        decimal.scale = -fraction;
    }
    decimal.end = at;
    if (at < end && (lower(*at) == 'e' || lower(*at) == 'd')) {
        const auto [behind, exponent] = scan_exponent(at, end);
        decimal.end = behind;
        decimal.scale += exponent;
        decimal.magnitude += exponent;
    }
    return decimal;
}

/// The first double beyond which whole numbers lie further apart than 1: 2⁵³.
constexpr double first_gap = 9007199254740992.0;

/// What `value`, 2⁵³ or more in magnitude, lost of the decimal in [body, end): a fraction or an exponent says that it
/// is no exact number, and loses nothing.
[[gnu::noinline, gnu::cold]] Loss loss_of(const char* body, const char* end, double value) {
    if (!std::all_of(body, end, is_digit)) {
        return Loss::none;
    }
    std::array<char, 320> digits;  // of the largest double, and then some
    char* stop =
        std::to_chars(digits.data(), digits.data() + digits.size(), std::abs(value), std::chars_format::fixed, 0).ptr;
    const char* first = std::find_if(body, end, [](char c) { return c != '0'; });
    return std::equal(first, end, digits.data(), stop) ? Loss::none : Loss::rounded;
}

template <class T> Scan scan_float(const char* at, const char* end, T& value) {
    const char* body = at + (at < end && is_sign(*at));
    const bool negative = at < end && *at == '-';
    if (body == end || !(is_digit(*body) || *body == '.')) {
        double named = 0;
        const Scan result = scan_name(body, end, negative, named);
        value = static_cast<T>(named);
        return result;
    }
    const auto [stop, error] = std::from_chars(negative ? at : body, end, value);
    if (error == std::errc::invalid_argument) {
        return {body, Fault::no_number};
    }
    if (stop < end && lower(*stop) == 'd') {
        if (const char* behind = scan_exponent(stop, end).first; behind != stop) {
            std::string copy(at, behind);
            copy[static_cast<std::size_t>(stop - at)] = 'e';
            const char* copy_end = copy.data() + copy.size();
            const Scan result = scan_float(copy.data(), copy_end, value);
            if (result.end == copy_end) {  // else it has two exponents, and is no number
                return {behind, Fault::none, result.loss};
            }
        }
    }
    if (error == std::errc::result_out_of_range) {  // the library leaves `value` alone and does not say on which side
        const bool large = scan_decimal(body, end).magnitude > 0;
        const T magnitude = large ? std::numeric_limits<T>::infinity() : T{0};
        value = negative ? -magnitude : magnitude;
        return {stop, Fault::none, large ? Loss::overflow : Loss::none};
    }
    if constexpr (std::is_same_v<T, double>) {
        if (std::abs(value) >= first_gap) [[unlikely]] {
            return {stop, Fault::none, loss_of(body, stop, value)};
        }
    }
    return {stop};
}

template <class T> Scan scan_integer(const char* at, const char* end, T& value) {
    const char* body = at + (at < end && is_sign(*at));
    const bool negative = at < end && *at == '-';
    std::uint64_t magnitude = 0;
    auto [stop, error] = std::from_chars(body, end, magnitude);
    bool beyond = error == std::errc::result_out_of_range;
    if (error == std::errc::invalid_argument ||
        (stop < end && (*stop == '.' || lower(*stop) == 'e' || lower(*stop) == 'd'))) {
        if (body == end || !(is_digit(*body) || (*body == '.' && end - body > 1 && is_digit(body[1])))) {
            double named = 0;
            const Scan name = scan_name(body, end, negative, named);
            return {name.end, name.fault == Fault::none ? Fault::no_whole_number : name.fault};
        }
        Decimal decimal = scan_decimal(body, end);
        stop = decimal.end;
        const bool zero = decimal.significant == 0 && !decimal.overflow;
        if (decimal.scale < 0 && !zero) {
            return {stop, Fault::no_whole_number};
        }
        beyond = decimal.overflow;
        for (; decimal.scale > 0 && !zero && !beyond; --decimal.scale) {
            beyond = __builtin_mul_overflow(decimal.significant, 10U, &decimal.significant);
        }
        magnitude = decimal.significant;
    }
    const auto largest = static_cast<std::uint64_t>(std::numeric_limits<T>::max());
    beyond = beyond || magnitude > (negative ? (std::is_signed_v<T> ? largest + 1 : 0) : largest);
    value = static_cast<T>(negative ? ~magnitude + 1 : magnitude);
    return {stop, beyond ? Fault::beyond_type : Fault::none};
}

template <class R> Scan scan_complex(const char* at, const char* end, std::complex<R>& value) {
    const bool bracket = at < end && *at == '(';
    R real{}, imaginary{};
    Scan part = scan_float(at + bracket, end, real);
    const Loss of_real = part.loss;
    if (part.fault != Fault::none) {
        return part;
    }
    const auto is = [&](char c) { return part.end < end && lower(*part.end) == c; };
    if (is('j')) {
        imaginary = std::exchange(real, R{0});
        ++part.end;
    } else if (is('+') || is('-')) {
        const bool both = is('+') && end - part.end > 1 && part.end[1] == '-';
        part = scan_float(part.end + both, end, imaginary);
        if (part.fault != Fault::none || !is('j')) {
            return {part.end, Fault::no_number};
        }
        ++part.end;
    } else if (bracket) {
        return {part.end, Fault::no_number};  // (5) may be -5
    }
    if (bracket && !is(')')) {
        return {part.end, Fault::no_number};
    }
    value = {real, imaginary};
    return {part.end + bracket, Fault::none, std::max(part.loss, of_real)};
}

}  // namespace

Scan scan(const char* at, const char* end, double& value) { return scan_float(at, end, value); }
Scan scan(const char* at, const char* end, float& value) { return scan_float(at, end, value); }
Scan scan(const char* at, const char* end, Half& value) {
    double wide = 0;
    const Scan result = scan_float(at, end, wide);
    value.bits = double_to_half(wide);
    return result;
}
Scan scan(const char* at, const char* end, std::int8_t& value) { return scan_integer(at, end, value); }
Scan scan(const char* at, const char* end, std::int16_t& value) { return scan_integer(at, end, value); }
Scan scan(const char* at, const char* end, std::int32_t& value) { return scan_integer(at, end, value); }
Scan scan(const char* at, const char* end, std::int64_t& value) { return scan_integer(at, end, value); }
Scan scan(const char* at, const char* end, std::uint8_t& value) { return scan_integer(at, end, value); }
Scan scan(const char* at, const char* end, std::uint16_t& value) { return scan_integer(at, end, value); }
Scan scan(const char* at, const char* end, std::uint32_t& value) { return scan_integer(at, end, value); }
Scan scan(const char* at, const char* end, std::uint64_t& value) { return scan_integer(at, end, value); }
Scan scan(const char* at, const char* end, std::complex<float>& value) { return scan_complex(at, end, value); }
Scan scan(const char* at, const char* end, std::complex<double>& value) { return scan_complex(at, end, value); }

}  // namespace tilewise::kernel
