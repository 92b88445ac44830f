// Sums from the small end, so that small numbers count, of numbers relative to the largest, so that squares have a
// place.
#include "tilewise/svd/energy.hpp"

#include <algorithm>
#include <cmath>

namespace tilewise::svd {

double squares_from(const std::vector<double>& sigma, std::int64_t from) {
    double sum = 0;
    for (std::int64_t j = std::ssize(sigma) - 1; j >= from; --j) {
        const double part = sigma.front() > 0 ? sigma[static_cast<std::size_t>(j)] / sigma.front() : 0;
        sum += part * part;
    }
    return sum;
}

std::int64_t fewest_with(const std::vector<double>& sigma, double least) {
    double sum = 0;
    for (std::int64_t j = 0; j < std::ssize(sigma); ++j) {
        const double part = sigma.front() > 0 ? sigma[static_cast<std::size_t>(j)] / sigma.front() : 0;
        sum += part * part;
        if (sum >= least) {
            return j + 1;
        }
    }
    return std::ssize(sigma) + 1;
}

std::int64_t components_with(const std::vector<double>& sigma, double share) {
    constexpr double rounding = 1e-14;
    return std::min<std::int64_t>(std::ssize(sigma),
                                  fewest_with(sigma, share * squares_from(sigma, 0) * (1 - rounding)));
}

double left_by(const std::vector<double>& sigma, std::int64_t count) {
    const double all = squares_from(sigma, 0);
    return all > 0 ? std::sqrt(squares_from(sigma, count) / all) : 0;
}

}  // namespace tilewise::svd
