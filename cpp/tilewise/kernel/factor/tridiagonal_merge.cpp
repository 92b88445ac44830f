// Roots are LAPACK's; all else is sums and products over what is left of D.
#include "tilewise/kernel/factor/tridiagonal_merge.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "tilewise/kernel/factor/lapack_number.hpp"

namespace tilewise::kernel {
namespace {

std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }

/// Of two values, where LAPACK has no distances to tell: each is a root of a quadratic of its distance from either,
/// and the sign of its linear term says how not to cancel.
Root root_of_two(std::int64_t index, const std::vector<double>& poles, const std::vector<double>& z, double beside) {
    const double gap = poles[1] - poles[0], sum = beside * (z[0] * z[0] + z[1] * z[1]);
    if (index == 0) {  // t² − (gap + sum)·t + |b|·z₁²·gap = 0, the smaller one, from the lower
        const double b = gap + sum, c = beside * z[0] * z[0] * gap;
        const double apart = gap - beside * (z[0] * z[0] - z[1] * z[1]);
        const double root = std::hypot(apart, 2 * beside * z[0] * z[1]);  // of b² − 4c
        return {0, 2 * c / (b + root)};
    }
    // t² + (gap − sum)·t − |b|·z₂²·gap = 0, the positive one, from the upper
    const double b = gap - sum, c = beside * z[1] * z[1] * gap, root = std::sqrt(b * b + 4 * c);
    return {1, b > 0 ? 2 * c / (b + root) : (root - b) / 2};
}

}  // namespace

TridiagonalMerge::TridiagonalMerge(std::vector<double> d, std::vector<double> z, double beside)
    : d_(std::move(d)),
      beside_(2 * beside) {
    for (double& value : z) {  // two rows of length 1
        value *= std::sqrt(0.5);
    }
    deflate(std::move(z));
}

void TridiagonalMerge::deflate(std::vector<double> z) {
    double largest = 0;
    for (std::size_t i = 0; i < d_.size(); ++i) {
        largest = std::max({largest, std::abs(d_[i]), std::abs(z[i])});
    }
    const double tolerance = 8 * std::numeric_limits<double>::epsilon() * largest;
    std::vector<std::int64_t> by_size(d_.size());
    std::iota(by_size.begin(), by_size.end(), 0);
    std::stable_sort(by_size.begin(), by_size.end(), [&](auto i, auto j) { return d_[at(i)] < d_[at(j)]; });
    for (const std::int64_t i : by_size) {
        if (beside_ * std::abs(z[at(i)]) <= tolerance) {
            out_.push_back(i);
            continue;
        }
        if (!kept_.empty()) {
            // Turned so that one has all of z, they would be coupled by c·s·(dᵢ − dⱼ), which is left out where it is
            // rounding.
            const std::int64_t before = kept_.back();
            const double both = std::hypot(z[at(i)], z[at(before)]), c = z[at(i)] / both, s = z[at(before)] / both,
                         lower = d_[at(before)], upper = d_[at(i)];
            if (std::abs(c * s * (upper - lower)) <= tolerance) {
                rotations_.push_back({before, i, c, s});
                z[at(i)] = both;
                d_[at(before)] = c * c * lower + s * s * upper;
                d_[at(i)] = s * s * lower + c * c * upper;
                out_.push_back(before);
                kept_.back() = i;
                continue;
            }
        }
        kept_.push_back(i);
    }
    for (const std::int64_t i : kept_) {
        poles_.push_back(d_[at(i)]);
        z_.push_back(z[at(i)]);
    }
}

/// Five steps of some ten operations for each of D (R.-C. Li, "Solving secular equations stably and efficiently",
/// LAPACK Working Note 89).
Root TridiagonalMerge::root(std::int64_t index) const {
    tell<double>({50 * static_cast<double>(roots()), 0});
    if (roots() == 1) {
        return {0, beside_ * z_[0] * z_[0]};
    }
    if (roots() == 2) {
        return root_of_two(index, poles_, z_, beside_);
    }
    std::vector<double> apart(z_.size());
    const int size = lapack_int(roots()), number = lapack_int(index + 1);
    double value = 0;
    int info = 0;
    TILEWISE_BLAS(dlaed4_)(&size, &number, poles_.data(), z_.data(), apart.data(), &beside_, &value, &info);
    check_lapack(info, "laed4");
    const auto nearest =
        std::min_element(apart.begin(), apart.end(), [](double a, double b) { return std::abs(a) < std::abs(b); });
    return {nearest - apart.begin(), -*nearest};
}

double TridiagonalMerge::apart(std::int64_t index, std::int64_t root) const {
    const Root& one = roots_[at(root)];
    return (poles_[at(index)] - poles_[at(one.nearest)]) - one.beyond;
}

void TridiagonalMerge::take_roots(const Root* roots) {
    roots_.assign(roots, roots + kept_.size());
    std::vector<double> values;
    for (const Root& root : roots_) {
        values.push_back(poles_[at(root.nearest)] + root.beyond);
        order_.push_back(std::ssize(order_));
    }
    for (const std::int64_t i : out_) {
        order_.push_back(-1 - i);
    }
    const auto value = [&](std::int64_t one) { return one < 0 ? d_[at(-1 - one)] : values[at(one)]; };
    std::stable_sort(order_.begin(), order_.end(), [&](auto i, auto j) { return value(i) < value(j); });
    for (const std::int64_t one : order_) {
        values_.push_back(value(one));
    }
}

double TridiagonalMerge::weight(std::int64_t index) const {
    tell<double>({8 * static_cast<double>(roots()), 0});
    double square = -apart(index, index);
    for (std::int64_t j = 0; j < roots(); ++j) {
        if (j != index) {
            square *= apart(index, j) / (poles_[at(index)] - poles_[at(j)]);
        }
    }
    return std::copysign(std::sqrt(std::abs(square)), z_[at(index)]);
}

void TridiagonalMerge::take_weights(const double* weights) { weights_.assign(weights, weights + kept_.size()); }

void TridiagonalMerge::vector(std::int64_t value, double* to) const {
    const std::int64_t one = order_[at(value)];
    if (one < 0) {
        to[-1 - one] = 1;
    } else {
        tell<double>({7 * static_cast<double>(roots()), 0});
        double squares = 0;
        for (std::int64_t i = 0; i < roots(); ++i) {
            const double part = weights_[at(i)] / apart(i, one);
            squares += part * part;
            to[kept_[at(i)]] = part;
        }
        const double norm = std::sqrt(squares);
        for (const std::int64_t i : kept_) {
            to[i] /= norm;
        }
    }
    for (auto turned = rotations_.rbegin(); turned != rotations_.rend(); ++turned) {
        const double in = to[turned->in], out = to[turned->out];
        to[turned->in] = turned->c * in - turned->s * out;
        to[turned->out] = turned->s * in + turned->c * out;
    }
}

}  // namespace tilewise::kernel
