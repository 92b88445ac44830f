// Blocks are listed once; their T is made by all threads, V again for each slab.
#include "tilewise/kernel/factor/chased_back.hpp"

#include <algorithm>
#include <vector>

#include "tilewise/base/threads.hpp"
#include "tilewise/kernel/factor/lapack.hpp"

namespace tilewise::kernel {

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
