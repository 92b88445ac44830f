// Products of a large matrix with a few vectors, without packing it: each number is loaded once and multiplied with all
// vectors.
#pragma once

#include <cstdint>

namespace tilewise::kernel {

/// A matrix row by row or column by column: element (i, p) is data[i·row_step + p·column_step], and one of the steps is
/// 1.
template <class T> struct Strided {
    const T* data = nullptr;
    std::int64_t row_step = 0, column_step = 0;
};

/// So many numbers fill whole registers of any set: what `vectors` below is rounded up to.
template <class T> constexpr std::int64_t padded(std::int64_t vectors) {
    constexpr auto lanes = static_cast<std::int64_t>(64 / sizeof(T));
    return (vectors + lanes - 1) / lanes * lanes;
}

/// The kernel of one instruction set, with the arguments of `multiply_few`.
template <class T> using FewVectors = void (*)(std::int64_t m, std::int64_t k, std::int64_t vectors,
                                               const Strided<T>& a, const T* b, T* c);

/// C (m×vectors) += A (m×k) · B (k×vectors), B and C row by row without gaps, `vectors` as `padded` has it; float or
/// double. One thread; 2·m·k·vectors operations.
template <class T>
void multiply_few(std::int64_t m, std::int64_t k, std::int64_t vectors, const Strided<T>& a, const T* b, T* c);

}  // namespace tilewise::kernel
