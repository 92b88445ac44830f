// Panels are factored by LAPACK's recursive QR; products are cut into slabs, whatever the number of threads.
#include <algorithm>

#include "tilewise/base/threads.hpp"
#include "tilewise/kernel/factor/lapack.hpp"
#include "tilewise/kernel/factor/two_stage.hpp"
#include "tilewise/kernel/product/gemm.hpp"
#include "tilewise/kernel/transpose/transpose.hpp"

namespace tilewise::kernel {
namespace {

constexpr std::int64_t product_slab = 512;  // rows or columns of a product that one thread makes

/// A matrix or its transpose, column by column.
struct Factor {
    const double* data;
    std::int64_t stride;
    bool transposed = false;

    /// From this row on, or column of the transpose's transpose.
    Factor rows_from(std::int64_t row) const { return {data + row * (transposed ? stride : 1), stride, transposed}; }
    Factor columns_from(std::int64_t column) const {
        return {data + column * (transposed ? 1 : stride), stride, transposed};
    }
};

/// C (m×n, column by column) = A·B, or C + A·B, by one thread.
void product(std::int64_t m, std::int64_t n, std::int64_t k, const Factor& a, const Factor& b, double* c,
             std::int64_t c_stride, bool accumulate) {
    // Column by column is row by row of the transpose, of which B comes first.
    gemm({Dtype::float64, n, m, k, operand(b.data, b.stride, b.transposed), operand(a.data, a.stride, a.transposed),
          reinterpret_cast<std::byte*>(c), c_stride, accumulate},
         1);
}

/// The same by all threads, cut where C is long; one of them does `first` before.
template <class First> void shared_product(std::int64_t m, std::int64_t n, std::int64_t k, const Factor& a,
                                           const Factor& b, double* c, std::int64_t c_stride, bool accumulate,
                                           int threads, const First& first) {
    const std::int64_t down = (m + product_slab - 1) / product_slab, across = (n + product_slab - 1) / product_slab;
    parallel_tasks(threads, down * across + 1, [&](std::int64_t task, int) {
        if (task == 0) {
            return first();
        }
        const std::int64_t row = (task - 1) % down * product_slab, column = (task - 1) / down * product_slab;
        product(std::min(product_slab, m - row), std::min(product_slab, n - column), k, a.rows_from(row),
                b.columns_from(column), c + row + column * c_stride, c_stride, accumulate);
    });
}

void shared_product(std::int64_t m, std::int64_t n, std::int64_t k, const Factor& a, const Factor& b, double* c,
                    std::int64_t c_stride, bool accumulate, int threads) {
    shared_product(m, n, k, a, b, c, c_stride, accumulate, threads, [] {});
}

/// QR of a panel (m×k, m ≥ k): reflectors below the diagonal, R above, T (k×k).
void factor(double* panel, std::int64_t m, std::int64_t k, std::int64_t stride, double* t, std::int64_t t_stride) {
    check_lapack(lapack::geqrt3(lapack_int(m), lapack_int(k), panel, lapack_int(stride), t, lapack_int(t_stride)),
                 "geqrt3");
}

/// Copies the reflectors of a panel, with ones on the diagonal and zeros above.
void copy_reflectors(const double* panel, std::int64_t m, std::int64_t k, std::int64_t stride, double* to,
                     std::int64_t to_stride) {
    for (std::int64_t j = 0; j < k; ++j) {
        double* column = to + j * to_stride;
        std::fill_n(column, j, 0.0);
        column[j] = 1;
        std::copy(panel + j * stride + j + 1, panel + j * stride + m, column + j + 1);
    }
}

/// B (k×n) ← factor·op(T)·B, T an upper triangle; `work`: k×n.
void times_triangle(bool transposed, double factor, std::int64_t k, std::int64_t n, const double* t,
                    std::int64_t t_stride, double* b, std::int64_t b_stride) {
    const int rows = lapack_int(k), columns = lapack_int(n), lda = lapack_int(t_stride), ldb = lapack_int(b_stride);
    tell<double>(effort::trmm(true, rows, columns));
    TILEWISE_BLAS(dtrmm_)("L", "U", transposed ? "T" : "N", "N", &rows, &columns, &factor, t, &lda, b, &ldb);
}

class Reduction {
public:
    Reduction(const Columns& a, std::int64_t width, BandReflectors& out, int threads)
        : a_(a),
          width_(width),
          threads_(threads),
          out_(out),
          tall_(a.rows * 2 * width),
          flat_(a.count * 2 * width),
          rows_(a.count * width) {}

