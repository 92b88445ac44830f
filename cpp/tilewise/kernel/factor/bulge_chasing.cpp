// Blocks of the band lie column by column, so that columns are vectors; sweeps report how far they are.
#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <limits>
#include <thread>
#include <vector>

#include "tilewise/base/threads.hpp"
#include "tilewise/kernel/factor/lapack.hpp"
#include "tilewise/kernel/factor/two_stage.hpp"
#include "tilewise/kernel/isa/registers.hpp"
#include "tilewise/kernel/isa/versions.hpp"

namespace tilewise::kernel {
namespace {

/// A register of so many numbers, which may lie anywhere.
template <std::int64_t lanes> using Lanes = typename Vector<double, lanes * sizeof(double)>::loose;

template <std::int64_t lanes> TILEWISE_INLINE double sum_of(const Lanes<lanes>& v) {
    double sum[lanes];
    std::memcpy(sum, &v, sizeof(v));
#pragma GCC unroll 3
    for (std::int64_t half = lanes / 2; half > 0; half /= 2) {
        for (std::int64_t i = 0; i < half; ++i) {
            sum[i] += sum[i + half];
        }
    }
    return sum[0];
}

/// Some rows and columns of the band, column by column.
struct Block {
    double* data;
    std::int64_t rows, columns, step;
};

/// Makes x a multiple of the first unit vector: (I − τ·v·vᵀ)·x = β·e₀ with v₀ = 1. v may be x.
TILEWISE_INLINE double reflector(std::int64_t n, const double* x, std::int64_t step, double* v, double& beta) {
    double largest = 0;
    for (std::int64_t i = 1; i < n; ++i) {
        largest = std::max(largest, std::abs(x[i * step]));
    }
    const double alpha = x[0];
    beta = alpha;
    if (largest == 0) {
        std::fill_n(v, n, 0.0);
        v[0] = 1;
        return 0;
    }
    const double scale = std::max(largest, std::abs(alpha));
    double squares = 0;
    for (std::int64_t i = 0; i < n; ++i) {
        const double value = x[i * step] / scale;
        squares += value * value;
    }
    beta = -std::copysign(scale * std::sqrt(squares), alpha);
    const double pivot = alpha - beta;
    for (std::int64_t i = 1; i < n; ++i) {
        v[i] = x[i * step] / pivot;
    }
    v[0] = 1;
    return (beta - alpha) / beta;
}

/// C ← (I − τ·v·vᵀ)·C.
template <std::int64_t lanes> TILEWISE_INLINE void from_left(const Block& c, const double* v, double tau) {
    using V = Lanes<lanes>;
    std::int64_t j = 0;
    for (; j + 4 <= c.columns; j += 4) {
        double* column[4] = {c.data + j * c.step, c.data + (j + 1) * c.step, c.data + (j + 2) * c.step,
                             c.data + (j + 3) * c.step};
        V part[4] = {};
        double dot[4] = {};
        std::int64_t i = 0;
        for (; i + lanes <= c.rows; i += lanes) {
            const V x = *reinterpret_cast<const V*>(v + i);
            for (int q = 0; q < 4; ++q) {
                part[q] += x * *reinterpret_cast<const V*>(column[q] + i);
            }
        }
        for (; i < c.rows; ++i) {
            for (int q = 0; q < 4; ++q) {
                dot[q] += v[i] * column[q][i];
            }
        }
        for (int q = 0; q < 4; ++q) {
            dot[q] = -tau * (dot[q] + sum_of<lanes>(part[q]));
        }
        for (i = 0; i + lanes <= c.rows; i += lanes) {
            const V x = *reinterpret_cast<const V*>(v + i);
            for (int q = 0; q < 4; ++q) {
                *reinterpret_cast<V*>(column[q] + i) += x * dot[q];
            }
        }
        for (; i < c.rows; ++i) {
            for (int q = 0; q < 4; ++q) {
                column[q][i] += v[i] * dot[q];
            }
        }
    }
    for (; j < c.columns; ++j) {
        double* column = c.data + j * c.step;
        double dot = 0;
        for (std::int64_t i = 0; i < c.rows; ++i) {
            dot += v[i] * column[i];
        }
        for (std::int64_t i = 0; i < c.rows; ++i) {
            column[i] -= tau * dot * v[i];
        }
    }
}

/// So many vectors of rows of C ← C·(I − τ·v·vᵀ).
template <std::int64_t lanes, std::size_t vectors> TILEWISE_INLINE void strip_from_right(const Block& c,
                                                                                         std::int64_t row,
                                                                                         const double* v, double tau) {
    using V = Lanes<lanes>;
    V sum[vectors] = {};
    const double* from = c.data + row;
    for (std::int64_t j = 0; j < c.columns; ++j, from += c.step) {
        for (std::size_t q = 0; q < vectors; ++q) {
            sum[q] += *reinterpret_cast<const V*>(from + q * static_cast<std::size_t>(lanes)) * v[j];
        }
    }
    for (std::size_t q = 0; q < vectors; ++q) {
        sum[q] *= -tau;
    }
    double* to = c.data + row;
    for (std::int64_t j = 0; j < c.columns; ++j, to += c.step) {
        for (std::size_t q = 0; q < vectors; ++q) {
            *reinterpret_cast<V*>(to + q * static_cast<std::size_t>(lanes)) += sum[q] * v[j];
        }
    }
}

/// C ← C·(I − τ·v·vᵀ).
template <std::int64_t lanes> TILEWISE_INLINE void from_right(const Block& c, const double* v, double tau) {
    std::int64_t i = 0;
    for (; i + 8 * lanes <= c.rows; i += 8 * lanes) {
        strip_from_right<lanes, 8>(c, i, v, tau);
    }
    for (; i + 4 * lanes <= c.rows; i += 4 * lanes) {
        strip_from_right<lanes, 4>(c, i, v, tau);
    }
    for (; i + lanes <= c.rows; i += lanes) {
        strip_from_right<lanes, 1>(c, i, v, tau);
    }
    for (; i < c.rows; ++i) {
        double sum = 0;
        for (std::int64_t j = 0; j < c.columns; ++j) {
            sum += c.data[i + j * c.step] * v[j];
        }
        for (std::int64_t j = 0; j < c.columns; ++j) {
            c.data[i + j * c.step] -= tau * sum * v[j];
        }
    }
}

/// One hop: V(s,t) is applied to D, then D's first column and E's first row are taken away. `v` becomes V(s,t+1), whose
/// τ is returned; u becomes U(s,t).
template <std::int64_t lanes> TILEWISE_INLINE double hop(Block d, Block e, double* v, double tau, double* u,
                                                         double* u_tau) {
    from_right<lanes>(d, v, tau);
    double beta = 0;
    *u_tau = reflector(d.rows, d.data, 1, u, beta);
    d.data[0] = beta;
    std::fill_n(d.data + 1, d.rows - 1, 0.0);
    from_left<lanes>({d.data + d.step, d.rows, d.columns - 1, d.step}, u, *u_tau);
    if (e.columns == 0) {
        return 0;
    }
    from_left<lanes>(e, u, *u_tau);
    const double next = reflector(e.columns, e.data, e.step, v, beta);
    e.data[0] = beta;
    for (std::int64_t j = 1; j < e.columns; ++j) {
        e.data[j * e.step] = 0;
    }
    from_right<lanes>({e.data + 1, e.rows - 1, e.columns, e.step}, v, next);
    return next;
}

TILEWISE_INLINE double begin_sweep(double* row, std::int64_t columns, std::int64_t step, double* v) {
    double beta = 0;
    const double tau = reflector(columns, row, step, v, beta);
    row[0] = beta;
    for (std::int64_t j = 1; j < columns; ++j) {
        row[j * step] = 0;
    }
    return tau;
}

/// Keeps a reflector with its τ where its 1 was.
void keep(double* place, const double* v, std::int64_t length, double tau) {
    std::copy_n(v, length, place);
    place[0] = tau;
}

}  // namespace

BandMatrix::BandMatrix(std::int64_t n, std::int64_t width) : n_(n), width_(width), memory_((n + 2) * 3 * width + n) {}

void chase_bulges(const BandMatrix& band, double* d, double* e, const ChasedReflectors& reflectors, int threads,
                  const Told& told) {
    const std::int64_t n = band.size(), b = band.width(), step = band.step();
    // Each of n sweeps makes n/2b hops on average, of four reflections of b×b numbers (B. Lang, "Parallel reduction of
    // banded matrices to bidiagonal form", 1996). The band is read in each.
    tell<double>({8.0 * static_cast<double>(n * n * b), static_cast<double>(n * n) * (reflectors.kept() ? 1 : 0)});
    constexpr std::int64_t all = std::numeric_limits<std::int64_t>::max();
    std::vector<std::atomic<std::int64_t>> hops(static_cast<std::size_t>(std::max<std::int64_t>(n, 1)));
    const auto sweep = [&](std::int64_t s, double* u, double* v) {
        const auto wait_for = [&](std::int64_t wanted) {
            while (s > 0 && hops[static_cast<std::size_t>(s - 1)].load(std::memory_order_acquire) < wanted) {
                std::this_thread::yield();
            }
        };
        wait_for(1);
        std::int64_t length = std::min(b, n - s - 1);
        double tau = in_versions<begin_sweep>(&band.at(s, s + 1), length, step, v);
        std::int64_t t = 0;
        for (std::int64_t row = s + 1; row < n; row += b, ++t) {
            wait_for(t + 2);
            const std::int64_t next = std::max<std::int64_t>(0, std::min(b, n - row - b));
            length = std::min(b, n - row);
            if (reflectors.kept()) {
                keep(reflectors.right(s, row), v, length, tau);
            }
            double u_tau = 0;
            tau = in_widths<hop<2>, hop<4>, hop<8>>(Block{&band.at(row, row), length, length, step},
                                                    Block{&band.at(row, row + length), length, next, step}, v, tau, u,
                                                    &u_tau);
            if (reflectors.kept()) {
                keep(reflectors.left(s, row), u, length, u_tau);
            }
            hops[static_cast<std::size_t>(s)].store(t + 1, std::memory_order_release);
        }
        hops[static_cast<std::size_t>(s)].store(all, std::memory_order_release);
    };
    std::atomic<std::int64_t> next = 0;
    parallel(static_cast<int>(std::clamp<std::int64_t>(n / (4 * b), 1, threads)), [&](int thread) {
        std::vector<double> u(static_cast<std::size_t>(b)), v(u.size());
        for (std::int64_t s = next++; s < n - 1; s = next++) {
            sweep(s, u.data(), v.data());
            if (thread == 0) {
                told(static_cast<double>(s + 2) / static_cast<double>(n));
            }
        }
    });
    for (std::int64_t i = 0; i < n; ++i) {
        d[i] = band.at(i, i);
        if (i + 1 < n) {
            e[i] = band.at(i, i + 1);
        }
    }
}

ChasedBlocks::ChasedBlocks(const ChasedReflectors& reflectors, bool left, int threads)
    : reflectors_(reflectors),
      left_(left) {
    const std::int64_t n = reflectors.size(), b = reflectors.width(), last = (n - 2) / sweeps_in_block;
    for (std::int64_t hop = 0; hop * b + 1 < n; ++hop) {
        for (std::int64_t group = last; group >= 0; --group) {
            const std::int64_t sweep = group * sweeps_in_block, row = sweep + 1 + hop * b;
            if (row < n) {
                places_.push_back({sweep, row, std::min({sweeps_in_block, n - 1 - sweep, n - row})});
            }
        }
    }
    t_ = Array<double>(std::ssize(places_) * sweeps_in_block * sweeps_in_block);
    const BlasThreads blas(1);
    parallel_ranges(threads, std::ssize(places_), [&](std::int64_t begin, std::int64_t end, int) {
        BlockReflector block;
        std::vector<double> tau(static_cast<std::size_t>(sweeps_in_block));
        for (std::int64_t i = begin; i < end; ++i) {
            load(places_[static_cast<std::size_t>(i)], block, tau.data());
            block.make_t(tau.data(), t_.data() + i * sweeps_in_block * sweeps_in_block);
        }
    });
}

void ChasedBlocks::load(const Place& place, BlockReflector& block, double* tau) const {
    const std::int64_t n = reflectors_.size(), b = reflectors_.width();
    block.shape(std::min(n - place.row, b + place.count - 1), place.count, b);
    for (std::int64_t j = 0; j < place.count; ++j) {
        const std::int64_t sweep = place.sweep + j, row = place.row + j;
        const double* from = left_ ? reflectors_.left(sweep, row) : reflectors_.right(sweep, row);
        tau[j] = from[0];
        block.v(j, j) = 1;
        for (std::int64_t i = 1; i < std::min(b, n - row); ++i) {
            block.v(j + i, j) = from[i];
        }
    }
}

void ChasedBlocks::apply(BlockReflector& block, double* slab, std::int64_t stride, std::int64_t width) const {
    std::vector<double> tau(static_cast<std::size_t>(sweeps_in_block));
    const double* t = t_.data();
    for (const Place& place : places_) {
        load(place, block, tau.data());
        block.set_t(t, place.count);
        block.apply(slab + place.row * stride, stride, width);
        t += sweeps_in_block * sweeps_in_block;
    }
}

}  // namespace tilewise::kernel
