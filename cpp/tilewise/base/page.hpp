// The one page size: the unit in which the system maps memory and files, and that O_DIRECT wants.
#pragma once

#include <cstdint>

namespace tilewise {

inline constexpr std::int64_t page = 4096;

constexpr std::int64_t rounded_to_pages(std::int64_t bytes) { return (bytes + page - 1) / page * page; }

}  // namespace tilewise
