// One rank's matrix product: C = A·B or C += A·B on blocks in memory, by BLAS or by plain loops.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

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

}  // namespace tilewise::kernel
