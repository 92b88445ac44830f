// Copies bytes past the caches: what is written is not read into them first, and pushes nothing out of them.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tilewise::kernel {

/// Bytes in all from which copies do better past the caches: below, a cache holds both ends.
inline constexpr std::int64_t worth_copying_past_caches = std::int64_t{8} << 20;

/// As memcpy, its reference: any starts, no overlap. Short pieces, and those of a processor without such stores, are
/// copied by it. What another thread is told after the call, it sees.
void copy_past_caches(std::byte* to, const std::byte* from, std::int64_t bytes);

}  // namespace tilewise::kernel
