// LAPACK's QR for the head, the stacked QR for all that follows.
#include "tilewise/svd/tall_chain.hpp"

#include <algorithm>
#include <filesystem>

#include "tilewise/kernel/factor/lapack_number.hpp"
#include "tilewise/kernel/factor/stacked_qr.hpp"

namespace tilewise::svd {
namespace {

using kernel::lapack_int;

/// The upper triangle of n columns, column after column, and back.
template <class T> void pack(const T* r, std::int64_t n, T* to) {
    for (std::int64_t j = 0; j < n; ++j) {
        to = std::copy_n(r + j * n, j + 1, to);
    }
}
template <class T> void unpack(const T* from, std::int64_t n, T* r) {
    for (std::int64_t j = 0; j < n; from += ++j) {
        std::copy_n(from, j + 1, r + j * n);
    }
}

}  // namespace

template <class T>
RowChain<T>::RowChain(std::int64_t columns)
    : n_(columns),
      head_(columns * columns),
      r_(columns * columns),
      t_(columns * columns),
      tau_(static_cast<std::size_t>(columns)) {}

template <class T> void RowChain<T>::begin(const T* rows, std::int64_t count, std::int64_t stride) {
    height_ = count;
    std::fill_n(r_.data(), n_ * n_, T{});
    if (count == 0) {
        return;
    }
    for (std::int64_t j = 0; j < n_; ++j) {
        std::copy_n(rows + j * stride, count, head_.data() + j * count);
    }
    std::vector<T> work(static_cast<std::size_t>(64 * n_));
    kernel::check_lapack(kernel::lapack::geqrf(lapack_int(count), lapack_int(n_), head_.data(), lapack_int(count),
                                               tau_.data(), work.data(), lapack_int(std::ssize(work))),
                         "geqrf");
    for (std::int64_t j = 0; j < n_; ++j) {
        std::copy_n(head_.data() + j * count, std::min(j + 1, count), r_.data() + j * n_);
    }
}

template <class T> void RowChain<T>::add(T* panel, std::int64_t rows, std::int64_t stride, T* before) {
    pack(r_.data(), n_, before);
    kernel::stacked_qr(n_, r_.data(), rows, panel, stride, t_.data(), kernel::Reflectors::triangle);
}

template <class T> void RowChain<T>::turn(const T* b, std::int64_t count) {
    count_ = count;
    b_ = Array<T>(n_ * count);
    c_ = Array<T>(n_ * count);
    for (std::int64_t i = 0; i < height_; ++i) {
        for (std::int64_t j = 0; j < count; ++j) {
            b_[j * height_ + i] = b[i * count + j];
        }
    }
}

template <class T> void RowChain<T>::back(T* panel, std::int64_t rows, std::int64_t panel_stride, const T* before, T* u,
                                          std::int64_t u_stride, bool by_rows) {
    if (rows == 0) {
        return;
    }
    unpack(before, n_, r_.data());
    kernel::stacked_qr(n_, r_.data(), rows, panel, panel_stride, t_.data(), kernel::Reflectors::whole);
    kernel::stacked_top(n_, count_, t_.data(), b_.data(), c_.data());
    const int high = lapack_int(rows), n = lapack_int(n_), k = lapack_int(count_), ldv = lapack_int(panel_stride);
    if (by_rows) {  // the transpose, column by column
        kernel::lapack::gemm("T", "T", k, high, n, -1.0, c_.data(), n, panel, ldv, 0.0, u, k);
    } else {
        kernel::lapack::gemm("N", "N", high, k, n, -1.0, panel, ldv, c_.data(), n, 0.0, u, lapack_int(u_stride));
    }
}

template <class T> void RowChain<T>::back_to_head(T* u, std::int64_t u_stride, bool by_rows) {
    if (height_ == 0 || count_ == 0) {
        return;
    }
    std::vector<T> work(static_cast<std::size_t>(32 * count_ + 65 * 64));
    kernel::check_lapack(
        kernel::lapack::ormqr(lapack_int(height_), lapack_int(count_), lapack_int(std::min(height_, n_)), head_.data(),
                              lapack_int(height_), tau_.data(), b_.data(), lapack_int(height_), work.data(),
                              lapack_int(std::ssize(work))),
        "ormqr");
    for (std::int64_t j = 0; j < count_; ++j) {
        for (std::int64_t i = 0; i < height_; ++i) {
            u[by_rows ? i * count_ + j : j * u_stride + i] = b_[j * height_ + i];
        }
    }
}

template <class T>
TriangleFile<T>::TriangleFile(const std::string& output, std::int64_t columns, int lanes)
    : bytes_(RowChain<T>::packed(columns) * static_cast<std::int64_t>(sizeof(T))),
      lanes_(lanes) {
    const std::string folder = output.empty() ? std::filesystem::temp_directory_path().string()
                                              : std::filesystem::absolute(output).parent_path().string();
    file_.emplace(folder, folder, io::PosixFile::Mode::scratch);
}

template <class T> void TriangleFile<T>::keep(std::int64_t step, int lane, const Array<T>& packed) const {
    file_->write(packed.raw(), bytes_, place(step, lane));
}

template <class T> void TriangleFile<T>::recall(std::int64_t step, int lane, const Array<T>& packed) const {
    file_->read(packed.raw(), bytes_, place(step, lane));
}

template class TriangleFile<double>;
template class TriangleFile<kernel::Complex>;
template class RowChain<double>;
template class RowChain<kernel::Complex>;

}  // namespace tilewise::svd
