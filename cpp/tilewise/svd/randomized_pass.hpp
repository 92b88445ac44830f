// One reading of a matrix that does not fit into memory, and what can be made of it: A·Q, and Aᵀ·(A·Q) at once.
#pragma once

#include <memory>
#include <vector>

#include "tilewise/svd/panels.hpp"
#include "tilewise/svd/randomized_kernel.hpp"
#include "tilewise/svd/randomized_qr.hpp"
#include "tilewise/svd/svd.hpp"

namespace tilewise::svd {

/// Products of the view H (see Panels) with Q, width × `columns`, row by row with rows of `stride` numbers, of which those beyond `columns` are 0. The
/// same Q on all ranks.
template <class T> class Passes {
public:
    /// `a` and `options` must live as long as this. @note Collective.
    Passes(Context& context, const io::Region& a, const Options& options, std::int64_t columns);

    const Panels& panels() const { return panels_; }
    std::int64_t stride() const { return stride_; }
    /// How many times the matrix was read.
    std::int64_t reads() const { return reads_; }
    void start_counting() { reads_ = 0; }
    /// What the matrix is multiplied with from the first pass on: a power of two, 1 unless squares of its numbers would leave the type's range.
    double factor() const { return factor_; }

    /// Hᵀ·(H·Q), summed over rows in float64, the same on all ranks; to be factored. `first`: refuses numbers that are not finite, with the position of the
    /// first, and finds the factor (one or two readings more, where it is not 1). @note Collective.
    std::unique_ptr<TallQr<double>> normal_product(Context& context, const T* q, bool first);
    /// This rank's rows of H·Q, their chunks factored. @note Collective.
    std::unique_ptr<TallQr<T>> product(Context& context, const T* q);

private:
    struct Lane {
        Buffer y, w;
        std::vector<double> sum;
        std::int64_t rows = 0;  ///< that w has summed
        std::int64_t wrong;     ///< the first number that is not finite: its place, times 4, and which it is
        double largest = 0;
    };

    void make_lanes(Context& context);
    void walk(Context& context, std::int64_t chunk, const Panels::Use& use);
    std::unique_ptr<TallQr<double>> sum_products(Context& context, const T* q, bool check);
    void multiply(grid::Range rows, const Strided<T>& panel, const T* q, T* y) const;
    void add_transposed(std::int64_t rows, const Strided<T>& panel, const T* y, T* w) const;
    void flush(Lane& lane, std::vector<double>& sum) const;
    void find_wrong(Lane& lane, grid::Range rows, const Strided<T>& panel) const;
    void refuse_wrong(Context& context) const;
    bool needs_scaling(Context& context, const TallQr<double>& wide);

    const io::Region& a_;
    const Options& options_;
    std::int64_t columns_, stride_;
    Panels panels_;
    std::int64_t width_;
    double factor_ = 1;
    std::vector<Lane> lanes_;
    std::int64_t reads_ = 0;
};

extern template class Passes<float>;
extern template class Passes<double>;

}  // namespace tilewise::svd
