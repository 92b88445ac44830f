// Turns the bytes of numbers round: files of big-endian machines on little-endian ones, and the reverse.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tilewise::kernel {

/// Copies `count` items of `width` bytes (1, 2, 4 or 8), each with its bytes in reverse. Neither side need be aligned;
/// `to` may be `from`, else they must not overlap. Runs at the speed of memory.
void swap_bytes(const std::byte* from, std::byte* to, std::int64_t count, std::size_t width);

}  // namespace tilewise::kernel