    /// QR of the panel at `begin`, which is up to date.
    void factor_panel(std::int64_t begin) {
        factor(a_.column(begin) + begin, a_.rows - begin, std::min(width_, a_.count - begin), a_.stride,
               out_.left_t.data() + begin * width_, width_);
    }

    /// W for the columns that follow the factored panel at `begin`; `tall_` has Y₁ and `flat_` −W.
    void from_left(std::int64_t begin, std::int64_t k) {
        const std::int64_t height = a_.rows - begin, left = a_.count - begin - k;
        const double *panel = a_.column(begin) + begin, *t = out_.left_t.data() + begin * width_;
        copy_reflectors(panel, height, k, a_.stride, tall_.data(), height);
        shared_product(k, left, height, {tall_.data(), height, true}, {panel + k * a_.stride, a_.stride}, flat_.data(),
                       2 * width_, false, threads_);
        if (left > 0) {
            times_triangle(true, -1.0, k, left, t, width_, flat_.data(), 2 * width_);
        }
    }

    /// The rows of the panel, brought up to date and factored: L, and Y₂ in `rows_`, its transpose below −W.
    std::int64_t from_right(std::int64_t begin, std::int64_t k) {
        const std::int64_t height = a_.rows - begin, left = a_.count - begin - k, count = std::min(k, left);
        double* block = a_.column(begin + k) + begin;
        product(k, left, k, {tall_.data(), height}, {flat_.data(), 2 * width_}, block, a_.stride, true);
        double* y = rows_.data();
        for (std::int64_t j = 0; j < left; ++j) {
            for (std::int64_t i = 0; i < k; ++i) {
                y[i * left + j] = block[i + j * a_.stride];
            }
        }
        double* t = out_.right_t.data() + begin * width_;
        if (left >= k) {
            factor(y, left, k, left, t, width_);
        } else {
            factor_wide(y, left, k, t);
        }
        for (std::int64_t j = 0; j < left; ++j) {
            for (std::int64_t i = 0; i < k; ++i) {
                block[i + j * a_.stride] = y[i * left + j];
            }
        }
        copy_reflectors(y, left, count, left, y, left);
        for (std::int64_t j = 0; j < left; ++j) {
            for (std::int64_t i = 0; i < count; ++i) {
                flat_[j * 2 * width_ + k + i] = y[i * left + j];
            }
        }
        return count;
    }

    /// What is left of A, the next panel of columns first: it is factored while the others are computed.
    void update(std::int64_t begin, std::int64_t k, std::int64_t count) {
        const std::int64_t height = a_.rows - begin, below = height - k, left = a_.count - begin - k;
        double* rest = a_.column(begin + k) + begin + k;
        const double *y1 = tall_.data() + k, *y2 = rows_.data();
        double* x = tall_.data() + k * height + k;
        shared_product(below, count, left, {rest, a_.stride}, {y2, left}, x, height, false, threads_);
        const Array<double> wy(k * count);
        product(k, count, left, {flat_.data(), 2 * width_}, {y2, left}, wy.data(), k, false);
        shared_product(below, count, k, {y1, height}, {wy.data(), k}, x, height, true, threads_);
        const double minus = -1;
        const int m = lapack_int(below), n = lapack_int(count), ldt = lapack_int(width_), ldx = lapack_int(height);
        if (below > 0) {
            tell<double>(effort::trmm(false, m, n));
            TILEWISE_BLAS(dtrmm_)
            ("R", "U", "N", "N", &m, &n, &minus, out_.right_t.data() + begin * width_, &ldt, x, &ldx);
        }
        finish(begin + k, below, k + count, y1, height, rest);
    }

    /// The rows below the panel where there are no reflectors from the right; the next panel as above.
    void update_from_left(std::int64_t begin, std::int64_t k) {
        const std::int64_t height = a_.rows - begin;
        if (begin + k < a_.count) {
            finish(begin + k, height, k, tall_.data(), height, a_.column(begin + k) + begin);
        }
    }

private:
    /// C ← C + Y·`flat_` for the columns from `next` on, the first panel of which is factored as soon as it is done.
    void finish(std::int64_t next, std::int64_t rows, std::int64_t k, const double* y, std::int64_t y_stride,
                double* c) {
        const std::int64_t panel = std::min(width_, a_.count - next), left = a_.count - next - panel;
        const Factor b{flat_.data(), 2 * width_};
        shared_product(rows, panel, k, {y, y_stride}, b, c, a_.stride, true, threads_);
        shared_product(rows, left, k, {y, y_stride}, b.columns_from(panel), c + panel * a_.stride, a_.stride, true,
                       threads_, [&] { factor_panel(next); });
    }

