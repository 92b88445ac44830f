// The loop of `text_quick.hpp`, for any way to find starts and decimals.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>

#include "tilewise/base/inline.hpp"
#include "tilewise/kernel/file_type.hpp"
#include "tilewise/kernel/text/powers_of_ten.hpp"
#include "tilewise/kernel/text/text_quick.hpp"

namespace tilewise::kernel {
namespace {

// Decimals of up to 19 digits, eight characters at a time: found, and rounded to the nearest binary number.
//
//     -12.3456789012345e-7,   significant  123456789012345     scale  −13 − 7 = −20
//      \/ \______/\____/ |    blocks of eight characters, in which the digits before the first other character count
//
// The idea of eight digits in three multiplications is folklore, that of one product with a 128-bit power of ten from
// Lemire, "Number parsing at a gigabyte per second" (2021). What either cannot settle is left to the library.

TILEWISE_INLINE std::uint64_t load_little(const char* at) {
    std::uint64_t block;
    std::memcpy(&block, at, sizeof block);
    return std::endian::native == std::endian::big ? __builtin_bswap64(block) : block;
}

/// Eight characters, the first in the lowest byte, less '0': digits are 0 to 9, all else is more.
TILEWISE_INLINE std::uint64_t eight_characters(const char* at) { return load_little(at) ^ 0x3030303030303030; }

/// How many digits a block begins with.
TILEWISE_INLINE int leading_digits(std::uint64_t block) {
    // A carry comes from a character that is none, and so spoils only what no longer counts.
    return std::countr_zero(((block + 0x7676767676767676) | block) & 0x8080808080808080) / 8;
}

/// The number that eight digits are.
TILEWISE_INLINE std::uint64_t eight_digits(std::uint64_t block) {
    constexpr std::uint64_t pair = 0x000000FF000000FF;
    block = block * 10 + (block >> 8);  // each even byte is two digits
    return ((block & pair) * (100 + (std::uint64_t{1000000} << 32)) +
            ((block >> 16) & pair) * (1 + (std::uint64_t{10000} << 32))) >>
           32;
}

/// The number that the first `count` characters of a block are, fewer than eight.
TILEWISE_INLINE std::uint64_t few_digits(std::uint64_t block, int count) {
    return eight_digits(block << (56 - 8 * count) << 8);
}

/// significant · 10^scale, less its sign.
struct Decimal {
    std::uint64_t significant;
    int scale;
    const char* end;
    bool negative, whole;  ///< whole: digits alone
};

/// Characters that `find_decimal` may look at.
constexpr std::ptrdiff_t decimal_room = 64;

/// Takes the exponent behind a decimal, where there is one; false where it has too many digits.
TILEWISE_INLINE bool find_exponent(Decimal& decimal) {
    const char* at = decimal.end;
    if ((*at | 0x20) != 'e' && (*at | 0x20) != 'd') {
        return true;
    }
    decimal.whole = false;
    const char* first = at + 1 + ((at[1] == '-') | (at[1] == '+'));
    const std::uint64_t block = eight_characters(first);
    const int count = leading_digits(block);
    if (count == 8) [[unlikely]] {
        return false;
    }
    if (count > 0) {
        const int exponent = static_cast<int>(few_digits(block, count));
        decimal.scale += at[1] == '-' ? -exponent : exponent;
        decimal.end = first + count;
    }
    return true;
}

/// Finds the decimal that begins at `at`, where `decimal_room` characters can be read; false where it has more digits
/// than fit, or is none.
TILEWISE_INLINE bool find_decimal(const char* at, char mark, Decimal& decimal) {
    constexpr std::array<std::uint32_t, 8> tens{1, 10, 100, 1000, 10000, 100000, 1000000, 10000000};
    constexpr std::uint64_t many = 100000000;
    constexpr std::uint64_t room = std::numeric_limits<std::uint64_t>::max() / many - 1;
    const auto ten_to = [&](int power) { return tens[static_cast<std::size_t>(power)]; };
    decimal.negative = *at == '-';
    at += (*at == '-') | (*at == '+');
    const char* const begin = at;
    std::uint64_t block = eight_characters(at), value = 0;
    int digits = leading_digits(block), fraction = 0;
    if (digits == 8) [[unlikely]] {
        value = eight_digits(block);
        at += 8;
        block = eight_characters(at);
        digits = leading_digits(block);
        if (digits == 8) [[unlikely]] {
            value = value * many + eight_digits(block);
            at += 8;
            block = eight_characters(at);
            digits = leading_digits(block);
            if (digits > 3) {
                return false;
            }
        }
        value *= ten_to(digits);
    }
    value += few_digits(block, digits);
    at += digits;
    decimal.whole = *at != mark;
    if (*at == mark) {
        ++at;
        block = eight_characters(at);
        int count = leading_digits(block);
        for (int blocks = 0; count == 8; ++blocks) {
            if (blocks == 2 || value > room) [[unlikely]] {
                return false;
            }
            value = value * many + eight_digits(block);
            at += 8;
            fraction += 8;
            block = eight_characters(at);
            count = leading_digits(block);
        }
        const std::uint64_t more = few_digits(block, count);
        if (__builtin_mul_overflow(value, ten_to(count), &value) || __builtin_add_overflow(value, more, &value))
            [[unlikely]] {
            return false;
        }
        at += count;
        fraction += count;
    }
    if (at - begin == static_cast<std::ptrdiff_t>(!decimal.whole)) [[unlikely]] {
        return false;  // no digit, perhaps a name
    }
    decimal.significant = value;
    decimal.scale = -fraction;
    decimal.end = at;
    return find_exponent(decimal);
}

/// The float nearest to significant · 10^scale, ties to even; false where it is not certain, subnormal or infinite.
template <class F> TILEWISE_INLINE bool nearest_float(std::uint64_t significant, int scale, F& value) {
    constexpr int digits = std::numeric_limits<F>::digits;  // of the significand, in bits
    constexpr int bias = std::numeric_limits<F>::max_exponent - 1;
    using Bits = std::conditional_t<sizeof(F) == 8, std::uint64_t, std::uint32_t>;
    value = 0;
    if (scale < least_power || scale > largest_power || significant == 0) [[unlikely]] {
        return significant == 0;
    }
    // The product of two numbers whose first bit is set, rounded up by less than one in its 128th bit:
    //
    //     high  [ 1 | significand | half | rest ]   middle [ rest ]      the first bit may also be a 0
    const int shift = std::countl_zero(significant);
    const PowerOfTen& power = power_of_ten(scale);
    const std::uint64_t normal = significant << shift;
    const Wide product = static_cast<Wide>(normal) * power.high + ((static_cast<Wide>(normal) * power.low) >> 64);
    const auto high = static_cast<std::uint64_t>(product >> 64), middle = static_cast<std::uint64_t>(product);
    const int top = static_cast<int>(high >> 63), extra = 62 + top - digits;
    const std::uint64_t doubled = high >> extra;
    const bool just_half = middle == 0 && doubled << extra == high && (doubled & 1) != 0;
    const int exponent = 63 + top + log2_of_ten(scale) - shift + bias;
    if (just_half || exponent < 1 || exponent >= 2 * bias) [[unlikely]] {
        return false;
    }
    // The first bit of the significand adds one to the exponent, as does a carry that rounding makes.
    value = std::bit_cast<F>(
        static_cast<Bits>((static_cast<std::uint64_t>(exponent - 1) << (digits - 1)) + ((doubled + 1) >> 1)));
    return true;
}

/// The float nearest to a decimal; false as above.
template <class F> TILEWISE_INLINE bool to_float(const Decimal& decimal, F& value) {
    using Bits = std::conditional_t<sizeof(F) == 8, std::uint64_t, std::uint32_t>;
    F magnitude;
    const bool found = nearest_float(decimal.significant, decimal.scale, magnitude);
    // Signs come at random: no branch on them.
    value = std::bit_cast<F>(
        static_cast<Bits>(std::bit_cast<Bits>(magnitude) | static_cast<Bits>(decimal.negative) << (8 * sizeof(F) - 1)));
    return found;
}

/// The decimal as a number of type T; false where that is not certain, or something is to be said of it.
template <class T> TILEWISE_INLINE bool to_number(const Decimal& decimal, T& value) {
    if constexpr (std::is_integral_v<T>) {
        constexpr auto largest = static_cast<std::uint64_t>(std::numeric_limits<T>::max());
        const std::uint64_t magnitude = decimal.significant;
        value = static_cast<T>(decimal.negative ? ~magnitude + 1 : magnitude);
        return decimal.whole && magnitude <= largest && (std::is_signed_v<T> || !decimal.negative || magnitude == 0);
    } else if constexpr (std::is_same_v<T, Half>) {
        double wide = 0;
        const bool done = to_number(decimal, wide);
        value.bits = double_to_half(wide);
        return done;
    } else {
        constexpr std::uint64_t first_gap = std::uint64_t{1} << 53;  // whole numbers beyond may be lost in a double
        return !(std::is_same_v<T, double> && decimal.whole && decimal.significant >= first_gap) &&
               to_float(decimal, value);
    }
}

/// Whether [at, next), behind a number and before another, is one separator and blanks, or one line end. Where numbers
/// are quoted all are, each in quotes without blanks: "1","2"
struct Between {
    char separator;
    bool quoted;

