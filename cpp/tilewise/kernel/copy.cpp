// Whole lines of the target by stores that go past the caches, and the ends as usual.
//
//     to   | . . # # | # # # # | # # # # | # . . . |     #: bytes to copy, |: borders of cache lines
//            memcpy     lines that are stored     memcpy
//
// Every x86-64 processor has stores of 16 bytes that do this; transposition is as fast with them as with wider ones.
#include "tilewise/kernel/copy.hpp"

#include <cstring>

#if defined(__x86_64__)
#include <emmintrin.h>
#endif

namespace tilewise::kernel {

void copy_past_caches(std::byte* to, const std::byte* from, std::int64_t bytes) {
#if defined(__x86_64__)
    constexpr std::int64_t line = 64, ahead = 16 * line, worth = 32 * line;
    if (bytes >= worth) {
        const auto behind = static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(to) % line);
        std::int64_t at = (line - behind) % line;
        std::memcpy(to, from, static_cast<std::size_t>(at));
        for (; at + line <= bytes; at += line) {
            _mm_prefetch(reinterpret_cast<const char*>(from + at + ahead), _MM_HINT_T0);
            const auto* source = reinterpret_cast<const __m128i*>(from + at);
            auto* target = reinterpret_cast<__m128i*>(to + at);
            const __m128i a = _mm_loadu_si128(source), b = _mm_loadu_si128(source + 1), c = _mm_loadu_si128(source + 2),
                          d = _mm_loadu_si128(source + 3);
            _mm_stream_si128(target, a);
            _mm_stream_si128(target + 1, b);
            _mm_stream_si128(target + 2, c);
            _mm_stream_si128(target + 3, d);
        }
        _mm_sfence();
        std::memcpy(to + at, from + at, static_cast<std::size_t>(bytes - at));
        return;
    }
#endif
    std::memcpy(to, from, static_cast<std::size_t>(bytes));
}

}  // namespace tilewise::kernel
