// The stages one after the other; each lets go of what the next does not need.
#include "tilewise/kernel/factor/two_stage.hpp"

#include <algorithm>
#include <cmath>

#include "tilewise/base/clock.hpp"
#include "tilewise/base/threads.hpp"
#include "tilewise/kernel/transpose/transpose.hpp"

namespace tilewise::kernel {
namespace {

constexpr int most_exponent = 300;  // beyond which numbers are scaled
constexpr auto item = static_cast<std::int64_t>(sizeof(double));
/// Where each stage begins, in the time of all: to a band, to two diagonals, divide and conquer, and back twice.
constexpr double begins[] = {0.0, 0.2, 0.4, 0.55, 0.775, 1.0};

}  // namespace

TwoStageSvd::TwoStageSvd(Array<double> a, std::int64_t rows, std::int64_t columns, bool vectors, int threads,
                         std::int64_t width, Told told)
    : rows_(rows),
      columns_(columns),
      vectors_(vectors),
      threads_(threads),
      told_(std::move(told)),
      a_(std::move(a)),
      sigma_(static_cast<std::size_t>(columns)) {
    Stopwatch clock;
    const std::int64_t n = columns;
    const int scale = scale_down();
    width = width > 0 ? width : std::max<std::int64_t>(1, std::min(band_width, n - 1));
    Columns full{a_.data(), rows, n, rows};
    if (3 * rows >= 5 * n) {
        triangle_ = Array<double>(n * n);
        reduce_to_triangle(full, width, triangle_.data(), tall_, threads);
        full = {triangle_.data(), n, n, n};
        if (!vectors) {
            a_ = {};
        }
    }
    const BandMatrix band = reduce_to_band(full, width, band_, threads, [this](double done) { tell(0, done); });
    if (!vectors) {
        a_ = {};
        triangle_ = {};
    }
    seconds_.band = clock();
    if (vectors) {
        chased_ = ChasedReflectors(n, width);
    }
    std::vector<double> e(sigma_.size());
    chase_bulges(band, sigma_.data(), e.data(), chased_, threads, [this](double done) { tell(1, done); });
    seconds_.chase = clock();
    if (vectors) {
        u_ = Array<double>(n * n);
        vt_ = Array<double>(n * n);
    }
    bidiagonal_svd(n, sigma_.data(), e.data(), vectors ? u_.data() : nullptr, vectors ? vt_.data() : nullptr, threads);
    for (double& value : sigma_) {
        value = std::ldexp(value, scale);
    }
    seconds_.divide = clock();
}

void TwoStageSvd::tell(std::size_t stage, double share) const {
    const double done = begins[stage] + (begins[stage + 1] - begins[stage]) * share;
    told_(vectors_ ? done : done / begins[2]);
}

/// Where squares could overflow or vanish, A is divided by a power of two; of which this is the exponent.
int TwoStageSvd::scale_down() const {
    double largest = 0;
    for (std::int64_t i = 0; i < rows_ * columns_; ++i) {
        largest = std::max(largest, std::abs(a_[i]));
    }
    const int exponent = largest > 0 ? std::ilogb(largest) : 0;
    if (std::abs(exponent) < most_exponent) {
        return 0;
    }
    for (std::int64_t i = 0; i < rows_ * columns_; ++i) {
        a_[i] = std::ldexp(a_[i], -exponent);
    }
    return exponent;
}

Array<double> TwoStageSvd::left(std::int64_t count, bool by_rows) { return back(true, count, by_rows); }
Array<double> TwoStageSvd::right(std::int64_t count, bool by_rows) { return back(false, count, by_rows); }

Array<double> TwoStageSvd::back(bool left, std::int64_t count, bool by_rows) {
    Stopwatch clock;
    const std::int64_t n = columns_, rows = left ? rows_ : n;
    // Where a slab goes back to where it came from, the vectors need no other memory.
    Array<double>& from = left ? u_ : vt_;
    const bool in_place = left ? !by_rows && rows == n : by_rows && count == n;
    Array<double> source = std::move(from);
    Array<double> other(in_place ? 0 : rows * count);
    double* out = in_place ? source.data() : other.data();
    const ChasedBlocks chased(chased_, left, threads_);
    const std::int64_t fewest = (count + slab_columns - 1) / slab_columns,
                       slabs = (fewest + threads_ - 1) / threads_ * threads_,
                       units = (count + slab_unit * slabs - 1) / (slab_unit * slabs), most = units * slab_unit;
    const BandReflectors& tall = tall_;
    std::vector<BlockReflector> blocks(static_cast<std::size_t>(threads_));
    std::vector<Array<double>> memory(blocks.size());
    parallel_tasks(threads_, (count + most - 1) / most, [&](std::int64_t task, int thread) {
        const std::int64_t begin = task * most, wide = std::min(most, count - begin),
                           width = (wide + slab_unit - 1) / slab_unit * slab_unit;
        BlockReflector& block = blocks[static_cast<std::size_t>(thread)];
        const std::int64_t size = (rows + slab_margin) * width;
        double* slab = memory[static_cast<std::size_t>(thread)].grow(size);
        std::fill_n(slab, size, 0.0);
        if (left) {
            transpose(reinterpret_cast<const std::byte*>(source.data() + begin * n), n * item, wide, n, sizeof(double),
                      reinterpret_cast<std::byte*>(slab), width * item, 1);
        } else {
            for (std::int64_t i = 0; i < n; ++i) {
                std::copy_n(source.data() + i * n + begin, wide, slab + i * width);
            }
        }
        chased.apply(block, slab, width, width);
        for (std::int64_t panel = band_.panels() - 1; panel >= 0; --panel) {
            if (left || band_.right_count(panel) > 0) {
                const std::int64_t row = left ? band_.left(panel, block) : band_.right(panel, block);
                block.apply(slab + row * width, width, width);
            }
        }
        for (std::int64_t panel = left && tall.width > 0 ? tall.panels() - 1 : -1; panel >= 0; --panel) {
            const std::int64_t row = tall.left(panel, block);
            block.apply(slab + row * width, width, width);
        }
        if (by_rows) {
            for (std::int64_t i = 0; i < rows; ++i) {
                std::copy_n(slab + i * width, wide, out + i * count + begin);
            }
        } else {
            transpose(reinterpret_cast<const std::byte*>(slab), width * item, rows, wide, sizeof(double),
                      reinterpret_cast<std::byte*>(out + begin * rows), rows * item, 1);
        }
        if (thread == 0) {
            tell(stage_, static_cast<double>(begin + wide) / static_cast<double>(count));
        }
    });
    ++stage_;
    seconds_.back += clock();
    return in_place ? std::move(source) : std::move(other);
}

}  // namespace tilewise::kernel
