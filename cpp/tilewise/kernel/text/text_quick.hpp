// Lines of nothing but plain decimals, read without looking at each character: the usual line of any text.
//
//     text     -1.25,3,40.125⏎7,8.5,9⏎      64 characters at a time become bits
//     starts   x     x x      x x   x        behind a separator, a blank or a line end
//
// So each number is read without waiting for the end of the one before, and what stands between two of them is looked
// at when both are known. Behind a line that begins with a quote all numbers must be quoted, and quotes are gaps as
// well. A line with anything else in it (a missing number, a comment, a fault) is left to the reader that goes from
// character to character, which also finds the words for what is wrong.
#pragma once

#include <cstddef>
#include <cstdint>

#include "tilewise/base/dtype.hpp"

namespace tilewise::kernel {

struct QuickLines {
    const char *begin, *end;  ///< whole lines
    char separator, mark;     ///< of fields, and in decimals
    std::int64_t line_numbers;
    std::int64_t most;  ///< lines that there is room for
    std::byte* out;
};

/// How far quick reading got.
struct QuickEnd {
    const char* at;      ///< where a line begins that was not read, or the end
    std::int64_t lines;  ///< that were read
};

/// Reads lines up to the first that is not plain.
using QuickReader = QuickEnd (*)(const QuickLines& lines);

}  // namespace tilewise::kernel
