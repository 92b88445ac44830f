// Multiplies A with random vectors, and with random signs of the vectors that it is to be proved with.
//
//     T: the vectors along the panels of A (U, or V where the panels hold Aᵀ), X: those across
//     g, h: K numbers a vector
//
//     first X, panel by panel          then A and T together, panel by panel
//         C = Xᵀ·G, Xᵀ·(X·N)               A·[G, X·S] − T·[Σ·C, Σ·S]         G, N normal, S signs
//         X·S                              Tᵀ·(T·N)
#include <algorithm>
#include <array>
#include <cmath>

#include "tilewise/base/buffer.hpp"
#include "tilewise/base/random.hpp"
#include "tilewise/base/threads.hpp"
#include "tilewise/kernel/product.hpp"
#include "tilewise/mpi/sum.hpp"
#include "tilewise/mpi/together.hpp"
#include "tilewise/svd/proof_files.hpp"
#include "tilewise/svd/randomized_kernel.hpp"

namespace tilewise::svd {
namespace {

constexpr std::int64_t sign_vectors = probes, all_vectors = probes + sign_vectors;  // whole registers
constexpr std::int64_t block_columns = 1024;  // of A, whose rows of the vectors stay in the cache
constexpr std::uint64_t gaussian_seed = 0x70726F6F66, small_seed = 0x7376642B;

using Numbers = std::vector<double>;

std::size_t index_of(std::int64_t value) { return static_cast<std::size_t>(value); }

double normal_at(std::uint64_t seed, std::int64_t row, std::int64_t column) {
    return normal(random_bits(row_key(seed, static_cast<std::uint64_t>(row)), static_cast<std::uint64_t>(column)));
}

kernel::Operand transposed(const kernel::Operand& operand) {
    return {operand.data, operand.stride, !operand.transposed};
}

template <class T> class Probe {
public:
    Probe(Context& context, const io::Region& a, const Files& files, const Options& options, Numbers sigma)
        : context_(context),
          sigma_(std::move(sigma)),
          count_(std::ssize(sigma_)),
          factor_(safe_factor(sigma_, sizeof(T) == 4 ? Dtype::float32 : Dtype::float64)),
          a_(context, a, sizeof(T) == 4 ? Dtype::float32 : Dtype::float64, reading(options, all_vectors)),
          across_(context, a_.transposed() ? *files.u : *files.vt, Dtype::float64,
                  reading(options, a_.transposed() ? PanelAxis::rows : PanelAxis::columns, all_vectors, 0)),
          along_(context, a_.transposed() ? *files.vt : *files.u, Dtype::float64,
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
        Numbers small, rows, difference;
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
                mix_[index_of(i * all_vectors + j)] = j < probes ? value : value < 0 ? -1 : 1;
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
    Numbers total(const std::vector<Lane>& lanes) const {
        Numbers sum = lanes.front().small;
        for (std::size_t lane = 1; lane < lanes.size(); ++lane) {
            for (std::size_t i = 0; i < sum.size(); ++i) {
                sum[i] += lanes[lane].small[i];
            }
        }
        mpi::sum_over_ranks(context_.comm, sum.data(), std::ssize(sum));
        return sum;
    }

    /// ‖I − QᵀQ‖_F / √K out of QᵀQ·N, `stride` apart from `first` on.
    double orthogonality(const Numbers& product, std::int64_t stride, std::int64_t first) const {
        double sum = 0;
        for (std::int64_t i = 0; i < count_; ++i) {
            for (std::int64_t j = 0; j < probes; ++j) {
                const double gap = mix_[index_of(i * all_vectors + j)] - product[index_of(i * stride + first + j)];
                sum += gap * gap;
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
                const double* product = lane.rows.data() + i * all_vectors;
                double *vector = vectors_.data() + (rows.begin + i) * all_vectors,
                       *both = lane.difference.data() + i * wide;
                std::copy_n(product + probes, sign_vectors, vector + probes);
                std::copy_n(vector, probes, both);
                std::copy_n(product, probes, both + probes);
            }
            kernel::multiply(count_, wide, rows.size(), transposed(x), kernel::operand(lane.difference.data(), wide),
                             lane.small.data(), true, threads);
        });
        share_vectors();
        const Numbers sum = total(lanes);
        for (std::int64_t i = 0; i < count_; ++i) {
            for (std::int64_t j = 0; j < all_vectors; ++j) {
                const double factor = j < probes ? sum[index_of(i * wide + j)] : mix_[index_of(i * all_vectors + j)];
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
        Numbers some(index_of(a_.width() * sign_vectors));
        for (std::int64_t i = mine.begin; i < mine.end; ++i) {
            std::copy_n(vectors_.data() + i * all_vectors + probes, sign_vectors, some.data() + i * sign_vectors);
        }
        mpi::sum_over_ranks(context_.comm, some.data(), std::ssize(some));
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
                for (std::int64_t column = 0; column < a_.width(); column += block_columns) {
                    const T* data = reinterpret_cast<const T*>(panel.data) + begin * row_step + column * column_step;
                    multiply_few(end - begin, std::min(block_columns, a_.width() - column), all_vectors,
                                 {data, row_step, column_step}, vectors.data() + column * all_vectors, products);
                }
            });
            const kernel::Operand t = along_.take(context_, index, rows);
            kernel::multiply(rows.size(), all_vectors, count_, t, kernel::operand(expected_.data(), all_vectors),
                             lane.rows.data(), false, threads);
            for (std::int64_t i = 0; i < size; ++i) {
                const double value = lane.products[index_of(i)], gap = value - lane.rows[index_of(i)];
                const bool gaussian = i % all_vectors < probes;
                lane.sums[0] += gaussian ? value * value : 0;
                lane.sums[gaussian ? 1 : 2] += gap * gap;
            }
            lane.difference.resize(index_of(rows.size() * probes));
            kernel::multiply(rows.size(), probes, count_, t, kernel::operand(mix_.data(), all_vectors),
                             lane.difference.data(), false, threads);
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
    Numbers vectors_;   ///< [G, X·S], width × all_vectors
    Numbers mix_;       ///< [N, S], K × all_vectors
    Numbers expected_;  ///< [Σ·C, Σ·S], K × all_vectors
    std::array<double, 3> sums_{};
};

}  // namespace

Measures measure_by_probes(Context& context, const io::Region& a, const Files& files, const Options& options) {
    Numbers sigma = read_sigma(context, files.s);
    Measures found;
    if (!files.u || !files.vt) {
        found.norms = difference_of_norms(context, a, options, sigma);
    } else if (files.s.dtype == Dtype::float32) {
        found = Probe<float>(context, a, files, options, sigma)();
    } else {
        found = Probe<double>(context, a, files, options, sigma)();
    }
    found.sigma = std::move(sigma);
    return found;
}

}  // namespace tilewise::svd
