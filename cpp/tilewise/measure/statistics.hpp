// The middle of samples, and how surely it is known; by their order alone, so that nothing is assumed of how they are
// spread.
#pragma once

#include <vector>

namespace tilewise::measure {

/// The middle one; of an even number the mean of the middle two. `values` may not be empty.
double median(std::vector<double> values);

/// Half the width of the 95 % interval of the median, as a share of the median; infinity below six samples.
double relative_half_width(std::vector<double> samples);

}  // namespace tilewise::measure
