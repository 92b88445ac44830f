// Our own product kernel: tiles in registers, of integers, and of real numbers where that is faster than BLAS.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string_view>

#include "tilewise/base/buffer.hpp"
#include "tilewise/grid/grid.hpp"
#include "tilewise/kernel/product/gemm.hpp"
#include "tilewise/kernel/product/gemm_blocking.hpp"
#include "tilewise/kernel/product/gemm_set.hpp"

namespace tilewise::kernel {

// Cuts products into smaller ones: by rows and columns of C, and by k.

/// The same product, of these rows and columns of C only.
Product tile_of(const Product& whole, grid::Range rows, grid::Range columns);

/// The part of it that these numbers of k make, as it is to be added up: it accumulates unless it is the first.
Product slice_of_k(const Product& whole, std::int64_t begin, std::int64_t width);

/// Columns of C at `columns_border(0)`, `(1)`, … and as many rows: tiles that threads take in turn.
struct Cuts {
    std::int64_t rows, columns;
    std::int64_t row_unit = 1, column_unit = 1;  ///< borders fall on multiples of them

    grid::Range row(std::int64_t index, std::int64_t m) const { return part(index, rows, m, row_unit); }
    grid::Range column(std::int64_t index, std::int64_t n) const { return part(index, columns, n, column_unit); }

private:
    static grid::Range part(std::int64_t index, std::int64_t parts, std::int64_t whole, std::int64_t unit) {
        const std::int64_t units = (whole + unit - 1) / unit;
        const auto border = [&](std::int64_t i) { return std::min(whole, units * i / parts * unit); };
        return {border(index), border(index + 1)};
    }
};

/// Near-square tiles, one a thread: the least of A and B to pack for each.
Cuts cuts_for(std::int64_t m, std::int64_t n, int threads);

/// Into how many parts k is cut, each with a C of its own, where all of C has work for few threads only; 1: not at all.
/// `parts` is how many pieces C itself would fall into. Depends on the shape alone, as the result's bits do.
std::int64_t pieces_of_k(std::int64_t parts, std::int64_t k);

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
