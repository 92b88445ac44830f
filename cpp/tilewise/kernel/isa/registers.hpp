// Registers as vectors of numbers, and the one operation on them that each instruction set has in a form of its own.
//
// In an unnamed namespace, like all that is compiled for several instruction sets: the linker must not take the code of
// one for another.
#pragma once

#include <cstddef>
#include <cstdint>

#if defined(__x86_64__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

namespace tilewise::kernel {
namespace {

/// A register of `width` bytes; `loose`: the same in memory, wherever it lies among numbers.
template <class T, std::size_t width> struct Vector {
    typedef T type __attribute__((vector_size(width)));
    typedef T loose __attribute__((vector_size(width), aligned(sizeof(T)), may_alias));
};

template <class T, std::size_t width> [[gnu::always_inline]] inline typename Vector<T, width>::type load(
    const T* from) {
    return *reinterpret_cast<const typename Vector<T, width>::loose*>(from);
}

// a·b + c, rounded once where the set can, and only where it is asked for: files compiled for several sets have
// -ffp-contract=off. The plain one is for single whole numbers and registers of them, and for sets without it.
template <class V> [[gnu::always_inline]] inline V multiply_add(V a, V b, V c) { return a * b + c; }
#if defined(__FMA__)
[[gnu::always_inline]] inline float multiply_add(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
[[gnu::always_inline]] inline double multiply_add(double a, double b, double c) { return __builtin_fma(a, b, c); }
using Floats32 = Vector<float, 32>::type;
using Doubles32 = Vector<double, 32>::type;
[[gnu::always_inline]] inline Floats32 multiply_add(Floats32 a, Floats32 b, Floats32 c) {
    return _mm256_fmadd_ps(a, b, c);
}
[[gnu::always_inline]] inline Doubles32 multiply_add(Doubles32 a, Doubles32 b, Doubles32 c) {
    return _mm256_fmadd_pd(a, b, c);
}
#endif
#if defined(__AVX512F__)
using Floats64 = Vector<float, 64>::type;
using Doubles64 = Vector<double, 64>::type;
[[gnu::always_inline]] inline Floats64 multiply_add(Floats64 a, Floats64 b, Floats64 c) {
    return _mm512_fmadd_ps(a, b, c);
}
[[gnu::always_inline]] inline Doubles64 multiply_add(Doubles64 a, Doubles64 b, Doubles64 c) {
    return _mm512_fmadd_pd(a, b, c);
}
#endif
#if defined(__aarch64__)
using Floats16 = Vector<float, 16>::type;
using Doubles16 = Vector<double, 16>::type;
[[gnu::always_inline]] inline float multiply_add(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
[[gnu::always_inline]] inline double multiply_add(double a, double b, double c) { return __builtin_fma(a, b, c); }
[[gnu::always_inline]] inline Floats16 multiply_add(Floats16 a, Floats16 b, Floats16 c) {
    return (Floats16)vfmaq_f32((float32x4_t)c, (float32x4_t)a, (float32x4_t)b);
}
[[gnu::always_inline]] inline Doubles16 multiply_add(Doubles16 a, Doubles16 b, Doubles16 c) {
    return (Doubles16)vfmaq_f64((float64x2_t)c, (float64x2_t)a, (float64x2_t)b);
}
#endif

/// Writes a register to `to`, a multiple of its width, past the caches where the set can. An `_mm_sfence` comes after
/// the last.
template <class V> [[gnu::always_inline]] inline void stream(void* to, V v) {
#if defined(__AVX512F__)
    if constexpr (sizeof(V) == 64) {
        _mm512_stream_si512(static_cast<__m512i*>(to), (__m512i)v);
        return;
    }
#endif
#if defined(__AVX__)
    if constexpr (sizeof(V) == 32) {
        _mm256_stream_si256(static_cast<__m256i*>(to), (__m256i)v);
        return;
    }
#endif
#if defined(__x86_64__)
    if constexpr (sizeof(V) == 16) {
        _mm_stream_si128(static_cast<__m128i*>(to), (__m128i)v);
        return;
    }
#endif
    *static_cast<V*>(to) = v;
}

/// The numbers at `from` in double precision, a register of them.
template <std::size_t width> [[gnu::always_inline]] inline typename Vector<double, width>::type load_widened(
    const float* from) {
    double numbers[width / sizeof(double)];
    for (std::size_t lane = 0; lane < width / sizeof(double); ++lane) {
        numbers[lane] = static_cast<double>(from[lane]);
    }
    return load<double, width>(numbers);
}
#if defined(__AVX2__)  // one instruction, which GCC 12 does not find
template <> [[gnu::always_inline]] inline Vector<double, 32>::type load_widened<32>(const float* from) {
    return _mm256_cvtps_pd(_mm_loadu_ps(from));
}
#endif
#if defined(__AVX512F__)
template <> [[gnu::always_inline]] inline Vector<double, 64>::type load_widened<64>(const float* from) {
    return _mm512_maskz_cvtps_pd(0xff, _mm256_loadu_ps(from));  // without a false alarm of GCC 12
}
#endif

/// The same number everywhere. Less nothing, so that it is one broadcast: 0 + number would be an addition, for the sake
/// of −0.
template <class V, class T> [[gnu::always_inline]] inline V everywhere(T number) { return number - V{}; }

}  // namespace
}  // namespace tilewise::kernel
