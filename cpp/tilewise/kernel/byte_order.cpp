// One loop for each width, which the compiler turns into shuffles of whole vectors.
#include "tilewise/kernel/byte_order.hpp"

#include <cstring>

#include "tilewise/base/clones.hpp"
#include "tilewise/kernel/file_type.hpp"

namespace tilewise::kernel {
namespace {

TILEWISE_CLONES void swap_two(const std::byte* from, std::byte* to, std::int64_t count) {
#pragma omp simd
    for (std::int64_t i = 0; i < count; ++i) {
        store(to, i, __builtin_bswap16(load<std::uint16_t>(from, i)));
    }
}

TILEWISE_CLONES void swap_four(const std::byte* from, std::byte* to, std::int64_t count) {
#pragma omp simd
    for (std::int64_t i = 0; i < count; ++i) {
        store(to, i, __builtin_bswap32(load<std::uint32_t>(from, i)));
    }
}

TILEWISE_CLONES void swap_eight(const std::byte* from, std::byte* to, std::int64_t count) {
#pragma omp simd
    for (std::int64_t i = 0; i < count; ++i) {
        store(to, i, __builtin_bswap64(load<std::uint64_t>(from, i)));
    }
}

}  // namespace

void swap_bytes(const std::byte* from, std::byte* to, std::int64_t count, std::size_t width) {
    switch (width) {
        case 2:
            return swap_two(from, to, count);
        case 4:
            return swap_four(from, to, count);
        case 8:
            return swap_eight(from, to, count);
        default:
            if (from != to && count > 0) {
                std::memcpy(to, from, static_cast<std::size_t>(count) * width);
            }
    }
}

}  // namespace tilewise::kernel
