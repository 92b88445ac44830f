// The factors of a tall matrix: those of the triangle that is left of it, and the long one, U, or Vᵀ where A is wide,
// which is written step by step.
#pragma once

#include <optional>
#include <vector>

#include "tilewise/base/array.hpp"
#include "tilewise/kernel/scalar.hpp"
#include "tilewise/svd/signs.hpp"
#include "tilewise/svd/tall_rows.hpp"
#include "tilewise/svd/writer.hpp"

namespace tilewise::svd {

template <class T> struct TriangleSvd {
    std::vector<double> s;  ///< descending
    Array<T> u, vh;         ///< n×n, column by column; nothing where they are not wanted
};

/// R = U·diag(s)·Vᴴ, R n×n, column by column, which is destroyed. By gesdd, or by rotations where real columns differ
/// so much in scale that gesdd would lose small singular values. Memory, in numbers: 9·n² beside R. Not collective.
template <class T> TriangleSvd<T> decompose_triangle(std::int64_t n, T* r, bool vectors, int threads);

template <class T> class LongFactor {
public:
    /// Gets the disk space. `file`: M×K row by row, or, `across`, K×N; it and the options must live as long as this.
    /// `scaled`: of U·diag(s), only where not `across`. @note Collective.
    LongFactor(Context& context, const io::Region& file, const std::optional<io::Region>& scaled, bool across,
               const Options& options);

    /// Writes what stands in `rows` instead of its panels, or of its rows as they were read; both are lost. @note
    /// Collective.
    void store(Context& context, const TallRows<T>& rows, std::int64_t step, bool instead_of_panels);
    /// Reads all of U again, with `rows` for its memory, and gives each column its sign; makes U·diag(s) meanwhile,
    /// where that is wanted. Nothing happens where nothing changes. @note Collective.
    void point(Context& context, const TallRows<T>& rows, const std::vector<Sign<T>>& ways,
               const std::vector<double>& sigma);
    /// @note Collective.
    void finish(Context& context, bool sync);

private:
    grid::Share share(const TallSteps& steps, int rank, std::int64_t step) const;

    const io::Region& file_;
    bool across_;
    std::optional<io::Region> scaled_;
    const Options& options_;
    std::optional<io::Output> output_;
    std::optional<io::Output> scaled_output_;
};

/// The short one, row by row: Vᵀ (K×n), or, `across`, U (n×K), out of V of W, conjugated and transposed, n×n, column by
/// column. Of U the signs are in V already; those of Vᵀ are `ways`, K of them.
template <class T>
Array<T> short_factor(const Array<T>& vh, std::int64_t n, bool across, const std::vector<Sign<T>>& ways);

extern template TriangleSvd<double> decompose_triangle(std::int64_t, double*, bool, int);
extern template TriangleSvd<kernel::Complex> decompose_triangle(std::int64_t, kernel::Complex*, bool, int);
extern template Array<double> short_factor(const Array<double>&, std::int64_t, bool, const std::vector<double>&);
extern template Array<kernel::Complex> short_factor(const Array<kernel::Complex>&, std::int64_t, bool,
                                                    const std::vector<kernel::Complex>&);
extern template class LongFactor<double>;
extern template class LongFactor<kernel::Complex>;

}  // namespace tilewise::svd
