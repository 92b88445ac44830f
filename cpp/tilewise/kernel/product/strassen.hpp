// Strassen's product: 7 instead of 8 products of blocks half as wide, up to three times over, whose error is small
// compared with the longest row and column, not with each.
#pragma once

#include "tilewise/kernel/product/gemm.hpp"

namespace tilewise::kernel {

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

}  // namespace tilewise::kernel
