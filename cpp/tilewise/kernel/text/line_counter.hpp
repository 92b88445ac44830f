// Counts the lines of a text that hold data, at the speed of memory where lines are plain.
//
//     text      1.5,2⏎-3,4⏎# none⏎ 5,6⏎      a first character above '%' is a number's: counted without a branch
//     lines     x     x     ?      ?         blanks and marks of comments are looked at one by one
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>

namespace tilewise::kernel {

/// Takes a text in pieces that follow each other. A line holds data unless it is blank or, in a text with comments,
/// begins behind blanks with '#' or '%'.
class LineCounter {
public:
    /// `before` is the character before the text, which begins a line where that ends one.
    LineCounter(char before, bool tabs_are_fields, bool comments)
        : tabs_are_fields_(tabs_are_fields),
          comments_(comments),
          open_(before == '\n'),
          last_(before) {}

    void add(const char* at, std::int64_t size) {
        for (std::int64_t some = 0; size > 0; at += some, size -= some) {
            some = std::min(size, block);
            add_block(at, some);
            last_ = at[some - 1];
        }
    }

    std::int64_t count() const { return count_; }
    /// Whether the last line began with blanks, and may still hold data.
    bool is_undecided() const { return open_ && last_ != '\n'; }
    /// Whether a carriage return stands before something else than a line feed; at the very end none does.
    bool has_lone_return(bool at_end) const { return lone_return_ || (at_end && last_ == '\r'); }

private:
    static constexpr std::int64_t block = 1 << 12, chunk = 240;  // what is counted in a chunk fits into a byte
    static constexpr std::uint8_t last_mark = '%';               // blanks and marks come before digits and signs

    void add_block(const char* at, std::int64_t size) {
        std::int64_t found = 0;
        std::uint8_t other = 0, lone = static_cast<std::uint8_t>(last_ == '\r' && *at != '\n');
        if (open_) {
            const bool number = static_cast<std::uint8_t>(*at) > last_mark;
            found += static_cast<std::int64_t>(number);
            other = static_cast<std::uint8_t>(!number);
        }
        for (std::int64_t begin = 1; begin < size; begin += chunk) {
            const std::int64_t end = std::min(begin + chunk, size);
            std::uint8_t some = 0;
            for (std::int64_t i = begin; i < end; ++i) {
                const auto here = static_cast<std::uint8_t>(at[i]);
                const bool starts = at[i - 1] == '\n', number = here > last_mark;
                some = static_cast<std::uint8_t>(some + static_cast<std::uint8_t>(starts & number));
                other = static_cast<std::uint8_t>(other | static_cast<std::uint8_t>(starts & !number));
                lone =
                    static_cast<std::uint8_t>(lone | static_cast<std::uint8_t>((at[i - 1] == '\r') & (here != '\n')));
            }
            found += some;
        }
        lone_return_ |= lone != 0;
        if (other != 0) {
            add_any(at, at + size);
        } else {
            count_ += found;
            open_ = at[size - 1] == '\n';
        }
    }

    void add_any(const char* at, const char* end) {
        while (at < end) {
            if (open_) {
                const char c = *at++;
                if (c != '\n' && !is_blank(c)) {
                    count_ += static_cast<std::int64_t>(!comments_ || (c != '#' && c != '%'));
                    open_ = false;
                }
            } else {
                const void* found = std::memchr(at, '\n', static_cast<std::size_t>(end - at));
                open_ = found != nullptr;
                at = open_ ? static_cast<const char*>(found) + 1 : end;
            }
        }
    }

    bool is_blank(char c) const {
        return c == ' ' || c == '\r' || c == '\v' || c == '\f' || (c == '\t' && !tabs_are_fields_);
    }

    bool tabs_are_fields_, comments_, open_;
    char last_;
    bool lone_return_ = false;
    std::int64_t count_ = 0;
};

}  // namespace tilewise::kernel
