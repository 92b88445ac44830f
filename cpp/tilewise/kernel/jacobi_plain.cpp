// Norms and the product of two columns give the angle; two loops rotate them.
#include "tilewise/kernel/jacobi_plain.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "tilewise/base/error.hpp"

namespace tilewise::kernel {
namespace {

/// p ← c·p − s·q, q ← s·p + c·q, c > 0; as what is added to each, so that small angles change no lengths by rounding c.
void rotate(double* p, double* q, std::int64_t rows, double c, double s) {
    const double half = s / (1 + c);
    for (std::int64_t i = 0; i < rows; ++i) {
        const double from_p = p[i], from_q = q[i];
        p[i] = from_p - s * (from_q + half * from_p);
        q[i] = from_q + s * (from_p - half * from_q);
    }
}

/// The cosine of two columns of these norms, whatever their scale.
double cosine_of(const double* p, const double* q, std::int64_t rows, double p_norm, double q_norm) {
    int p_exponent = 0, q_exponent = 0;
    const double p_scaled = std::frexp(p_norm, &p_exponent), q_scaled = std::frexp(q_norm, &q_exponent);
    double sum = 0;
    if (std::abs(p_exponent) < 400 && std::abs(q_exponent) < 400) {
        for (std::int64_t i = 0; i < rows; ++i) {
            sum += p[i] * q[i];
        }
        return std::ldexp(sum, -p_exponent - q_exponent) / (p_scaled * q_scaled);
    }
    for (std::int64_t i = 0; i < rows; ++i) {
        sum += std::ldexp(p[i], -p_exponent) * std::ldexp(q[i], -q_exponent);
    }
    return sum / (p_scaled * q_scaled);
}

}  // namespace

PairOutcome rotate_columns(const ColumnPair& x, const ColumnPair& v, double tolerance, PairTally& tally) {
    const std::int64_t rows = x.rows(), v_rows = v.rows(), count = x.count();
    const bool with_v = v.count() > 0;
    PairOutcome outcome;
    bool any = false;
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
            double *p = x.column(left), *q = x.column(right);
            double p_norm = norms[static_cast<std::size_t>(left)], q_norm = norms[static_cast<std::size_t>(right)];
            if (p_norm < least_norm || q_norm < least_norm) {
                continue;
            }
            const double cosine = cosine_of(p, q, rows, p_norm, q_norm), size = std::abs(cosine);
            outcome.off = std::max(outcome.off, size);
            outcome.cosines += size;
            if (size < tolerance) {
                continue;
            }
            // The larger one goes left, but only with a rotation: a column that changes places in a sweep misses those
            // that its new block has met.
            if (p_norm < q_norm) {
                std::swap_ranges(p, p + rows, q);
                std::swap(p_norm, q_norm);
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
            rotate(p, q, rows, c, s);
            if (with_v) {
                rotate(v.column(left), v.column(right), v_rows, c, s);
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
    return outcome;
}

}  // namespace tilewise::kernel
