// V and T as the kernel takes them (see reflect.hpp).
#include "tilewise/kernel/factor/block_reflector.hpp"

#include <algorithm>

#include "tilewise/kernel/factor/lapack.hpp"
#include "tilewise/kernel/isa/backend.hpp"

namespace tilewise::kernel {

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
    const auto k = static_cast<double>(count_), n = static_cast<double>(width);
    const double of_v = k * static_cast<double>(std::min(rows_, reach_));
    tell<double>({4 * of_v * n + k * k * n, of_v + 2 * static_cast<double>(rows_) * n});
    backend().reflect({rows_, count_, reach_, stride_}, v_.data(), t_.data(), c, stride, width,
                      w_.grow(2 * stride_ * width));
}

}  // namespace tilewise::kernel
