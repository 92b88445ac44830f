// Rectangles are products of one thread each, squares on the diagonal half of one; mirror images are transpositions.
#include <algorithm>
#include <atomic>
#include <complex>
#include <cstring>
#include <limits>

#include "tilewise/base/threads.hpp"
#include "tilewise/base/work.hpp"
#include "tilewise/grid/layout.hpp"
#include "tilewise/kernel/factor/lapack.hpp"
#include "tilewise/kernel/lent.hpp"
#include "tilewise/kernel/product/gemm.hpp"
#include "tilewise/kernel/product/gemm_tiled.hpp"
#include "tilewise/kernel/transpose/transpose.hpp"

namespace tilewise::kernel {
namespace {

bool on_diagonal(const grid::Block& block) { return block.rows == block.columns; }

/// Elements that are computed.
std::int64_t work_of(const grid::Block& block) { return on_diagonal(block) ? block.size() / 2 : block.size(); }

std::int64_t work_of(const std::vector<grid::Block>& blocks) {
    std::int64_t sum = 0;
    for (const grid::Block& block : blocks) {
        sum += work_of(block);
    }
    return sum;
}

bool syrk_takes(const Product& p) {
    constexpr std::int64_t int_max = std::numeric_limits<int>::max();
    return !is_integer(p.dtype) && std::max({p.n, p.k, p.a.stride, p.c_stride}) <= int_max;
}

/// Row-major C is column-major Cᵀ, so that what is above the diagonal is below it there.
void blas_syrk(const Product& p) {
    const char half = 'L', form = p.a.transposed ? 'N' : 'T';
    const int n = lapack_int(p.n), k = lapack_int(p.k);
    const int lda = lapack_int(std::max(p.a.stride, p.a.transposed ? p.n : p.k));
    const int ldc = lapack_int(std::max(p.c_stride, p.n));
    const auto call = [&](auto zero, auto function) {
        using T = decltype(zero);
        const T alpha(1), beta(p.accumulate ? 1 : 0);
        function(&half, &form, &n, &k, &alpha, p.a.data, &lda, &beta, p.c, &ldc);
    };
    switch (p.dtype) {
        case Dtype::float32:
            return call(float{}, TILEWISE_BLAS(ssyrk_));
        case Dtype::float64:
            return call(double{}, TILEWISE_BLAS(dsyrk_));
        case Dtype::complex64:
            return call(std::complex<float>{}, TILEWISE_BLAS(csyrk_));
        case Dtype::complex128:
            return call(std::complex<double>{}, TILEWISE_BLAS(zsyrk_));
        default:
            refuse_compute_type(p.dtype);
    }
}

/// On and above the diagonal of a square C, by one thread; k in slices as `gemm` cuts it.
void gemm_upper(const Product& product, Kernel kernel, const Between& between, std::int64_t slice) {
    const bool tiled = takes_tiles(kernel, product);
    if (product.k == 0 || kernel == Kernel::plain || !(tiled || syrk_takes(product))) {
        gemm(product, 1, kernel, between, slice);
        return;
    }
    if (stood_in_for(operations(product) / 2, bytes_moved(product))) {
        return;
    }
    if (TILEWISE_BLAS(openblas_set_num_threads) != nullptr) {
        TILEWISE_BLAS(openblas_set_num_threads)(1);
    }
    const Lent<TiledGemm> tiled_gemm;
    for (std::int64_t begin = 0, steps = 0; begin < product.k; begin += steps) {
        const std::int64_t left = product.k - begin;
        steps = !tiled ? std::min(slice, left) : between ? tiled_gemm_slice(product.dtype, slice, left) : left;
        const Product part = slice_of_k(product, begin, steps);
        tiled ? (*tiled_gemm).upper(part) : blas_syrk(part);
        if (between) {
            between(static_cast<double>(begin + steps) / static_cast<double>(product.k));
        }
    }
}

/// What is above the diagonal of a square, to below it: rectangles of half the side, and small squares by two loops.
void mirror_square(std::byte* square, std::int64_t side, std::int64_t down, std::size_t item) {
    constexpr std::int64_t small = 64;
    const auto at = [&](std::int64_t row, std::int64_t column) {
        return square + row * down + column * static_cast<std::int64_t>(item);
    };
    if (side > small) {
        const std::int64_t half = side / 2;
        transpose(at(0, half), down, half, side - half, item, at(half, 0), down, 1);
        mirror_square(square, half, down, item);
        mirror_square(at(half, half), side - half, down, item);
        return;
    }
    for (std::int64_t i = 0; i < side; ++i) {
        for (std::int64_t j = i + 1; j < side; ++j) {
            std::memcpy(at(j, i), at(i, j), item);
        }
    }
}

}  // namespace

void gemm_parts(const Product& product, const grid::Block& held, const std::vector<grid::Block>& parts, int threads,
                Kernel kernel, const Between& between, std::int64_t slice) {
    if (parts.size() == 1) {
        gemm(part_of(product, grid::within(parts.front(), held)), threads, kernel, between, slice);
        return;
    }
    const auto all = static_cast<double>(std::max<std::int64_t>(1, work_of(parts)));
    const int workers = 2 * all * static_cast<double>(product.k) < 4e6 ? 1 : threads;
    std::atomic<std::int64_t> done = 0;
    parallel_tasks(workers, std::ssize(parts), [&](std::int64_t index, int thread) {
        const grid::Block& block = parts[static_cast<std::size_t>(index)];
        Between mine;
        if (thread == 0 && between) {
            mine = [&](double of_part) {
                const double here = of_part * static_cast<double>(work_of(block));
                between(std::clamp((static_cast<double>(done.load()) + here) / all, 0.0, 1.0));
            };
        }
        const Product part = part_of(product, grid::within(block, held));
        on_diagonal(block) ? gemm_upper(part, kernel, mine, slice) : gemm(part, 1, kernel, mine, slice);
        done += work_of(block);
    });
}

void mirror(std::byte* c, const grid::Block& held, std::size_t item, const std::vector<grid::Block>& rectangles,
            int threads) {
    const std::int64_t down = held.columns.size() * static_cast<std::int64_t>(item);
    const auto at = [&](std::int64_t row, std::int64_t column) {
        return c + (row - held.rows.begin) * down + (column - held.columns.begin) * static_cast<std::int64_t>(item);
    };
    const int workers = work_of(rectangles) < (1 << 17) ? 1 : threads;
    parallel_tasks(workers, std::ssize(rectangles), [&](std::int64_t index, int) {
        const grid::Block& block = rectangles[static_cast<std::size_t>(index)];
        const auto [rows, columns] = block;
        if (on_diagonal(block)) {
            mirror_square(at(rows.begin, rows.begin), rows.size(), down, item);
        } else {
            transpose(at(rows.begin, columns.begin), down, rows.size(), columns.size(), item,
                      at(columns.begin, rows.begin), down, 1);
        }
    });
}

}  // namespace tilewise::kernel