    /// QR of fewer rows than columns: that of the square part, and the rest multiplied.
    void factor_wide(double* y, std::int64_t m, std::int64_t k, double* t) {
        if (m == 0) {
            return;
        }
        factor(y, m, m, m, t, width_);
        const Array<double> q(m * m), w(m * (k - m));
        copy_reflectors(y, m, m, m, q.data(), m);
        double* rest = y + m * m;
        product(m, k - m, m, {q.data(), m, true}, {rest, m}, w.data(), m, false);
        times_triangle(true, -1.0, m, k - m, t, width_, w.data(), m);
        product(m, k - m, m, {q.data(), m}, {w.data(), m}, rest, m, true);
    }

    Columns a_;
    std::int64_t width_;
    int threads_;
    BandReflectors& out_;
    Array<double> tall_, flat_, rows_;
};

void prepare(const Columns& a, std::int64_t width, BandReflectors& out) {
    out.a = a;
    out.width = width;
    out.left_t = Array<double>(out.panels() * width * width);
    out.right_t = Array<double>(out.panels() * width * width);
}

}  // namespace

std::int64_t BandReflectors::left_count(std::int64_t panel) const { return std::min(width, a.count - panel * width); }

std::int64_t BandReflectors::right_count(std::int64_t panel) const {
    return std::max<std::int64_t>(0, std::min(width, a.count - (panel + 1) * width));
}

std::int64_t BandReflectors::left(std::int64_t panel, BlockReflector& block) const {
    const std::int64_t begin = panel * width, count = left_count(panel), height = a.rows - begin;
    constexpr auto item = static_cast<std::int64_t>(sizeof(double));
    TransposeTile tile = default_transpose_tile(sizeof(double));
    tile.streaming = false;  // V is read at once
    block.shape(height, count, height);
    transpose(reinterpret_cast<const std::byte*>(a.column(begin) + begin), a.stride * item, count, height,
              sizeof(double), reinterpret_cast<std::byte*>(&block.v(0, 0)), block.stride() * item, 1, tile);
    for (std::int64_t i = 0; i < count; ++i) {
        block.v(i, i) = 1;
        std::fill_n(&block.v(i, i) + 1, count - i - 1, 0.0);
    }
    block.set_t(left_t.data() + begin * width, width);
    return begin;
}

std::int64_t BandReflectors::right(std::int64_t panel, BlockReflector& block) const {
    const std::int64_t begin = (panel + 1) * width, count = right_count(panel), height = a.count - begin;
    block.shape(height, count, height);
    for (std::int64_t i = 0; i < height; ++i) {
        const double* column = a.column(begin + i) + panel * width;
        std::copy_n(column, std::min(i, count), &block.v(i, 0));
        if (i < count) {
            block.v(i, i) = 1;
        }
    }
    block.set_t(right_t.data() + panel * width * width, width);
    return begin;
}

BandMatrix reduce_to_band(const Columns& a, std::int64_t width, BandReflectors& reflectors, int threads,
                          const Told& told) {
    prepare(a, width, reflectors);
    const BlasThreads blas(1);
    BandMatrix band(a.count, width);
    Reduction reduce(a, width, reflectors, threads);
    reduce.factor_panel(0);
    for (std::int64_t begin = 0; begin < a.count; begin += width) {
        const std::int64_t k = std::min(width, a.count - begin);
        reduce.from_left(begin, k);
        if (const std::int64_t count = a.count > begin + k ? reduce.from_right(begin, k) : 0; count > 0) {
            reduce.update(begin, k, count);
        }
        for (std::int64_t j = begin; j < std::min(a.count, begin + 2 * width); ++j) {
            const std::int64_t first = j < begin + k ? begin : j - width;
            for (std::int64_t i = first; i <= std::min(j, begin + k - 1); ++i) {
                band.at(i, j) = a.column(j)[i];
            }
        }
        told(static_cast<double>(begin + k) / static_cast<double>(a.count));
    }
    return band;
}

void reduce_to_triangle(const Columns& a, std::int64_t width, double* r, BandReflectors& reflectors, int threads) {
    prepare(a, width, reflectors);
    const BlasThreads blas(1);
    Reduction reduce(a, width, reflectors, threads);
    reduce.factor_panel(0);
    for (std::int64_t begin = 0; begin < a.count; begin += width) {
        const std::int64_t k = std::min(width, a.count - begin);
        reduce.from_left(begin, k);
        reduce.update_from_left(begin, k);
    }
    for (std::int64_t j = 0; j < a.count; ++j) {
        std::copy_n(a.column(j), j + 1, r + j * a.count);
        std::fill_n(r + j * a.count + j + 1, a.count - j - 1, 0.0);
    }
}

}  // namespace tilewise::kernel
