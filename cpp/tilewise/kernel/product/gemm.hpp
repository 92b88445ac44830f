// One rank's matrix product: C = A·B or C += A·B on blocks in memory, by BLAS or by plain loops.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "tilewise/base/dtype.hpp"
#include "tilewise/grid/grid.hpp"

namespace tilewise::kernel {

/// Which code computes: `fast` is the fastest here (our own tiles where they beat BLAS, BLAS elsewhere), `tiles`
/// always our own tiles where they can, `blas` always BLAS where it can, `plain` three loops, kept as reference.
/// `strassen` is `fast` here; for large products the caller takes `strassen` instead of `gemm`.
enum class Kernel { fast, tiles, blas, plain, strassen };

/// Throws UsageError for an unknown name.
Kernel kernel_named(std::string_view name);

/// A matrix in memory, row after row, `stride` elements apart. With `transposed` the memory holds its transpose.
struct Operand {
    const std::byte* data = nullptr;
    std::int64_t stride = 0;
    bool transposed = false;
};

/// C (m×n, row-major, rows `c_stride` elements apart) = A (m×k) · B (k×n), added to what is there if `accumulate`.
struct Product {
    Dtype dtype = Dtype::float64;
    std::int64_t m = 0, n = 0, k = 0;
    Operand a, b;
    std::byte* c = nullptr;
    std::int64_t c_stride = 0;
    bool accumulate = false;
};

/// The same product, of these rows or of this rectangle of C only.
Product rows_of(const Product& whole, grid::Range rows);
Product part_of(const Product& whole, const grid::Block& block);

/// What a product takes, for a simulator: of complex numbers a product and its sum are eight operations.
double operations(const Product& product);
/// A and B are read once; C is written, and read where it is added to.
double bytes_moved(const Product& product);

/// Called now and then by the thread that called `gemm`, with the share of its work that is done.
using Between = std::function<void(double done)>;

/// Not collective. 2·m·n·k operations. Uses `threads` threads, each on its own tile of C. Where `between` is given, k
/// is cut into slices of `slice` and `between` called after each; 384 and its multiples cost nothing, being how BLAS
/// cuts k anyway.
void gemm(const Product& product, int threads, Kernel kernel = Kernel::fast, const Between& between = {},
          std::int64_t slice = 768);

/// Whether `kernel` computes this product by our own tiles.
bool takes_tiles(Kernel kernel, const Product& product);

/// Three loops, in the order that walks B and C along their rows. The reference that fast kernels are compared with.
void plain_gemm(const Product& product);

/// What `kernel` computes large products of this type with on this processor, for the record.
std::string gemm_kernel_name(Kernel kernel, Dtype dtype);

/// The BLAS that is linked and the kernel that it chose on this processor: {"OpenBLAS 0.3.34 …", "SkylakeX"}.
struct BlasFacts {
    std::string library, kernel;
};
BlasFacts blas_facts();

// Products of float64 and complex128 matrices that lie row by row: what decompositions and their proofs are made of.

template <class T> Operand operand(const T* data, std::int64_t stride, bool transposed = false) {
    return {reinterpret_cast<const std::byte*>(data), stride, transposed};
}

/// C (m×n, without gaps) = A·B, or C + A·B. With k = 0 nothing is done.
template <class T> void multiply(std::int64_t m, std::int64_t n, std::int64_t k, const Operand& a, const Operand& b,
                                 T* c, bool accumulate, int threads) {
    constexpr Dtype dtype = std::is_same_v<T, double> ? Dtype::float64 : Dtype::complex128;
    static_assert(dtype == Dtype::float64 || std::is_same_v<T, std::complex<double>>);
    if (m > 0 && n > 0 && k > 0) {
        gemm({dtype, m, n, k, a, b, reinterpret_cast<std::byte*>(c), n, accumulate}, threads);
    }
}

// Strassen's product: 7 instead of 8 products of blocks half as wide, up to three times over, whose error is small
// compared with the longest row and column, not with each.

/// How often to halve an m×n×k product for the least time; 0 where plain products are faster, and for all types but
/// float32 and float64. Depends on nothing else, so that results do not either.
int strassen_levels(Dtype dtype, std::int64_t m, std::int64_t n, std::int64_t k);

/// The same product as `gemm`, of float32 or float64, halved `levels` times (1 … 3) in every direction; what is left
/// over of rows and columns is multiplied by `gemm`. `threads` threads share every product; the bits do not depend on
/// how many they are. Needs 9 MB and 2 MB a thread. Not collective.
void strassen(const Product& product, int threads, int levels, const Between& between = {});

/// The share of 2·m·n·k operations that `levels` levels do: (7/8)^levels.
double strassen_work(int levels);

/// No element is wrong by more than this many roundoffs times the 2-norm of A's longest row and of B's longest column,
/// for k summed in `steps` calls.
double strassen_growth(int levels, std::int64_t k, std::int64_t steps);

// One rank's part of a symmetric product: some rectangles of C, and mirror images of rectangles.

/// `gemm` for these rectangles of C alone, which must not overlap; threads take them in turn, in their order, and share
/// a single one. Like `mirror` it is given them in the coordinates of a matrix, whose block `held` is C: of a square on
/// the diagonal of this matrix, which is symmetric, only what is on and above it is promised. Not collective.
void gemm_parts(const Product& product, const grid::Block& held, const std::vector<grid::Block>& parts, int threads,
                Kernel kernel = Kernel::fast, const Between& between = {}, std::int64_t slice = 768);

/// `c` is the block `held` of a matrix of items, row after row. The rectangles in it, which are given in the
/// coordinates of the matrix, are copied to their mirror images across its diagonal, which `held` must have too; of a
/// square on the diagonal, what is above it. Threads take them in turn.
void mirror(std::byte* c, const grid::Block& held, std::size_t item, const std::vector<grid::Block>& rectangles,
            int threads);

}  // namespace tilewise::kernel
