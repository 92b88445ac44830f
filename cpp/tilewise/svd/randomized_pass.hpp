// One reading of a matrix that does not fit into memory, and what can be made of it: A·Q and Aᵀ·(A·Q) at once, and
// ‖A‖_F.
#pragma once

#include <memory>
#include <vector>

#include "tilewise/base/array.hpp"
#include "tilewise/dist/tall_qr.hpp"
#include "tilewise/kernel/product/few_vectors.hpp"
#include "tilewise/svd/panels.hpp"
#include "tilewise/svd/source.hpp"
#include "tilewise/svd/svd.hpp"

namespace tilewise::svd {

/// What one reading gives, for Q of n columns.
template <class T> struct Reading {
    std::vector<double> product;  ///< Hᵀ·(H·Q), width × n, row by row, the same on all ranks
    std::unique_ptr<dist::TallQr<T>>
        tall;  ///< this rank's rows of H·Q, their chunks factored; null where they were not to be kept
};

/// Products of the view H (see Panels) with Q, width × n, row by row with rows of `stride` numbers, of which those
/// beyond n are 0. The same Q on all ranks.
template <class T> class Passes {
public:
    /// For Q of `columns` columns at most. `a` and `options` must live as long as this. @note Collective.
    Passes(Context& context, const io::Region& a, const Options& options, std::int64_t columns);

    const Panels& panels() const { return *panels_; }
    std::int64_t stride() const { return stride_; }
    /// From now on Q may have so many columns. @note Collective.
    void widen(Context& context, std::int64_t columns);
    /// How many times the matrix was read, and what that took.
    std::int64_t reads() const { return reads_; }
    double flops() const { return flops_; }
    void start_counting() { reads_ = 0; }
    /// What the matrix is multiplied with from the first pass on: a power of two, 1 unless its numbers are very large
    /// or small.
    double factor() const { return factor_; }
    /// ‖factor·A‖_F², summed in the first pass.
    double squares() const { return squares_; }

    /// Sums over rows are in float64. `first`: refuses numbers that are not finite, with the position of the first, and
    /// finds the factor (one or two readings more, where it is not 1) and the sum of squares. `expected`: readings that
    /// there will be, 0 where that is not known. @note Collective.
    Reading<T> read(Context& context, const T* q, std::int64_t columns, bool first, bool keep, double expected);

private:
    struct Lane {
        Array<T> y, w;
        std::vector<double> sum;
        std::int64_t rows = 0;  ///< that w has summed
        FirstNotFinite wrong;
        double largest = 0, squares = 0;
    };

    void cut(Context& context, std::int64_t columns);
    void make_lanes(Context& context, std::int64_t columns);
    void walk(Context& context, std::int64_t chunk, double expected, const Panels::Use& use);
    Reading<T> sum_products(Context& context, const T* q, std::int64_t columns, bool first, bool keep, double expected);
    void multiply(grid::Range rows, const kernel::Strided<T>& panel, const T* q, T* y) const;
    void add_transposed(std::int64_t rows, const kernel::Strided<T>& panel, const T* y, T* w) const;
    void flush(Lane& lane, std::vector<double>& sum, std::int64_t columns) const;
    void find_wrong(Lane& lane, grid::Range rows, const kernel::Strided<T>& panel) const;
    void refuse_wrong(Context& context) const;
    bool needs_scaling(Context& context, const std::vector<double>& product, double expected);

    const io::Region& a_;
    const Options& options_;
    std::int64_t stride_ = 0, width_ = 0;
    std::unique_ptr<Panels> panels_;
    double factor_ = 1, squares_ = 0, flops_ = 0;
    std::vector<Lane> lanes_;
    std::int64_t reads_ = 0;
};

}  // namespace tilewise::svd
