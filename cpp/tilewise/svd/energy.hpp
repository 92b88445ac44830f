// How many singular values have a share of a matrix, and what the others are.
#pragma once

#include <cstdint>
#include <vector>

namespace tilewise::svd {

/// The fewest of these, which descend, with Σ (σ/σ₁)² of `least` or more; one more than there are where all have less.
std::int64_t fewest_with(const std::vector<double>& sigma, double least);

/// Σ (σ/σ₁)² over [from, …).
double squares_from(const std::vector<double>& sigma, std::int64_t from);

/// The fewest with `share` of the squares of all, to rounding; one at least.
std::int64_t components_with(const std::vector<double>& sigma, double share);

/// What the first `count` leave of the matrix in the Frobenius norm, relative to all.
double left_by(const std::vector<double>& sigma, std::int64_t count);

}  // namespace tilewise::svd
