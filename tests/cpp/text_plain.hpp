// The plain way to read and write numbers as text, by the C library: what the fast one is compared with.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "tilewise/kernel/text/text.hpp"

namespace tilewise::kernel {

/// As `parse_text`, in memory of its own: the bytes of all numbers. Throws UsageError "line L: …" where `parse_text`
/// does.
std::vector<std::byte> plain_parse_text(std::string_view text, const TextStyle& style, Dtype dtype,
                                        std::int64_t first_line);

/// As `format_text`, but with an exponent wherever "%g" writes one. Needs the C locale's decimal point.
std::string plain_format_text(const std::byte* data, Dtype dtype, std::int64_t rows, const TextStyle& style,
                              bool pairs);

/// Significant digits of a number, without zeros before and behind them.
std::size_t digits_in(const std::string& text);

}  // namespace tilewise::kernel
