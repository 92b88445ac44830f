// Norms and the product of two columns give the angle; two loops rotate them.
#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "tilewise/base/error.hpp"
#include "tilewise/kernel/factor/jacobi.hpp"
#include "tilewise/kernel/factor/lapack.hpp"
#include "tilewise/kernel/scalar.hpp"

namespace tilewise::kernel {
namespace {

/// p ← c·p − s·q, q ← s·p + c·q, c > 0; as what is added to each, so that small angles change no lengths by rounding c.
void rotate(double* p, double* q, std::int64_t rows, double c, double s, double /*way*/) {
    const double half = s / (1 + c);
    for (std::int64_t i = 0; i < rows; ++i) {
        const double from_p = p[i], from_q = q[i];
        p[i] = from_p - s * (from_q + half * from_p);
        q[i] = from_q + s * (from_p - half * from_q);
    }
}

/// The same of p and of q turned by the conjugate of `way`, |way| = 1: p ← c·p − s·way̅·q, q ← s·way·p + c·q.
void rotate(Complex* p, Complex* q, std::int64_t rows, double c, double s, Complex way) {
    const double half = s / (1 + c), re = way.real(), im = way.imag();
    double *p_reals = reals_of(p), *q_reals = reals_of(q);
    for (std::int64_t i = 0; i < 2 * rows; i += 2) {
        const double p_re = p_reals[i], p_im = p_reals[i + 1], q_re = q_reals[i], q_im = q_reals[i + 1];
        p_reals[i] = p_re - s * (re * q_re + im * q_im + half * p_re);
        p_reals[i + 1] = p_im - s * (re * q_im - im * q_re + half * p_im);
        q_reals[i] = q_re + s * (re * p_re - im * p_im - half * q_re);
        q_reals[i + 1] = q_im + s * (re * p_im + im * p_re - half * q_im);
    }
}

/// pᴴ·q.
double product_of(const double* p, const double* q, std::int64_t rows) {
    double sum = 0;
    for (std::int64_t i = 0; i < rows; ++i) {
        sum += p[i] * q[i];
    }
    return sum;
}
Complex product_of(const Complex* p, const Complex* q, std::int64_t rows) {
    const double *p_reals = reals_of(p), *q_reals = reals_of(q);
    double re = 0, im = 0;
    for (std::int64_t i = 0; i < 2 * rows; i += 2) {
        re += p_reals[i] * q_reals[i] + p_reals[i + 1] * q_reals[i + 1];
        im += p_reals[i] * q_reals[i + 1] - p_reals[i + 1] * q_reals[i];
    }
    return {re, im};
}

double scaled(double value, int exponent) { return std::ldexp(value, exponent); }
Complex scaled(const Complex& value, int exponent) {
    return {std::ldexp(value.real(), exponent), std::ldexp(value.imag(), exponent)};
}

/// The sign, of complex numbers z/|z|.
double direction_of(double value) { return std::copysign(1.0, value); }
Complex direction_of(const Complex& value) { return value / std::abs(value); }

/// The cosine of two columns of these norms, whatever their scale.
template <class T> T cosine_of(const T* p, const T* q, std::int64_t rows, double p_norm, double q_norm) {
    int p_exponent = 0, q_exponent = 0;
    const double p_scaled = std::frexp(p_norm, &p_exponent), q_scaled = std::frexp(q_norm, &q_exponent);
    if (std::abs(p_exponent) < 400 && std::abs(q_exponent) < 400) {
        return scaled(product_of(p, q, rows), -p_exponent - q_exponent) / (p_scaled * q_scaled);
    }
    T sum{};
    for (std::int64_t i = 0; i < rows; ++i) {
        sum += conjugate(scaled(p[i], -p_exponent)) * scaled(q[i], -q_exponent);
    }
    return sum / (p_scaled * q_scaled);
}

}  // namespace

template <class T>
PairOutcome rotate_columns(const ColumnPair<T>& x, const ColumnPair<T>& v, double tolerance, PairTally& tally) {
    const std::int64_t rows = x.rows(), v_rows = v.rows(), count = x.count();
    const bool with_v = v.count() > 0;
    PairOutcome outcome;
    bool any = false;
    const std::int64_t rotations = tally.rotations;
    std::vector<double> norms(static_cast<std::size_t>(count));
    const auto measure = [&](std::int64_t column) {
        const double norm = norms[static_cast<std::size_t>(column)] = norm_of(x.column(column), rows);
        if (!std::isfinite(norm)) {
            throw InternalError("a column became infinite or NaN during the sweeps");
        }
    };
    for (std::int64_t column = 0; column < count; ++column) {
        measure(column);
    }
    for (std::int64_t left = 0; left < count; ++left) {
        for (std::int64_t right = left + 1; right < count; ++right) {
            T *p = x.column(left), *q = x.column(right);
            double p_norm = norms[static_cast<std::size_t>(left)], q_norm = norms[static_cast<std::size_t>(right)];
            if (p_norm < least_norm || q_norm < least_norm) {
                continue;
            }
            const T product = cosine_of(p, q, rows, p_norm, q_norm);
            const double size = std::abs(product);
            outcome.off = std::max(outcome.off, size);
            outcome.cosines += size;
            const double whole = size * p_norm * q_norm;
            (left < x.left.count && right >= x.left.count ? outcome.across : outcome.within) += 2 * whole * whole;
            if (size < tolerance) {
                continue;
            }
            // Complex ones are turned by the way of their product as if it were real.
            T way = direction_of(product);
            double cosine = size;
            if constexpr (!is_complex_number<T>) {
                cosine = product;
            }
            // The larger one goes left, but only with a rotation: a column that changes places in a sweep misses those
            // that its new block has met.
            if (p_norm < q_norm) {
                std::swap_ranges(p, p + rows, q);
                std::swap(p_norm, q_norm);
                way = conjugate(way);
                if (with_v) {
                    std::swap_ranges(v.column(left), v.column(left) + v_rows, v.column(right));
                }
            }
            // tan 2θ = −1/ζ; where ζ is beyond its range, its inverse is the slope.
            const double ratio = q_norm / p_norm, zeta = (ratio - 1 / ratio) / (2 * cosine);
            const double slope = std::abs(zeta) > 1e100
                                     ? -cosine * ratio
                                     : std::copysign(1 / (std::abs(zeta) + std::sqrt(1 + zeta * zeta)), zeta);
            const double c = 1 / std::sqrt(1 + slope * slope), s = c * slope;
            rotate(p, q, rows, c, s, way);
            if (with_v) {
                rotate(v.column(left), v.column(right), v_rows, c, s, way);
            }
            measure(left);
            measure(right);
            ++tally.rotations;
            // One after another they disturb each other: only a sweep that finds all orthogonal is the last one.
            outcome.angles = std::numeric_limits<double>::infinity();
            any = true;
        }
    }
    tally.skipped += any ? 0 : 1;
    const auto height = static_cast<double>(rows), turned = static_cast<double>(tally.rotations - rotations),
               pairs = static_cast<double>(count * (count - 1)) / 2;
    // A product of each two columns; of each two that are turned six operations a row, and both norms anew.
    tell<T>({2 * height * pairs + (10 * height + 6 * static_cast<double>(v_rows)) * turned,
             static_cast<double>((rows + v_rows) * count)});
    return outcome;
}

TILEWISE_ROTATE(, double)
TILEWISE_ROTATE(, Complex)

}  // namespace tilewise::kernel
