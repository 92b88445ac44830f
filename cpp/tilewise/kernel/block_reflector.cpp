// The kernel, in a version for each width of vectors: a tile of so many rows by three vectors stays in registers.
//
// It is the product kernel of gemm_tiled.cpp without packing. A strip of C is three vectors wide: W (count×strip) and
// T·W stay in the first-level cache, and of C a window of some rows passes through it twice.
#include "tilewise/kernel/block_reflector.hpp"

#include <algorithm>

#include "tilewise/kernel/lapack_number.hpp"
#include "tilewise/kernel/versions.hpp"

namespace tilewise::kernel {
namespace {

constexpr std::int64_t window = 32;  // rows of C that stay in the first-level cache

/// What apply() has to know, by value.
struct Shape {
    std::int64_t rows, count, reach, stride;
};

template <int lanes> struct Lanes;
template <> struct Lanes<2> {
    typedef double type __attribute__((vector_size(16), aligned(sizeof(double)), may_alias));
};
template <> struct Lanes<4> {
    typedef double type __attribute__((vector_size(32), aligned(sizeof(double)), may_alias));
};
template <> struct Lanes<8> {
    typedef double type __attribute__((vector_size(64), aligned(sizeof(double)), may_alias));
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

template <int lanes, int height>
TILEWISE_INLINE void apply_strip(const Shape& s, const double* v, const double* t, double* c, std::int64_t c_step) {
    constexpr std::int64_t strip = 3 * lanes;
    constexpr auto size = static_cast<std::size_t>(most_reflectors * strip);
    alignas(64) double w[size], tw[size];
    std::fill_n(w, s.stride * strip, 0.0);
    std::fill_n(tw, s.stride * strip, 0.0);
    for (std::int64_t top = 0; top < s.rows; top += window) {
        const std::int64_t bottom = std::min(top + window, s.rows);
        for (std::int64_t j = 0; j < s.stride; j += height) {
            const std::int64_t begin = std::max(top, j), end = std::min(bottom, j + height - 1 + s.reach);
            if (begin < end) {
                tile<lanes, std::size_t{height}, false>(v + j, 1, s.stride, c, c_step, begin, end, w + j * strip,
                                                        strip);
            }
        }
    }
    for (std::int64_t j = 0; j < s.stride; j += height) {
        tile<lanes, std::size_t{height}, false>(t + j * s.stride, s.stride, 1, w, strip, j, s.count, tw + j * strip,
                                                strip);
    }
    for (std::int64_t i = 0; i < s.rows; i += height) {
        const std::int64_t begin = std::max<std::int64_t>(0, i - s.reach + 1), end = std::min(s.count, i + height);
        if (begin < end) {
            tile<lanes, std::size_t{height}, true>(v + i * s.stride, s.stride, 1, tw, strip, begin, end, c + i * c_step,
                                                   c_step);
        }
    }
}

template <int lanes, int height> TILEWISE_INLINE void apply_block(Shape s, const double* v, const double* t, double* c,
                                                                  std::int64_t c_step, std::int64_t width) {
    for (std::int64_t x = 0; x < width; x += 3 * lanes) {
        apply_strip<lanes, height>(s, v, t, c + x, c_step);
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

void BlockReflector::apply(double* c, std::int64_t stride, std::int64_t width) const {
    const Shape s{rows_, count_, reach_, stride_};
#if defined(TILEWISE_VERSIONS)
    if (backend().versions == Instructions::avx512) {
        in_avx512<apply_block<8, 8>>(s, static_cast<const double*>(v_.data()), static_cast<const double*>(t_.data()), c,
                                     stride, width);
        return;
    }
    if (backend().versions == Instructions::avx2) {
        in_avx2<apply_block<4, 4>>(s, static_cast<const double*>(v_.data()), static_cast<const double*>(t_.data()), c,
                                   stride, width);
        return;
    }
#endif
    apply_block<2, 4>(s, v_.data(), t_.data(), c, stride, width);
}

}  // namespace tilewise::kernel