    bool is_blank(char c) const { return c == ' ' || (c == '\t' && separator != '\t'); }

    TILEWISE_INLINE bool separates(const char* at, const char* next) const {
        if (quoted) {
            return next - at == 3 && is_quoted_separator(at);
        }
        return (next - at == 1 && *at == separator) || separates_widely(at, next);
    }
    /// With quotes on both sides; three characters are looked at.
    TILEWISE_INLINE bool is_quoted_separator(const char* at) const {
        return (at[0] == '"') & (at[1] == separator) & (at[2] == '"');
    }
    [[gnu::noinline]] bool separates_widely(const char* at, const char* next) const {
        const char* begin = at;
        at = skip_blanks(at, next);
        if (separator == ' ') {
            return at > begin && at == next;
        }
        return at < next && *at == separator && skip_blanks(at + 1, next) == next;
    }
    /// Where the next line begins, null where that is not all. A number begins at `next`, or the text ends.
    TILEWISE_INLINE const char* line_begin(const char* at, const char* next, bool at_end) const {
        if (quoted) {
            return quoted_line_begin(at, next, at_end);
        }
        return next - at == 1 && *at == '\n' ? next : wide_line_begin(at, next);
    }
    [[gnu::noinline]] const char* wide_line_begin(const char* at, const char* next) const {
        at = skip_blanks(at, next);
        while (at < next && *at == '\r') {
            ++at;
        }
        return at < next && *at == '\n' && skip_blanks(at + 1, next) == next ? at + 1 : nullptr;
    }

