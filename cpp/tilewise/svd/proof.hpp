// Whether the files of a decomposition hold one: A, U, s and Vᵀ are read back, once each, in panels, and multiplied
// with random vectors.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "tilewise/svd/panels.hpp"
#include "tilewise/svd/svd.hpp"

namespace tilewise::svd {

inline std::size_t index_of(std::int64_t value) { return static_cast<std::size_t>(value); }

/// What is found, and how large it may be. With ε of the files' type (2⁻⁵² or 2⁻²³), n = min(M,N) and K components:
///
///     s finite, not negative, descending                                   always
///     ‖I − UᵀU‖_F / √K, ‖I − VᵀV‖_F / √K           ≤ 25·ε·max(K, 16)       that of random vectors, 16 of them
///     ‖A·V − U·Σ‖_F / (√K·‖A‖_F), or of Aᵀ and U   ≤ 25·ε·√n, 25·ε         of random signs, 16 of them;
///                                                                          the second for `randomized`
///     ‖A − U·Σ·Vᵀ‖_F / ‖A‖_F                       ≤ 25·ε·n                16 random vectors; where K = n and not
///                                                                          `randomized`; else it is an estimate of
///                                                                          what is left out, and only reported
///     ‖F − U·Σ‖_F / ‖s‖, F the file of U·diag(s)   ≤ 25·ε                  always exact
///
/// These are SLATE's limits for its tester (25·ε; residuals over n, orthogonality over the number of vectors), but for
/// the third, which says that the pairs are singular pairs however many are left out, and finds a wrong number in any
/// of the three files if it changes A·V or U·Σ by more than rounding does. Estimates by 16 vectors are within a third
/// of the norm. In `serial` all are exact, and so is the comparison with LAPACK's singular values:
///     |σ − σ'| / σ₁' ≤ 25·ε·√n  (`randomized`: σ no larger than that, and neither smaller nor with a larger
/// residual than it says of itself). `share` is that of the components of `randomized` that are as exact as was asked
/// for. Without vectors: Σσ² against ‖A‖_F².
/// All but the orthogonality may also be off by √(M·K)/σ₁ of the smallest number of the files' type, in steps of which
/// tiny results are rounded.
///
/// Memory of `fast` per rank, over that of Panels for A (with 32 vectors), U and Vᵀ: 32·(width of A's panels)·(8 + size
/// of the type) and 96·K·8 for each lane; `serial`, rank 0: 3·M·N·8 and the files, and LAPACK's needs. Fills in
/// residuals and counts the readings of A. @note Collective.
Verification verify(Context& context, const io::Region& a, const Files& files, const Options& options,
                    Diagnostics& diagnostics);

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
