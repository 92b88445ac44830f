// Reads and writes one number as text, of any type that files hold.
#pragma once

#include <complex>
#include <cstddef>
#include <cstdint>

#include "tilewise/kernel/file_type.hpp"

namespace tilewise::kernel {

enum class Fault : std::uint8_t { none, no_number, no_whole_number, beyond_type };

/// What a number lost on its way into a float: the last digits of an integer, or all of a magnitude beyond the type.
enum class Loss : std::uint8_t { none, rounded, overflow };

/// What was found: the first character behind the number, whatever it is, what is wrong with it as a number of its
/// type, and what a float64, or a part of a complex128, could not hold of it.
struct Scan {
    const char* end;
    Fault fault = Fault::none;
    Loss loss = Loss::none;

    /// Whether there is nothing to say of it.
    bool is_plain() const { return (static_cast<unsigned>(fault) | static_cast<unsigned>(loss)) == 0; }
};

/// Reads the number that begins at `at`: decimal, with an optional sign, fraction and exponent (`e`, or Fortran's `d`),
/// or nan, inf and infinity in any case. Rounds to nearest; what is too large becomes infinity, what is too small a
/// subnormal or zero. A float16 is rounded from the nearest double.
Scan scan(const char* at, const char* end, double& value);
Scan scan(const char* at, const char* end, float& value);
Scan scan(const char* at, const char* end, Half& value);
/// Integers may have a fraction of zeros and an exponent (`3.0`, `1e3`); they are exact to the last digit.
Scan scan(const char* at, const char* end, std::int8_t& value);
Scan scan(const char* at, const char* end, std::int16_t& value);
Scan scan(const char* at, const char* end, std::int32_t& value);
Scan scan(const char* at, const char* end, std::int64_t& value);
Scan scan(const char* at, const char* end, std::uint8_t& value);
Scan scan(const char* at, const char* end, std::uint16_t& value);
Scan scan(const char* at, const char* end, std::uint32_t& value);
Scan scan(const char* at, const char* end, std::uint64_t& value);
/// Complex numbers as `(1+2j)`, `1+2j`, `3`, `2j`, and `(1+-2j)`, which old versions of numpy wrote.
Scan scan(const char* at, const char* end, std::complex<float>& value);
Scan scan(const char* at, const char* end, std::complex<double>& value);

/// The most characters that `print` writes for one number: the largest is complex128 with both parts like
/// -2.2250738585072014e-308.
constexpr std::size_t print_width(Dtype dtype) {
    switch (dtype) {
        case Dtype::float16:
            return 11;  // -6.1035e-05
        case Dtype::float32:
            return 15;  // -1.17549435e-38
        case Dtype::float64:
            return 24;
        case Dtype::complex64:
            return 2 * 15 + 3;
        case Dtype::complex128:
            return 2 * 24 + 3;
        default:
            return 20;  // -9223372036854775808
    }
}

/// Writes the shortest decimal that reads back as exactly the same number, integers plainly, complex numbers as (a+bj);
/// returns the end. `out` has room for `print_width` characters.
char* print(double value, char* out);
char* print(float value, char* out);
char* print(Half value, char* out);
char* print(std::int64_t value, char* out);
char* print(std::uint64_t value, char* out);
char* print(const std::complex<float>& value, char* out);
char* print(const std::complex<double>& value, char* out);

}  // namespace tilewise::kernel
