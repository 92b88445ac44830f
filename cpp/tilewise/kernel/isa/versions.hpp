// Plain loops in a version for each instruction set: the compiler makes them, the backend in use says which is called.
//
//     TILEWISE_INLINE void add(const double* a, double* b, std::int64_t n) { for (…) b[i] += a[i]; }
//     in_versions<add>(a, b, n);      arguments go by value: a store could change what lies behind a reference
//
// Loops over vectors of a fixed width have a version of their own for each width, since the compiler takes wider ones
// than the registers apart through memory:
//
//     in_widths<add<16>, add<32>, add<64>>(a, b, n);
//
// TILEWISE_INLINE is needed: what is not inlined has the instructions that the whole program may use.
#pragma once

#include "tilewise/base/inline.hpp"
#include "tilewise/kernel/isa/backend.hpp"

namespace tilewise::kernel {

// Sanitizers slow the compiler down, and what they look for is in every version.
#if defined(__x86_64__) && !defined(TILEWISE_SANITIZED)
#define TILEWISE_VERSIONS
#define TILEWISE_AVX2 "avx2,bmi,bmi2,f16c,fma,lzcnt,movbe,popcnt"
template <auto loop, class... Arguments>
__attribute__((target(TILEWISE_AVX2), noinline)) auto in_avx2(Arguments... arguments) {
    return loop(arguments...);
}
template <auto loop, class... Arguments>
__attribute__((target(TILEWISE_AVX2 ",avx512f,avx512bw,avx512cd,avx512dq,avx512vl"), noinline)) auto in_avx512(
    Arguments... arguments) {
    return loop(arguments...);
}
#undef TILEWISE_AVX2
#endif

/// The version for registers of 16, 32 or 64 bytes.
template <auto narrow, auto wide, auto widest, class... Arguments> auto in_widths(Arguments... arguments) {
#if defined(TILEWISE_VERSIONS)
    switch (backend().versions) {
        case Instructions::avx512:
            return in_avx512<widest>(arguments...);
        case Instructions::avx2:
            return in_avx2<wide>(arguments...);
        case Instructions::baseline:
            break;
    }
#endif
    return narrow(arguments...);
}

template <auto loop, class... Arguments> auto in_versions(Arguments... arguments) {
    return in_widths<loop, loop, loop>(arguments...);
}

}  // namespace tilewise::kernel
