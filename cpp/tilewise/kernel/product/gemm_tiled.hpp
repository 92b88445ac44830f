// Our own product kernel: tiles in registers, of integers, and of real numbers where that is faster than BLAS.
#pragma once

#include <cstdint>
#include <string_view>

#include "tilewise/base/buffer.hpp"
#include "tilewise/kernel/product/gemm.hpp"
#include "tilewise/kernel/product/gemm_blocking.hpp"
#include "tilewise/kernel/product/gemm_cuts.hpp"
#include "tilewise/kernel/product/gemm_set.hpp"

namespace tilewise::kernel {

/// Whether there are tiles for these numbers: all but complex ones.
bool tiled_gemm_takes(Dtype dtype);

/// Whether this processor and this product are better served by `TiledGemm` than by BLAS, as the table of processors
/// says, and there is enough of everything to fill tiles. Depends on nothing that changes from run to run, so that
/// results do not either.
bool tiled_gemm_suits(const Product& product);

/// What the record calls the tiles in use.
std::string_view tiled_gemm_name();

/// Steps of k that can be given to `TiledGemm` at a time without changing a bit of the result: a multiple of its depth
/// near `wanted`, or all that is `left`.
std::int64_t tiled_gemm_slice(Dtype dtype, std::int64_t wanted, std::int64_t left);

/// How C is cut into parts that threads take in turn; borders fall on multiples of a tile's sides.
Cuts tiled_gemm_cuts(const Product& product, int threads);

/// One thread's workspace (some 6 MB), reusable for any number of products. Compared with `plain_gemm` by the tests.
class TiledGemm {
public:
    void operator()(const Product& product);
    /// The same with these tiles, which the processor must support. `upper`: C is square, and tiles below its diagonal
    /// are left out.
    void operator()(const Product& product, const GemmSet& set, bool upper = false);
    /// On and above the diagonal alone.
    void upper(const Product& product);

private:
    Buffer a_panels_, b_panels_;
};

}  // namespace tilewise::kernel
