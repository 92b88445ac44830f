// What a proof measures of a decomposition in files, by random vectors or exactly, and how it reads them; judging it is
// another matter.
#pragma once

#include <optional>
#include <vector>

#include "tilewise/svd/panels.hpp"
#include "tilewise/svd/svd.hpp"

namespace tilewise::svd {

struct Measures {
    std::vector<double> sigma;                        ///< as the file has them
    double norm = 0;                                  ///< ‖A‖_F, as the same vectors have it
    double residual = 0;                              ///< ‖A − UΣVᵀ‖_F / ‖A‖_F
    double orthogonality_u = 0, orthogonality_v = 0;  ///< ‖I − QᵀQ‖_F / √K
    double pairs = 0;                                 ///< ‖AV − UΣ‖_F / (√K·‖A‖_F), or of Aᵀ and U
    std::vector<double> residuals;  ///< of `randomized`, in `serial`: ‖Aᵀu − σv‖ or ‖Av − σu‖ of each; on rank 0 only
    double norms = 0;               ///< without vectors: (‖s‖ − ‖A‖_F) / ‖A‖_F
    double scaled = 0;              ///< ‖F − U·diag(s)‖_F / ‖s‖, where there is a file F for that
    std::optional<std::vector<double>> expected;  ///< LAPACK's singular values; on rank 0 only
};

/// Numbers of the file of s; the same on all ranks. @note Collective.
std::vector<double> read_sigma(Context& context, const io::Region& s);

/// Random vectors of the proof, and as many of random signs.
inline constexpr std::int64_t probes = 16;

/// Reads A, U and Vᵀ once each. @note Collective.
Measures measure_by_probes(Context& context, const io::Region& a, const Files& files, const Options& options);

/// Rank 0 reads everything, and LAPACK decomposes A; the result stands on rank 0 only. @note Collective.
Measures measure_exactly(Context& context, const io::Region& a, const Files& files, const Options& options);

/// By how much to multiply A and s, so that their squares stay within the type's range; 1 where they do.
double safe_factor(const std::vector<double>& sigma, Dtype dtype);

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
