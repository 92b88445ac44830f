// Matrices as text: counts and parses lines of numbers, and writes them, without knowing where the characters come
// from.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "tilewise/kernel/text/number.hpp"

namespace tilewise::kernel {

/// How numbers stand in a line. In a data line, a comment is a '#' behind a blank and what follows; a line ends with
/// "\n", "\r\n" or the file. Form feeds and vertical tabs are blanks. A number may stand in double quotes.
struct TextStyle {
    /// ' ': any run of blanks or tabs. Another, as ',' or '\t': exactly one between two numbers, blanks around it
    /// allowed.
    char separator = ' ';
    /// Numbers in each data line; with `pairs` the real and the imaginary part count as one each.
    std::int64_t line_numbers = 0;
    /// Read a complex number as two, "re im", as MatrixMarket has them; else as (re+imj). Means nothing for other
    /// dtypes.
    bool pairs = false;
    char decimal = '.';  ///< or ','
    /// Words in the place of a number that is missing, which is read as NaN; with any, an empty field is one too. NaN
    /// is written as the first.
    std::vector<std::string> missing = {};
    bool hash_comments = true;  ///< else '#' begins none, as in MatrixMarket
    /// The fields of a line that are read, from 0 and ascending; none: all of them. The others may hold anything, and
    /// no character begins a comment.
    std::vector<std::int64_t> taken = {};

    /// Numbers that are read of a data line.
    std::int64_t line_taken() const { return taken.empty() ? line_numbers : static_cast<std::int64_t>(taken.size()); }
    bool comments() const { return taken.empty(); }
    /// Whether a line of tabs alone has fields, which are empty.
    bool tabs_are_fields() const { return separator == '\t' && !missing.empty(); }
};

/// What was lost of the numbers of a text; both counts are of numbers, and a place is that of the first.
struct Losses {
    struct Kind {
        std::int64_t count = 0;
        const char* first = nullptr;  ///< where the number begins
        std::int64_t column = 0;      ///< its field in the line, from 1
    };
    Kind rounded, overflow;

    bool any() const { return rounded.count + overflow.count > 0; }
};

/// Throws UsageError where a line has room for half a complex number.
void check_pairs(const TextStyle& style);

/// Data lines in [begin, end), which begins a line: lines that are neither blank nor a comment ('#' or '%' first, after
/// blanks). As fast as memchr where lines are long.
std::int64_t count_lines(const char* begin, const char* end, const TextStyle& style = {});

/// Parses the numbers of all data lines in [begin, end), which begins a line and ends after a newline or at the end of
/// the file, into `out`, in order; `out` has room for `capacity` numbers of `dtype` and need not be aligned, and where
/// it is null numbers are only looked at. Returns how many numbers were parsed; `losses` gets what was lost of them.
///
/// Throws UsageError "line L, column C: …", L counting all lines from `first_line` and C the fields of the line from 1,
/// for what is no number, an empty field, a missing number or a fraction where integers are wanted, and an integer that
/// `dtype` cannot hold; "line L: …" for a line with more or fewer numbers than `style.line_numbers`, and for more
/// numbers than `capacity`.
std::int64_t parse_text(const char* begin, const char* end, const TextStyle& style, Dtype dtype, std::byte* out,
                        std::int64_t capacity, std::int64_t first_line, Losses* losses = nullptr);

/// Upper bound of the characters that `format_text` writes for one number of `dtype` with the separator or newline
/// behind it.
constexpr std::size_t text_width(Dtype dtype) { return print_width(dtype) + 1; }
/// The same where a missing number is a word of `style`.
std::size_t text_width(Dtype dtype, const TextStyle& style);

/// Writes `rows` lines of `style.line_numbers` numbers each, every number as the shortest decimal that reads back as
/// exactly the same; complex numbers as (a+bj), or as two numbers where `pairs` says so (`style.pairs` is for reading).
/// Returns the end. `data` need not be aligned; `out` has room for `text_width` characters a number, and for the
/// newline of rows without any. Throws UsageError for pairs in lines of an odd length.
char* format_text(const std::byte* data, Dtype dtype, std::int64_t rows, const TextStyle& style, bool pairs, char* out);

}  // namespace tilewise::kernel
