// The interval lies between two of the sorted samples, as many places from the middle as heads differ from half of as
// many throws.
#include "tilewise/measure/statistics.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace tilewise::measure {

double median(std::vector<double> values) {
    const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
    std::nth_element(values.begin(), middle, values.end());
    if (values.size() % 2 == 1) {
        return *middle;
    }
    return (*middle + *std::max_element(values.begin(), middle)) / 2;
}

double relative_half_width(std::vector<double> samples) {
    if (samples.size() < 6) {
        return std::numeric_limits<double>::infinity();
    }
    std::sort(samples.begin(), samples.end());
    const auto count = static_cast<double>(samples.size());
    const double reach = 1.96 * std::sqrt(count) / 2;
    const auto low = static_cast<std::size_t>(std::max(0.0, std::floor(count / 2 - reach)));
    const auto high = static_cast<std::size_t>(std::min(count - 1, std::ceil(count / 2 + reach)));
    const double middle = median(samples);
    return middle > 0 ? (samples[high] - samples[low]) / 2 / middle : std::numeric_limits<double>::infinity();
}

}  // namespace tilewise::measure
