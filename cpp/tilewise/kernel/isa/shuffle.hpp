// Vectors put together from the elements of two: __builtin_shufflevector, and what does its work where GCC has none
// (before 12).
//
// In an unnamed namespace, like all that is compiled for several instruction sets: the linker must not take the code of
// one for another.
#pragma once

#include <cstddef>
#include <cstdint>

#if defined(__has_builtin)
#if __has_builtin(__builtin_shufflevector)
#define TILEWISE_SHUFFLEVECTOR
#endif
#endif
#if !defined(TILEWISE_SHUFFLEVECTOR) && defined(__AVX2__)
#include <immintrin.h>
#endif

namespace tilewise::kernel {
namespace {

template <std::size_t item> struct Unsigned {};
template <> struct Unsigned<1> {
    using type = std::uint8_t;
};
template <> struct Unsigned<2> {
    using type = std::uint16_t;
};
template <> struct Unsigned<4> {
    using type = std::uint32_t;
};
template <> struct Unsigned<8> {
    using type = std::uint64_t;
};

/// `width` bytes of whole numbers of `item` bytes.
template <std::size_t width, std::size_t item> struct Items {
    typedef typename Unsigned<item>::type type __attribute__((vector_size(width)));
};

template <std::size_t... position> struct Positions {};
template <std::size_t count, std::size_t... position> struct UpTo : UpTo<count - 1, count - 1, position...> {};
template <std::size_t... position> struct UpTo<0, position...> {
    using type = Positions<position...>;
};

/// Elements of a and b, which are numbered through.
template <class V, std::size_t... position>
[[gnu::always_inline]] inline V shuffled(const V& a, const V& b, Positions<position...>) {
#if defined(TILEWISE_SHUFFLEVECTOR)
    return __builtin_shufflevector(a, b, position...);
#else
    using Number = typename Unsigned<sizeof(a[0])>::type;
    using Mask = typename Items<sizeof(V), sizeof(a[0])>::type;
    return __builtin_shuffle(a, b, Mask{static_cast<Number>(position)...});
#endif
}

/// The elements of `low`, then those of `high`: two vectors of 16 or 32 bytes in one of twice as many.
template <class Whole, class Half> [[gnu::always_inline]] inline Whole joined(const Half& low, const Half& high) {
    static_assert(sizeof(Whole) == 2 * sizeof(Half) && sizeof(low[0]) == 8);
#if defined(TILEWISE_SHUFFLEVECTOR)
    if constexpr (sizeof(Whole) == 32) {
        return __builtin_shufflevector(low, high, 0, 1, 2, 3);
    } else {
        return __builtin_shufflevector(low, high, 0, 1, 2, 3, 4, 5, 6, 7);
    }
#else
    // Spelt out by elements, GCC 11 loads each by itself where the halves come from memory.
    if constexpr (sizeof(Whole) == 32) {
#if defined(__AVX2__)
        return (Whole)_mm256_inserti128_si256(_mm256_castsi128_si256((__m128i)low), (__m128i)high, 1);
#else
        return Whole{low[0], low[1], high[0], high[1]};
#endif
    } else {
#if defined(__AVX512F__)
        return (Whole)_mm512_inserti64x4(_mm512_castsi256_si512((__m256i)low), (__m256i)high, 1);
#else
        return Whole{low[0], low[1], low[2], low[3], high[0], high[1], high[2], high[3]};
#endif
    }
#endif
}

}  // namespace
}  // namespace tilewise::kernel
