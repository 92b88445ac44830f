// Our own product kernel for AVX-512, for processors on which it is faster than BLAS.
#pragma once

#include <memory>
#include <string_view>

#include "tilewise/base/buffer.hpp"
#include "tilewise/kernel/gemm.hpp"

namespace tilewise::kernel {

/// What the record calls it.
inline constexpr std::string_view tiled_gemm_name = "tilewise AVX-512 8x3 vectors";

/// Columns of B that are packed at a time.
inline constexpr std::int64_t tiled_gemm_columns = 1056;

/// Whether this processor and this product are better served by `TiledGemm` than by BLAS: real numbers, AVX-512 by AMD
/// (where OpenBLAS reaches 80 % of peak and this 93 %), and enough of everything to fill tiles. Depends on nothing that
/// changes from run to run, so that results do not either.
bool tiled_gemm_suits(const Product& product);

/// One thread's workspace (4 MB), reusable for any number of products. Compared with `plain_gemm` by the tests.
class TiledGemm {
public:
    void operator()(const Product& product);

private:
    Buffer a_panels_, b_panels_;
};

}  // namespace tilewise::kernel
