// One loop for each width, which the compiler turns into shuffles of whole vectors.
#include "tilewise/kernel/codec/byte_order.hpp"

#include <cstring>

#include "tilewise/kernel/file_type.hpp"
#include "tilewise/kernel/versions.hpp"

namespace tilewise::kernel {
namespace {

template <class Word> Word swapped(Word word) {
    if constexpr (sizeof(Word) == 2) {
        return __builtin_bswap16(word);
    } else if constexpr (sizeof(Word) == 4) {
        return __builtin_bswap32(word);
    } else {
        return __builtin_bswap64(word);
    }
}

template <class Word> TILEWISE_INLINE void swap_words(const std::byte* from, std::byte* to, std::int64_t count) {
#pragma omp simd
    for (std::int64_t i = 0; i < count; ++i) {
        store(to, i, swapped(load<Word>(from, i)));
    }
}

}  // namespace

void swap_bytes(const std::byte* from, std::byte* to, std::int64_t count, std::size_t width) {
    switch (width) {
        case 2:
            return in_versions<swap_words<std::uint16_t>>(from, to, count);
        case 4:
            return in_versions<swap_words<std::uint32_t>>(from, to, count);
        case 8:
            return in_versions<swap_words<std::uint64_t>>(from, to, count);
        default:
            if (from != to && count > 0) {
                std::memcpy(to, from, static_cast<std::size_t>(count) * width);
            }
    }
}

}  // namespace tilewise::kernel
