// How a proof reads the files of a decomposition, and the checks for which reading is all there is to do.
#pragma once

#include <vector>

#include "tilewise/svd/panels.hpp"
#include "tilewise/svd/proof_measures.hpp"

namespace tilewise::svd {

/// Of A.
PanelOptions reading(const Options& options, std::int64_t vectors);
/// Of U, Vᵀ or U·diag(s), whose files are plain whatever A's is. `lanes`: 0, or as many as another matrix has that is
/// walked through.
PanelOptions reading(const Options& options, PanelAxis axis, std::int64_t vectors, int lanes);

/// (‖s‖ − ‖A‖_F) / ‖A‖_F. Reads A once. @note Collective.
double difference_of_norms(Context& context, const io::Region& a, const Options& options,
                           const std::vector<double>& sigma);

/// ‖F − U·diag(s)‖_F / ‖s‖, F being the file that should hold it. Reads both once. @note Collective.
double error_of_scaled(Context& context, const Files& files, const Options& options, const std::vector<double>& sigma);

}  // namespace tilewise::svd
