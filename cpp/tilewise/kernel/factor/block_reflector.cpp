// The kernel, in a version for each width of vectors: a tile of so many rows by three vectors stays in registers.
//
// It is the product kernel of gemm_tiled.cpp without packing. A strip of C is three vectors wide: its W (count×strip)
// and T·W stay in the first-level cache, and of C a window of some rows passes through it twice. A V that the
// second-level cache cannot hold is taken in blocks of rows: all strips pass by a block before the next.
#include "tilewise/kernel/factor/block_reflector.hpp"

#include <algorithm>

#include "tilewise/kernel/factor/lapack_number.hpp"
#include "tilewise/kernel/versions.hpp"

namespace tilewise::kernel {
namespace {

constexpr std::int64_t window = 32;       // rows of C that stay in the first-level cache
constexpr std::int64_t block_rows = 256;  // rows of V that stay in the second-level cache

/// What apply() has to know, by value.
struct Shape {
    std::int64_t rows, count, reach, stride;
};

/// A tile of `height` rows and three vectors: c ± Σ a(r, p)·b(p) over p in [begin, end). C takes part once, at the end,
/// so that it is rounded once.
template <int lanes, std::size_t height, bool subtract>
TILEWISE_INLINE void tile(const double* a, std::int64_t row_step, std::int64_t step, const double* b,
                          std::int64_t b_step, std::int64_t begin, std::int64_t end, double* c, std::int64_t c_step) {
    using V = typename Lanes<lanes>::type;
    V sum[height][3];
#pragma GCC unroll 8
    for (std::int64_t r = 0; r < static_cast<std::int64_t>(height); ++r) {
        sum[r][0] = sum[r][1] = sum[r][2] = V{};
    }
    a += begin * step;
    b += begin * b_step;
    for (std::int64_t p = begin; p < end; ++p) {
        const V* row = reinterpret_cast<const V*>(b);
        const V b0 = row[0], b1 = row[1], b2 = row[2];
#pragma GCC unroll 8
        for (std::int64_t r = 0; r < static_cast<std::int64_t>(height); ++r) {
            const V factor = V{} + a[r * row_step];
            sum[r][0] += factor * b0;
            sum[r][1] += factor * b1;
            sum[r][2] += factor * b2;
        }
        a += step;
        b += b_step;
    }
#pragma GCC unroll 8
    for (std::int64_t r = 0; r < static_cast<std::int64_t>(height); ++r) {
        V* row = reinterpret_cast<V*>(c + r * c_step);
        row[0] = subtract ? row[0] - sum[r][0] : row[0] + sum[r][0];
        row[1] = subtract ? row[1] - sum[r][1] : row[1] + sum[r][1];
        row[2] = subtract ? row[2] - sum[r][2] : row[2] + sum[r][2];
    }
}

/// W ← W + Vᵀ·C for rows [top, bottom).
template <int lanes, int height>
TILEWISE_INLINE void gather(const Shape& s, const double* v, std::int64_t top, std::int64_t bottom, const double* c,
                            std::int64_t c_step, double* w) {
    constexpr std::int64_t strip = 3 * lanes;
    for (std::int64_t row = top; row < bottom; row += window) {
        const std::int64_t last = std::min(row + window, bottom);
        for (std::int64_t j = 0; j < s.stride; j += height) {
            const std::int64_t begin = std::max(row, j), end = std::min(last, j + height - 1 + s.reach);
            if (begin < end) {
                tile<lanes, std::size_t{height}, false>(v + j, 1, s.stride, c, c_step, begin, end, w + j * strip,
                                                        strip);
            }
        }
    }
}

/// C ← C − V·(T·W) for rows [top, bottom).
template <int lanes, int height>
TILEWISE_INLINE void spread(const Shape& s, const double* v, std::int64_t top, std::int64_t bottom, const double* tw,
                            double* c, std::int64_t c_step) {
    constexpr std::int64_t strip = 3 * lanes;
    for (std::int64_t i = top; i < bottom; i += height) {
        const std::int64_t begin = std::max<std::int64_t>(0, i - s.reach + 1), end = std::min(s.count, i + height);
        if (begin < end) {
            tile<lanes, std::size_t{height}, true>(v + i * s.stride, s.stride, 1, tw, strip, begin, end, c + i * c_step,
                                                   c_step);
        }
    }
}

/// `memory`: W and T·W of all strips.
template <int lanes, int height> TILEWISE_INLINE void apply_block(Shape s, const double* v, const double* t, double* c,
                                                                  std::int64_t c_step, std::int64_t width,
                                                                  double* memory) {
    constexpr std::int64_t strip = 3 * lanes;
    const std::int64_t size = s.stride * strip, together = s.rows > block_rows ? width : strip;
    for (std::int64_t left = 0; left < width; left += together) {
        const std::int64_t strips = together / strip;
        double* tw = memory + strips * size;
        std::fill_n(memory, 2 * strips * size, 0.0);
        for (std::int64_t top = 0; top < s.rows; top += block_rows) {
            for (std::int64_t x = 0; x < strips; ++x) {
                gather<lanes, height>(s, v, top, std::min(top + block_rows, s.rows), c + left + x * strip, c_step,
                                      memory + x * size);
            }
        }
        for (std::int64_t x = 0; x < strips; ++x) {
            for (std::int64_t j = 0; j < s.stride; j += height) {
                tile<lanes, std::size_t{height}, false>(t + j * s.stride, s.stride, 1, memory + x * size, strip, j,
                                                        s.count, tw + x * size + j * strip, strip);
            }
        }
        for (std::int64_t top = 0; top < s.rows; top += block_rows) {
            for (std::int64_t x = 0; x < strips; ++x) {
                spread<lanes, height>(s, v, top, std::min(top + block_rows, s.rows), tw + x * size,
                                      c + left + x * strip, c_step);
            }
        }
    }
}

}  // namespace

void BlockReflector::shape(std::int64_t rows, std::int64_t count, std::int64_t reach) {
    rows_ = rows;
    count_ = count;
    reach_ = reach;
    stride_ = (count + 7) / 8 * 8;
    const std::int64_t size = (rows + slab_margin) * stride_;
    std::fill_n(v_.grow(size), size, 0.0);
}

void BlockReflector::set_t(const double* t, std::int64_t stride) {
    std::fill_n(t_.grow(stride_ * stride_), stride_ * stride_, 0.0);
    for (std::int64_t j = 0; j < count_; ++j) {
        for (std::int64_t i = 0; i <= j; ++i) {
            t_[i * stride_ + j] = t[j * stride + i];
        }
    }
}

void BlockReflector::make_t(const double* tau, double* t) const {
    const int k = lapack_int(count_), h = lapack_int(rows_), ld = lapack_int(stride_);
    // V lies row by row: its Gram matrix is that of the transpose that BLAS sees.
    lapack::gemm("N", "T", k, k, h, 1.0, v_.data(), ld, v_.data(), ld, 0.0, t, k);
    for (std::int64_t j = 0; j < count_; ++j) {
        double* column = t + j * count_;
        for (std::int64_t i = 0; i < j; ++i) {  // T[0:j, j] = −τ·T[0:j, 0:j]·(Vᵀ·v), from the top
            double sum = 0;
            for (std::int64_t p = i; p < j; ++p) {
                sum += t[p * count_ + i] * column[p];
            }
            column[i] = -tau[j] * sum;
        }
        column[j] = tau[j];
        std::fill(column + j + 1, column + count_, 0.0);
    }
}

void BlockReflector::apply(double* c, std::int64_t stride, std::int64_t width) {
    const Shape s{rows_, count_, reach_, stride_};
    const auto k = static_cast<double>(count_), n = static_cast<double>(width);
    const double of_v = k * static_cast<double>(std::min(rows_, reach_));
    tell<double>({4 * of_v * n + k * k * n, of_v + 2 * static_cast<double>(rows_) * n});
    double* memory = w_.grow(2 * stride_ * width);
    const double *v = v_.data(), *t = t_.data();
    in_widths<apply_block<2, 4>, apply_block<4, 4>, apply_block<8, 8>>(s, v, t, c, stride, width, memory);
}

}  // namespace tilewise::kernel
