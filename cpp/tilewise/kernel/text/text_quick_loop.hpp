// The loop of `text_quick.hpp`, for any way to find starts and decimals.
#pragma once

#include <algorithm>
#include <array>
#include <type_traits>

#include "tilewise/kernel/file_type.hpp"
#include "tilewise/kernel/text/decimal.hpp"
#include "tilewise/kernel/text/text_quick.hpp"

namespace tilewise::kernel {
namespace {

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