    [[gnu::noinline]] const char* quoted_line_begin(const char* at, const char* next, bool at_end) const {
        const char* const begin = at_end ? next : next - 1;  // of the next line
        if (at >= begin || *at++ != '"' || !(at_end || *begin == '"')) {
            return nullptr;
        }
        while (at < begin && *at == '\r') {
            ++at;
        }
        return (at_end && at == begin) || (begin - at == 1 && *at == '\n') ? begin : nullptr;
    }
    /// Whether a line that begins at `at` has its first number at `next`.
    bool begins(const char* at, const char* next) const {
        return quoted ? next - at == 1 && *at == '"' : skip_blanks(at, next) == next;
    }

private:
    const char* skip_blanks(const char* at, const char* end) const {
        while (at < end && is_blank(*at)) {
            ++at;
        }
        return at;
    }
};

/// Reads the numbers of one call, start after start.
template <class Way, class T> class QuickLoop {
public:
    explicit QuickLoop(const QuickLines& lines)
        : lines_(lines),
          between_{lines.separator, lines.begin < lines.end && *lines.begin == '"' && lines.separator != '"'},
          line_begin_(lines.begin) {}

    QuickEnd run() {
        std::uint64_t behind = 1;  // whether a field may start at the next character
        for (const char* at = lines_.begin; at < lines_.end; at += block) {
            const std::size_t count = find_starts(at, behind), found = find_numbers(at, count);
            if (!take(at, found)) {
                return {line_begin_, done_};
            }
            if (found < count) {
                return end_before(at + starts_[found]);
            }
        }
        return end_before(lines_.end);
    }

private:
    static constexpr std::ptrdiff_t block = 1024, word = 64;
    static constexpr std::size_t at_once = 8;

    /// Places of fields in the block at `at`.
    std::size_t find_starts(const char* at, std::uint64_t& behind) {
        const std::ptrdiff_t size = std::min(block, lines_.end - at);
        std::size_t count = 0;
        for (std::ptrdiff_t i = 0; i < size; i += word) {
            std::array<char, word> last;
            const char* characters = at + i;
            if (size - i < word) {
                last.fill('\n');
                std::copy(characters, lines_.end, last.begin());
                characters = last.data();
            }
            const std::uint64_t gaps =
                Way::gaps(characters, lines_.separator, between_.quoted ? '"' : lines_.separator);
            std::uint64_t left = ~gaps & (gaps << 1 | behind);
            const auto found = static_cast<std::size_t>(std::popcount(left));
            // A few at once, wanted or not, since how many there are cannot be foreseen.
            for (std::size_t some = 0; some < found; some += at_once) {
                for (std::size_t k = some; k < some + at_once; ++k, left &= left - 1) {
                    starts_[count + k] = static_cast<std::uint32_t>(i + std::countr_zero(left));
                }
            }
            count += found;
            behind = gaps >> (word - 1);
        }
        return count;
    }

    /// Reads as many numbers of a block as are plain and there is room for. Each step is a loop of its own: a processor
    /// has room for the instructions of two whole numbers, most of which wait, but for a part of many at once.
    std::size_t find_numbers(const char* at, std::size_t count) {
        const bool inside = at - lines_.begin >= Way::room_before && lines_.end - at >= block + decimal_room;
        std::size_t found = 0;
        if (inside) {
            while (found < count && Way::find(at + starts_[found], lines_.mark, decimals_[found])) {
                ++found;
            }
        } else {
            while (found < count && find_at_border(at + starts_[found], decimals_[found])) {
                ++found;
            }
        }
        const std::int64_t taken = done_ * lines_.line_numbers + field_, room = lines_.most * lines_.line_numbers;
        found = static_cast<std::size_t>(std::min(static_cast<std::int64_t>(found), room - taken));
        std::byte* const out = lines_.out + taken * static_cast<std::int64_t>(sizeof(T));
        std::size_t certain = 0;
        for (T value; certain < found && to_number(decimals_[certain], value); ++certain) {
            store(out, static_cast<std::int64_t>(certain), value);
        }
        return certain;
    }

    /// Takes the first `count` numbers of a block, as long as what stands between them is as it should be.
    bool take(const char* at, std::size_t count) {
        for (std::size_t i = 0; i < count;) {
            const char* start = at + starts_[i];
            if (field_ == lines_.line_numbers) {
                const char* next = after_line(start, false);
                if (next == nullptr) {
                    return false;
                }
                line_begin_ = next;
                field_ = 0;
                ++done_;
            } else if (!(field_ > 0 ? between_.separates(end_, start) : between_.begins(line_begin_, start))) {
                return false;
            }
            // The rest of the line, or of the block: without a branch as long as one separator stands between two.
            const std::size_t end = i + std::min(count - i, static_cast<std::size_t>(lines_.line_numbers - field_));
            bool usual = true;
            for (std::size_t k = i + 1; k < end; ++k) {
                const char* before = decimals_[k - 1].end;
                usual &= (before + 1 == at + starts_[k]) & (*before == lines_.separator) & !between_.quoted;
            }
            for (std::size_t k = i + 1; k < end && !usual; ++k) {
                if (!between_.separates(decimals_[k - 1].end, at + starts_[k])) {
                    return false;
                }
            }
            field_ += static_cast<std::int64_t>(end - i);
            i = end;
            end_ = decimals_[i - 1].end;
        }
        return true;
    }

    /// The end where the next field, which begins at `next`, is not taken, or there is none.
    QuickEnd end_before(const char* next) const {
        if (field_ == lines_.line_numbers) {
            const bool at_end = next == lines_.end;
            const char* begin = end_ == next && !between_.quoted ? next : after_line(next, at_end);
            if (begin != nullptr) {
                return {begin, done_ + 1};
            }
        }
        return {line_begin_, done_};
    }

    /// Where the line behind the last number begins, if nothing but a line's end is before `next`; else null.
    const char* after_line(const char* next, bool at_end) const { return between_.line_begin(end_, next, at_end); }

    /// Where not all that is looked at is in the text.
    bool find_at_border(const char* start, Decimal& decimal) const {
        std::array<char, 2 * decimal_room> copy{};
        std::copy_n(start, std::min(decimal_room, lines_.end - start), copy.begin());
        if (!find_decimal(copy.data(), lines_.mark, decimal)) {
            return false;
        }
        decimal.end = start + (decimal.end - copy.data());
        return true;
    }

    const QuickLines& lines_;
    Between between_;
    const char *line_begin_, *end_ = nullptr;
    std::int64_t field_ = 0, done_ = 0;
    std::array<std::uint32_t, block / 2 + word> starts_;
    std::array<Decimal, block / 2> decimals_;
};

template <class Way> QuickReader reader_of(Dtype dtype) {
    return with_file_type(dtype, [](auto tag) -> QuickReader {
        using T = typename decltype(tag)::type;
        if constexpr (IsComplex<T>::value) {
            return nullptr;
        } else {
            return [](const QuickLines& lines) { return QuickLoop<Way, T>(lines).run(); };
        }
    });
}

}  // namespace

}  // namespace tilewise::kernel
