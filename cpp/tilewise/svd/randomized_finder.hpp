// Block Krylov iteration: the space that readings of the matrix span grows until the largest singular values and their
// vectors are in it.
//
//     reading      multiplies                                          and then
//     1            X random, l = K + P columns                         X ← AᵀA·X made orthonormal
//     2            X                                                   the same once more
//     3            X                                                   V = [X]
//     4, 5 …       what of AᵀA·X is outside V                          V = [V, X]
//     last         X = the leading l Ritz vectors                      A·X by TSQR = Q·R, R = S·Σ·Tᵀ: U = Q·S, V = X·T
//
// What is small beside σ₁² in the first product has its digits in the second. Where V is full, it becomes its leading
// Ritz vectors (a thick restart).
//
// Readings 1, 2, 3 and the last keep A·X, so that each of them may be the last: A·V = U·Σ holds by construction then,
// and ‖Aᵀu − σv‖ is what of AᵀA·v/σ is outside V. One reading gives A·X and AᵀA·X, so none is for the residuals alone.
// What has converged to rounding is locked: the rest is judged without it, or σ₁² would drown it.
//
// C. Musco, C. Musco, "Randomized block Krylov methods for stronger and faster approximate singular value
// decomposition", 2015; K. Wu, H. Simon, "Thick-restart Lanczos method for large symmetric eigenvalue problems", 2000.
#pragma once

#include <algorithm>
#include <memory>
#include <vector>

#include "tilewise/base/array.hpp"
#include "tilewise/dist/tall_qr.hpp"
#include "tilewise/svd/randomized_basis.hpp"
#include "tilewise/svd/randomized_pass.hpp"

namespace tilewise::svd {

/// Readings after which the iteration gives up.
inline constexpr std::int64_t most_readings = 200;
/// Of a residual ‖Aᵀu − σv‖, relative to σ, where none is asked for.
inline double usual_tolerance(Dtype dtype) { return dtype == Dtype::float32 ? 1e-4 : 1e-6; }
/// Readings after which the space begins to grow.
inline constexpr std::int64_t warm_readings = 2;
/// Blocks that the space has room for: the usual number as long as that makes no more columns than this, since its
/// eigenvalue problem is to stay small, but never fewer than the least.
inline constexpr std::int64_t basis_blocks = 8, basis_columns = 1000, least_basis_blocks = 3;
/// Columns of the space where the plan does not say.
inline std::int64_t usual_basis(std::int64_t block) {
    return std::clamp<std::int64_t>(basis_columns, least_basis_blocks * block, basis_blocks * block);
}

/// What is known of the K components that were found; the same on all ranks.
struct Quality {
    std::vector<double> residuals;  ///< ‖Aᵀu − σv‖ of each
    double tolerance = 0;           ///< that was to be reached, relative to each σ
    double rounding = 0;            ///< and what no residual has to be below: rounding of σ₁
    bool converged = true;
    double norm = 0;     ///< ‖A‖_F
    bool enough = true;  ///< whether they have the share of the matrix that was asked for
};

/// The K largest singular values with their vectors, row by row; without vectors where only values were wanted.
template <class T> struct LowRankFactors {
    std::vector<double> sigma;
    grid::Range high;                         ///< the rows of the view that this rank has
    std::int64_t width = 0;                   ///< columns of the view
    bool transposed = false;                  ///< the view is Aᵀ: `tall` is of V then, `across` of U
    T* tall = nullptr;                        ///< high × K
    Array<T> across;                          ///< width × K, the same on all ranks
    std::shared_ptr<dist::TallQr<T>> memory;  ///< of `tall`; null where there are no vectors
};

template <class T> class Finder {
public:
    /// `options.components` is known. @note Collective.
    Finder(Context& context, const io::Region& a, const Options& options);

    LowRankFactors<T> operator()();

    const Quality& quality() const { return quality_; }
    std::int64_t reads() const { return passes_.reads(); }
    double flops() const { return passes_.flops(); }
    bool working() const { return passes_.panels().mine().size() > 0; }

private:
    /// R of A·X as rank 0 decomposed it: S and T, σ.
    struct Small {
        std::vector<double> left, right, sigma;
    };

    T* q() const { return q_.data(); }
    bool fixed() const { return options_.power >= 0; }
    std::int64_t limit() const { return fixed() ? options_.power + 2 : most_readings; }
    void size_space();
    bool choose_count(const std::vector<double>& sigma);
    void append_random(std::int64_t columns);
    void set_q();
    Small decompose(dist::TallQr<T>& tall) const;
    bool judge(const std::vector<double>& sigma, const std::vector<double>& residuals, double noise);
    bool look_at_block(Columns& w, const Small& small);
    void look_at_space(Columns w, bool last_but_one);
    Columns outside(Columns w, std::vector<double>& r) const;
    LowRankFactors<T> finish(std::shared_ptr<dist::TallQr<T>> tall, const Small& small);

    Context& context_;
    const Options& options_;
    std::int64_t least_, count_, columns_;  ///< min(M, N), K, and columns of a block
    Passes<T> passes_;
    std::int64_t width_, most_ = 0;  ///< columns of the space at most
    double floor_;                   ///< residuals that are rounding, relative to σ₁
    Array<T> q_;                     ///< what is multiplied next, padded
    Columns x_;                      ///< the same
    Basis basis_;
    std::int64_t locked_ = 0;     ///< columns of V that have converged to rounding
    std::vector<double> inside_;  ///< what of AᵀA·V is in V
    Quality quality_;
};

extern template class Finder<float>;
extern template class Finder<double>;

}  // namespace tilewise::svd
