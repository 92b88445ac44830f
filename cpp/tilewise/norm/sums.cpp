// Chunks that stay in the first-level cache: converted, made magnitudes, then added to everything at once.
#include "tilewise/norm/sums.hpp"

#include <algorithm>
#include <cmath>

#include "tilewise/kernel/codec/convert.hpp"
#include "tilewise/kernel/isa/versions.hpp"

namespace tilewise::norm {
namespace {

constexpr std::int64_t chunk = 1024;
// Between these no square overflows, not even 2⁶⁴ of them together, and none is lost that counts beside the largest.
constexpr double low = 0x1p-400, high = 0x1p400;
constexpr double scale = 0x1p600;

using Chunk = std::array<double, chunk>;
using Pairs = std::array<double, 2 * chunk>;  // real and imaginary parts

struct Totals {
    double sum = 0, square = 0, largest = 0;
};

/// Of real numbers `x`, which become magnitudes.
TILEWISE_INLINE Totals add_chunk(double* __restrict x, double* __restrict columns, std::int64_t count) {
    double sum = 0, square = 0, largest = 0;
#pragma omp simd reduction(+ : sum, square) reduction(max : largest)
    for (std::int64_t i = 0; i < count; ++i) {
        const double value = std::fabs(x[i]);
        x[i] = value;
        columns[i] += value;
        sum += value;
        square += value * value;
        largest = value > largest ? value : largest;
    }
    return {sum, square, largest};
}

/// Magnitudes of pairs `z` by the plain formula; returns the largest part.
TILEWISE_INLINE double plain_magnitudes(const double* __restrict z, double* __restrict x, std::int64_t count) {
    double largest = 0;
#pragma omp simd reduction(max : largest)
    for (std::int64_t i = 0; i < count; ++i) {
        const double real = std::fabs(z[2 * i]), imaginary = std::fabs(z[2 * i + 1]);
        largest = real > largest ? real : largest;
        largest = imaginary > largest ? imaginary : largest;
        x[i] = std::sqrt(real * real + imaginary * imaginary);
    }
    return largest;
}

void make_magnitudes(const Pairs& z, Chunk& x, std::int64_t count) {
    const double largest = kernel::in_versions<plain_magnitudes>(z.data(), x.data(), count);
    if (largest < low || largest > high) {
        for (std::size_t i = 0; i < static_cast<std::size_t>(count); ++i) {
            x[i] = std::hypot(z[2 * i], z[2 * i + 1]);
        }
    }
}

double square_sum(const Chunk& x, std::int64_t count, double factor) {
    double sum = 0;
    for (std::int64_t i = 0; i < count; ++i) {
        const double value = x[static_cast<std::size_t>(i)] * factor;
        sum += value * value;
    }
    return sum;
}

}  // namespace

double Sums::add(const std::byte* row, std::int64_t count, Dtype dtype, bool swap_bytes, double* columns) {
    const bool pairs = is_complex(dtype);
    Chunk x;
    Pairs z;
    double sum = 0;
    for (std::int64_t begin = 0; begin < count; begin += chunk) {
        const std::int64_t here = std::min(chunk, count - begin);
        auto* const to = pairs ? reinterpret_cast<std::byte*>(z.data()) : reinterpret_cast<std::byte*>(x.data());
        kernel::convert(row + begin * static_cast<std::int64_t>(size_of(dtype)), dtype, swap_bytes, to,
                        pairs ? Dtype::complex128 : Dtype::float64, false, here);
        if (pairs) {
            make_magnitudes(z, x, here);
        }
        const Totals totals = kernel::in_versions<add_chunk>(x.data(), columns + begin, here);
        sum += totals.sum;
        largest = std::max(largest, totals.largest);
        if (totals.largest > high) {
            squares[1] += square_sum(x, here, 1 / scale);
        } else if (totals.largest < low) {
            squares[2] += square_sum(x, here, scale);
        } else {
            squares[0] += totals.square;
        }
        if (!std::isfinite(totals.sum)) {
            nans += std::count_if(x.begin(), x.begin() + here, [](double value) { return std::isnan(value); });
            infinities += std::count_if(x.begin(), x.begin() + here, [](double value) { return std::isinf(value); });
        }
    }
    return sum;
}

Sums& Sums::operator+=(const Sums& other) {
    for (std::size_t kind = 0; kind < squares.size(); ++kind) {
        squares[kind] += other.squares[kind];
    }
    largest = std::max(largest, other.largest);
    nans += other.nans;
    infinities += other.infinities;
    return *this;
}

double Sums::root() const {
    const auto [medium, large, small] = squares;
    if (large > 0) {
        return std::sqrt(large + medium / scale / scale) * scale;
    }
    return medium > 0 ? std::sqrt(medium + small / scale / scale) : std::sqrt(small) / scale;
}

}  // namespace tilewise::norm
