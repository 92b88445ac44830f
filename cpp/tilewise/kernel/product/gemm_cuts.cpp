// Integers only: where tiles begin, and how many there are.
#include "tilewise/kernel/product/gemm_cuts.hpp"

#include <algorithm>
#include <limits>

namespace tilewise::kernel {
namespace {

/// The same operand, beginning at (row, column) of the matrix that it stands for.
Operand at(const Operand& operand, std::int64_t row, std::int64_t column, std::size_t size) {
    const std::int64_t elements = operand.transposed ? column * operand.stride + row : row * operand.stride + column;
    return {operand.data + elements * static_cast<std::int64_t>(size), operand.stride, operand.transposed};
}

}  // namespace

Product tile_of(const Product& whole, grid::Range rows, grid::Range columns) {
    const std::size_t size = size_of(whole.dtype);
    Product part = whole;
    part.m = rows.size();
    part.n = columns.size();
    part.a = at(whole.a, rows.begin, 0, size);
    part.b = at(whole.b, 0, columns.begin, size);
    if (whole.c != nullptr) {
        part.c = whole.c + (rows.begin * whole.c_stride + columns.begin) * static_cast<std::int64_t>(size);
    }
    return part;
}

Product slice_of_k(const Product& whole, std::int64_t begin, std::int64_t width) {
    const std::size_t size = size_of(whole.dtype);
    Product part = whole;
    part.k = width;
    part.a = at(whole.a, 0, begin, size);
    part.b = at(whole.b, begin, 0, size);
    part.accumulate = whole.accumulate || begin > 0;
    return part;
}

Cuts cuts_for(std::int64_t m, std::int64_t n, int threads) {
    Cuts best{1, threads};
    double least = std::numeric_limits<double>::infinity();
    for (int rows = 1; rows <= threads; ++rows) {
        if (threads % rows == 0) {
            const int columns = threads / rows;
            const double packed = static_cast<double>(m) / rows + static_cast<double>(n) / columns;
            if (packed < least) {
                least = packed;
                best = {rows, columns};
            }
        }
    }
    return best;
}

std::int64_t pieces_of_k(std::int64_t parts, std::int64_t k) {
    constexpr std::int64_t enough = 32, least_depth = 2048;
    std::int64_t pieces = 1;  // powers of two: any other number would leave one of two threads idle
    while (pieces * parts < enough && 2 * pieces * least_depth <= k) {
        pieces *= 2;
    }
    return std::min(pieces, enough);
}

}  // namespace tilewise::kernel
