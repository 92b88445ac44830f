// Multiplies A with random vectors, and with random signs of the vectors that it is to be proved with.
//
//     T: the vectors along the panels of A (U, or V where the panels hold Aᵀ), X: those across
//     g, h: K numbers a vector
//
//     first X, panel by panel          then A and T together, panel by panel
//         C = Xᵀ·G, Xᵀ·(X·N)               A·[G, X·S] − T·[Σ·C, Σ·S]         G, N normal, S signs
//         X·S                              Tᵀ·(T·N)
//
// Of complex numbers X and T are V̅ and U, or U and V̅: what Vᴴ, U and the panels hold row by row. So A·X̅ = T·Σ, and
// X·S, X·N and T·N are conjugated.
#include <algorithm>
#include <array>
#include <cmath>

#include "tilewise/base/buffer.hpp"
#include "tilewise/base/random.hpp"
#include "tilewise/base/threads.hpp"
#include "tilewise/kernel/product/few_vectors.hpp"
#include "tilewise/kernel/product/gemm.hpp"
#include "tilewise/mpi/sum.hpp"
#include "tilewise/mpi/together.hpp"
#include "tilewise/svd/proof.hpp"

namespace tilewise::svd {
namespace {

constexpr std::int64_t sign_vectors = probes, all_vectors = probes + sign_vectors;  // whole registers
constexpr std::int64_t cached_columns = 1024;  // of A, whose rows of the vectors stay in the cache
constexpr std::uint64_t gaussian_seed = 0x70726F6F66, small_seed = 0x7376642B;

using Numbers = std::vector<double>;

template <class T> constexpr Dtype type_of = kernel::is_complex_number<T>
                                                 ? (sizeof(T) == 8 ? Dtype::complex64 : Dtype::complex128)
                                             : sizeof(T) == 4 ? Dtype::float32
                                                              : Dtype::float64;
/// What sums are made of.
template <class T> using Sum = std::conditional_t<kernel::is_complex_number<T>, kernel::Complex, double>;

double normal_at(std::uint64_t seed, std::int64_t row, std::int64_t column) {
    return normal(random_bits(row_key(seed, static_cast<std::uint64_t>(row)), static_cast<std::uint64_t>(column)));
}

kernel::Operand transposed(const kernel::Operand& operand) {
    return {operand.data, operand.stride, !operand.transposed};
}

/// C += A·B of the numbers that are computed in; B row by row.
template <class T> void multiply_panel(std::int64_t m, std::int64_t k, const kernel::Strided<T>& a, const T* b, T* c) {
    if constexpr (kernel::is_complex_number<T>) {
        const bool transposed = a.column_step != 1;
        kernel::gemm({type_of<T>,
                      m,
                      all_vectors,
                      k,
                      {reinterpret_cast<const std::byte*>(a.data), transposed ? a.column_step : a.row_step, transposed},
                      kernel::operand(b, all_vectors),
                      reinterpret_cast<std::byte*>(c),
                      all_vectors,
                      true},
                     1);
    } else {
        kernel::multiply_few(m, k, all_vectors, a, b, c);
    }
}

template <class T> class Probe {
    using S = Sum<T>;
    using Sums = std::vector<S>;
    static constexpr Dtype sum_type = type_of<S>;

public:
    Probe(Context& context, const io::Region& a, const Files& files, const Options& options, Numbers sigma)
        : context_(context),
          sigma_(std::move(sigma)),
          count_(std::ssize(sigma_)),
          factor_(safe_factor(sigma_, real_type(type_of<T>))),
          a_(context, a, type_of<T>, reading(options, all_vectors)),
          across_(context, a_.transposed() ? *files.u : *files.vt, sum_type,
                  reading(options, a_.transposed() ? PanelAxis::rows : PanelAxis::columns, all_vectors, 0)),
          along_(context, a_.transposed() ? *files.vt : *files.u, sum_type,
                 reading(options, a_.transposed() ? PanelAxis::columns : PanelAxis::rows, all_vectors, a_.lanes())) {
        a_.scale_by(factor_);
        for (double& value : sigma_) {
            value *= factor_;
        }
        mpi::together(context.comm, [&] { draw(); });
    }

    Measures operator()() {
        const double across = look_across();
        const double along = look_along();
        Measures found;
        found.orthogonality_u = a_.transposed() ? across : along;
        found.orthogonality_v = a_.transposed() ? along : across;
        const double norm = std::sqrt(sums_[0] / probes), scale = norm > 0 ? norm : 1;
        found.norm = norm / factor_;
        found.residual = std::sqrt(sums_[1] / probes) / scale;
        found.pairs = std::sqrt(sums_[2] / sign_vectors / static_cast<double>(count_)) / scale;
        return found;
    }

private:
    /// Sums of one lane; `small` is K × probes or more.
    struct Lane {
        Sums small, rows, difference;
        std::vector<T> products;
        std::array<double, 3> sums{};  ///< squares of A·G, of A·G − T·Σ·C, of A·X·S − T·Σ·S
    };

    void draw() {
        vectors_.resize(index_of(a_.width() * all_vectors));
        parallel_ranges(context_.threads, a_.width(), [&](std::int64_t begin, std::int64_t end, int) {
            for (std::int64_t i = begin; i < end; ++i) {
                for (std::int64_t j = 0; j < probes; ++j) {
                    vectors_[index_of(i * all_vectors + j)] = normal_at(gaussian_seed, i, j);
                }
            }
        });
        mix_.resize(index_of(count_ * all_vectors));
        for (std::int64_t i = 0; i < count_; ++i) {
            for (std::int64_t j = 0; j < all_vectors; ++j) {
                const double value = normal_at(small_seed, i, j);
                mix_[index_of(i * all_vectors + j)] = j < probes ? value : value < 0 ? -1.0 : 1.0;
            }
        }
    }

    std::vector<Lane> lanes_for(const Panels& panels, std::int64_t small) const {
        std::vector<Lane> lanes(index_of(panels.lanes()));
        for (Lane& lane : lanes) {
            lane.small.resize(index_of(small));
            lane.rows.resize(index_of(panels.panel_rows() * all_vectors));
        }
        return lanes;
    }

    /// Sums of the lanes and the ranks.
    Sums total(const std::vector<Lane>& lanes) const {
        Sums sum = lanes.front().small;
        for (std::size_t lane = 1; lane < lanes.size(); ++lane) {
            for (std::size_t i = 0; i < sum.size(); ++i) {
                sum[i] += lanes[lane].small[i];
            }
        }
        sum_over_ranks(sum);
        return sum;
    }

    void sum_over_ranks(Sums& sums) const {
        mpi::sum_over_ranks(context_.comm, kernel::reals_of(sums.data()), kernel::parts_of<S> * std::ssize(sums));
    }

    /// ‖I − QᵀQ‖_F / √K out of QᵀQ·N, `stride` apart from `first` on.
    double orthogonality(const Sums& product, std::int64_t stride, std::int64_t first) const {
        double sum = 0;
        for (std::int64_t i = 0; i < count_; ++i) {
            for (std::int64_t j = 0; j < probes; ++j) {
                const S gap = mix_[index_of(i * all_vectors + j)] - product[index_of(i * stride + first + j)];
                sum += kernel::square_of(gap);
            }
        }
        return std::sqrt(sum / probes / static_cast<double>(count_));
    }

    double look_across() {
        constexpr std::int64_t wide = 2 * probes;
        std::vector<Lane> lanes = lanes_for(across_, count_ * wide);
        const int threads = across_.threads_of_lane();
        across_.walk(context_, across_.panel_rows(), [&](int index, grid::Range rows, const kernel::Operand& x) {
            Lane& lane = lanes[index_of(index)];
            kernel::multiply(rows.size(), all_vectors, count_, x, kernel::operand(mix_.data(), all_vectors),
                             lane.rows.data(), false, threads);
            lane.difference.resize(index_of(rows.size() * wide));
            for (std::int64_t i = 0; i < rows.size(); ++i) {
                S* product = lane.rows.data() + i * all_vectors;
                kernel::conjugate_all(product, all_vectors);
                S *vector = vectors_.data() + (rows.begin + i) * all_vectors, *both = lane.difference.data() + i * wide;
                std::copy_n(product + probes, sign_vectors, vector + probes);
                std::copy_n(vector, probes, both);
                std::copy_n(product, probes, both + probes);
            }
            kernel::multiply(count_, wide, rows.size(), transposed(x), kernel::operand(lane.difference.data(), wide),
                             lane.small.data(), true, threads);
        });
        share_vectors();
        const Sums sum = total(lanes);
        for (std::int64_t i = 0; i < count_; ++i) {
            for (std::int64_t j = 0; j < all_vectors; ++j) {
                const S factor = j < probes ? sum[index_of(i * wide + j)] : mix_[index_of(i * all_vectors + j)];
                expected_.push_back(sigma_[index_of(i)] * factor);
            }
        }
        return orthogonality(sum, wide, probes);
    }

    /// Each rank has made its rows of X·S.
    void share_vectors() {
        if (context_.comm.size() == 1) {
            return;
        }
        const grid::Range mine = across_.mine();
        Sums some(index_of(a_.width() * sign_vectors));
        for (std::int64_t i = mine.begin; i < mine.end; ++i) {
            std::copy_n(vectors_.data() + i * all_vectors + probes, sign_vectors, some.data() + i * sign_vectors);
        }
        sum_over_ranks(some);
        for (std::int64_t i = 0; i < a_.width(); ++i) {
            std::copy_n(some.data() + i * sign_vectors, sign_vectors, vectors_.data() + i * all_vectors + probes);
        }
    }

    double look_along() {
        std::vector<Lane> lanes = lanes_for(a_, count_ * probes);
        const std::vector<T> vectors(vectors_.begin(), vectors_.end());
        const int threads = a_.threads_of_lane();
        a_.walk(context_, a_.panel_rows(), [&](int index, grid::Range rows, const kernel::Operand& panel) {
            Lane& lane = lanes[index_of(index)];
            const std::int64_t size = rows.size() * all_vectors;
            lane.products.resize(index_of(size));
            parallel_ranges(threads, rows.size(), [&](std::int64_t begin, std::int64_t end, int) {
                T* products = lane.products.data() + begin * all_vectors;
                std::fill_n(products, (end - begin) * all_vectors, T{});
                const std::int64_t row_step = panel.transposed ? 1 : panel.stride,
                                   column_step = panel.transposed ? panel.stride : 1;
                for (std::int64_t column = 0; column < a_.width(); column += cached_columns) {
                    const T* data = reinterpret_cast<const T*>(panel.data) + begin * row_step + column * column_step;
                    multiply_panel<T>(end - begin, std::min(cached_columns, a_.width() - column),
                                      {data, row_step, column_step}, vectors.data() + column * all_vectors, products);
                }
            });
            const kernel::Operand t = along_.take(context_, index, rows);
            kernel::multiply(rows.size(), all_vectors, count_, t, kernel::operand(expected_.data(), all_vectors),
                             lane.rows.data(), false, threads);
            for (std::int64_t i = 0; i < size; ++i) {
                const S value(lane.products[index_of(i)]), gap = value - lane.rows[index_of(i)];
                const bool gaussian = i % all_vectors < probes;
                lane.sums[0] += gaussian ? kernel::square_of(value) : 0;
                lane.sums[gaussian ? 1 : 2] += kernel::square_of(gap);
            }
            lane.difference.resize(index_of(rows.size() * probes));
            kernel::multiply(rows.size(), probes, count_, t, kernel::operand(mix_.data(), all_vectors),
                             lane.difference.data(), false, threads);
            kernel::conjugate_all(lane.difference.data(), std::ssize(lane.difference));
            kernel::multiply(count_, probes, rows.size(), transposed(t),
                             kernel::operand(lane.difference.data(), probes), lane.small.data(), true, threads);
        });
        for (const Lane& lane : lanes) {
            for (std::size_t i = 0; i < sums_.size(); ++i) {
                sums_[i] += lane.sums[i];
            }
        }
        mpi::sum_over_ranks(context_.comm, sums_.data(), std::ssize(sums_));
        return orthogonality(total(lanes), probes, 0);
    }

    Context& context_;
    Numbers sigma_;
    std::int64_t count_;
    double factor_;
    Panels a_, across_, along_;
    Sums vectors_;   ///< [G, X·S], width × all_vectors
    Sums mix_;       ///< [N, S], K × all_vectors
    Sums expected_;  ///< [Σ·C, Σ·S], K × all_vectors
    std::array<double, 3> sums_{};
};

}  // namespace

Measures measure_by_probes(Context& context, const io::Region& a, const Files& files, const Options& options) {
    Numbers sigma = read_sigma(context, files.s);
    Measures found;
    if (!files.u || !files.vt) {
        found.norms = difference_of_norms(context, a, options, sigma);
    } else if (is_complex(a.dtype)) {
        found = files.s.dtype == Dtype::float32 ? Probe<std::complex<float>>(context, a, files, options, sigma)()
                                                : Probe<kernel::Complex>(context, a, files, options, sigma)();
    } else if (files.s.dtype == Dtype::float32) {
        found = Probe<float>(context, a, files, options, sigma)();
    } else {
        found = Probe<double>(context, a, files, options, sigma)();
    }
    found.sigma = std::move(sigma);
    return found;
}

}  // namespace tilewise::svd
