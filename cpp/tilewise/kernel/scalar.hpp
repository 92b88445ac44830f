// Real and complex numbers alike: what templates over both ask of a number.
#pragma once

#include <complex>
#include <cstdint>
#include <type_traits>

namespace tilewise::kernel {

using Complex = std::complex<double>;

template <class T> inline constexpr bool is_complex_number = !std::is_floating_point_v<T>;
/// Reals that a number is made of.
template <class T> inline constexpr std::int64_t parts_of = is_complex_number<T> ? 2 : 1;

inline double conjugate(double value) { return value; }
inline Complex conjugate(const Complex& value) { return std::conj(value); }
inline double real_part(double value) { return value; }
inline double real_part(const Complex& value) { return value.real(); }
/// |z|².
inline double square_of(double value) { return value * value; }
inline double square_of(const Complex& value) { return value.real() * value.real() + value.imag() * value.imag(); }

/// Numbers as the reals that they are made of.
inline double* reals_of(double* numbers) { return numbers; }
inline const double* reals_of(const double* numbers) { return numbers; }
inline double* reals_of(Complex* numbers) { return reinterpret_cast<double*>(numbers); }
inline const double* reals_of(const Complex* numbers) { return reinterpret_cast<const double*>(numbers); }

/// Conjugates them; real ones stay.
template <class T> void conjugate_all(T* numbers, std::int64_t count) {
    if constexpr (is_complex_number<T>) {
        for (std::int64_t i = 0; i < count; ++i) {
            numbers[i] = std::conj(numbers[i]);
        }
    }
}

}  // namespace tilewise::kernel
