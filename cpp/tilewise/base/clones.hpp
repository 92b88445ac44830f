// One macro: compile a function for several instruction sets and choose among them when the program starts.
#pragma once

#if defined(__x86_64__) && defined(__gnu_linux__) && defined(__GNUC__) && !defined(__clang__) && \
    !defined(TILEWISE_SANITIZED)
#define TILEWISE_CLONES __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define TILEWISE_CLONES  // 64-bit Arm has one vector set that all have; sanitizers do not get along with the resolver
#endif

/// For the template that does the work: so that it takes the instruction set of the clone that calls it.
#define TILEWISE_INLINE [[gnu::always_inline]] inline
