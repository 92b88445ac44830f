// A packed, blocked product, from caches down to tiles in registers.
//
//        B, packed: depth × columns of it       [ | | | ]  panels as wide as a tile, one row of a panel after the
//                   stay in the third-level               other: each passes by all of A's panels
//                   cache
//
//   A, packed: rows × depth of it    [ = ]      [ # . . ]  C: a tile # is in registers for the whole depth
//              stay in the second-   [ = ]      [ . . . ]
//              level cache           [ = ]      [ . . . ]
//
// K. Goto and R. van de Geijn, "Anatomy of high-performance matrix multiplication", 2008; F. Van Zee and R. van de
// Geijn, "BLIS", 2015.
#include "tilewise/kernel/product/gemm_tiled.hpp"

#include <algorithm>
#include <limits>

#include "tilewise/kernel/isa/backend.hpp"

namespace tilewise::kernel {
namespace {

/// Calls `work` with a number of the type that tiles compute in: integers are unsigned, as their sums may wrap.
template <class Work> auto with_tiles_of(Dtype dtype, const Work& work) {
    return dtype == Dtype::float32 ? work(float{}) : dtype == Dtype::float64 ? work(double{}) : work(std::uint64_t{});
}

template <class T> Blocking blocking_of(const GemmSet& set) {
    const auto& tiles = set.tiles<T>();
    return blocking_for(processor().caches, tiles.rows, tiles.columns, sizeof(T));
}

/// Steps of k that are taken together where `left` are left: `depth`, or up to half as many more at the end, as so few
/// are not worth another pass over C.
std::int64_t depth_here(std::int64_t depth, std::int64_t left) { return left <= depth + depth / 2 ? left : depth; }

/// Sides of equal blocks of at most `most`, rounded up to whole tiles.
std::int64_t evenly(std::int64_t whole, std::int64_t most, std::int64_t unit) {
    const std::int64_t blocks = (whole + most - 1) / most, side = (whole + blocks - 1) / blocks;
    return (side + unit - 1) / unit * unit;
}

/// A block of C whose element (0, 0) is `below` the diagonal by so many rows, less what whole tiles below it make up.
///
///     [ \ # | # # ]     where the diagonal passes through, rows of tiles one by one, each from its own tile on;
///     [   \ | # # ]     the rest at once
template <class T> void multiply_upper(const GemmTiles<T>& tiles, std::int64_t k, const T* a, const T* b,
                                       const BlockOfC<T>& c, std::int64_t below) {
    const auto from = [&](std::int64_t row) {  // columns to leave out
        return std::clamp<std::int64_t>((below + row) / tiles.columns * tiles.columns, 0, c.columns);
    };
    const std::int64_t rest = from(c.rows + tiles.columns - 1);
    for (std::int64_t i = 0; i < c.rows; i += tiles.rows) {
        if (const std::int64_t j = from(i); j < rest) {
            tiles.multiply(k, a + i * k, b + j * k,
                           {c.data + i * c.stride + j, c.stride, std::min(tiles.rows, c.rows - i),
                            std::min(rest, c.columns) - j, c.accumulate});
        }
    }
    if (rest < c.columns) {
        tiles.multiply(k, a, b + rest * k, {c.data + rest, c.stride, c.rows, c.columns - rest, c.accumulate});
    }
}

template <class T> void multiply(const Product& p, const GemmTiles<T>& tiles, const Blocking& blocking, T* a_panels,
                                 T* b_panels, bool upper) {
    const auto *a = reinterpret_cast<const T*>(p.a.data), *b = reinterpret_cast<const T*>(p.b.data);
    auto* c = reinterpret_cast<T*>(p.c);
    const std::int64_t a_row = p.a.transposed ? 1 : p.a.stride, a_column = p.a.transposed ? p.a.stride : 1;
    const std::int64_t b_row = p.b.transposed ? 1 : p.b.stride, b_column = p.b.transposed ? p.b.stride : 1;
    const std::int64_t columns = evenly(p.n, blocking.columns, tiles.columns);
    for (std::int64_t j = 0; j < p.n; j += columns) {
        const std::int64_t n = std::min(columns, p.n - j);
        for (std::int64_t l = 0, k = 0; l < p.k; l += k) {
            k = depth_here(blocking.depth, p.k - l);
            tiles.pack_b({.along = b_column, .down = b_row, .at = {b + l * b_row + j * b_column}}, n, k, b_panels);
            // The deeper, the fewer rows fill the second-level cache; the shallower, the more.
            const std::int64_t most =
                std::max(tiles.rows, blocking.rows * blocking.depth / k / tiles.rows * tiles.rows);
            const std::int64_t rows = evenly(p.m, most, tiles.rows);
            for (std::int64_t i = 0; i < (upper ? std::min(p.m, j + n) : p.m); i += rows) {
                const std::int64_t m = std::min(rows, p.m - i);
                tiles.pack_a({.along = a_row, .down = a_column, .at = {a + i * a_row + l * a_column}}, m, k, a_panels);
                const BlockOfC<T> block{c + i * p.c_stride + j, p.c_stride, m, n, p.accumulate || l > 0};
                upper ? multiply_upper(tiles, k, a_panels, b_panels, block, i - j)
                      : tiles.multiply(k, a_panels, b_panels, block);
            }
        }
    }
}

}  // namespace

bool tiled_gemm_takes(Dtype dtype) { return is_integer(dtype) || dtype == Dtype::float32 || dtype == Dtype::float64; }

bool tiled_gemm_suits(const Product& p) {
    const OwnTiles& own = processor().own;
    if (is_integer(p.dtype)) {  // which BLAS does not know
        return true;
    }
    if (!tiled_gemm_takes(p.dtype) || backend().width < 32) {
        return false;
    }
    if (p.dtype == Dtype::float32) {  // BLAS is ahead with narrower registers
        return backend().versions == Instructions::avx512 && std::min({p.m, p.n, p.k}) >= own.least_single;
    }
    return own.doubles && p.m >= 64 && p.n >= 96 && p.k >= 64;
}

std::string_view tiled_gemm_name() { return backend().gemm.name; }

std::int64_t tiled_gemm_slice(Dtype dtype, std::int64_t wanted, std::int64_t left) {
    const std::int64_t depth =
        with_tiles_of(dtype, [](auto zero) { return blocking_of<decltype(zero)>(backend().gemm).depth; });
    const std::int64_t slice = std::max<std::int64_t>(1, wanted / depth) * depth;
    return left <= slice + depth / 2 ? left : slice;
}

Cuts tiled_gemm_cuts(const Product& p, int threads) {
    // Seconds of a multiply-add are the unit: packing a number takes as long as 20, and whoever is the last to finish
    // lets the others wait for a twentieth of a part.
    constexpr double packing = 20, waiting = 0.05;
    constexpr std::int64_t parts_each = 4;
    return with_tiles_of(p.dtype, [&]<class T>(T) {
        const auto& tiles = backend().gemm.tiles<T>();
        const std::int64_t block = blocking_of<T>(backend().gemm).columns;
        const std::int64_t high = (p.m + tiles.rows - 1) / tiles.rows, wide = (p.n + tiles.columns - 1) / tiles.columns;
        Cuts best{1, 1, tiles.rows, tiles.columns};
        double least = std::numeric_limits<double>::infinity();
        for (std::int64_t rows = 1; rows <= std::min(high, parts_each * threads); ++rows) {
            for (std::int64_t columns = 1; columns <= std::min(wide, parts_each * threads / rows); ++columns) {
                const std::int64_t m = std::min(p.m, (high + rows - 1) / rows * tiles.rows),
                                   n = std::min(p.n, (wide + columns - 1) / columns * tiles.columns);
                const auto blocks = static_cast<double>((n + block - 1) / block);
                const double part = static_cast<double>(m) * static_cast<double>(n) +
                                    packing * (static_cast<double>(m) * blocks + static_cast<double>(n));
                const auto turns = static_cast<double>((rows * columns + threads - 1) / threads);
                if (const double time = part * (turns + waiting); time < least) {
                    least = time;
                    best.rows = rows;
                    best.columns = columns;
                }
            }
        }
        return best;
    });
}

void TiledGemm::operator()(const Product& product) { (*this)(product, backend().gemm); }

void TiledGemm::upper(const Product& product) { (*this)(product, backend().gemm, true); }

void TiledGemm::operator()(const Product& product, const GemmSet& set, bool upper) {
    with_tiles_of(product.dtype, [&](auto zero) {
        using T = decltype(zero);
        const auto& tiles = set.tiles<T>();
        const Blocking blocking = blocking_of<T>(set);
        // Both with room for the last slice of k, which may be half as deep again.
        const auto room = [&](std::int64_t width) {
            return static_cast<std::size_t>(width * blocking.depth * 3 / 2) * sizeof(T);
        };
        multiply(product, tiles, blocking, reinterpret_cast<T*>(a_panels_.grow(room(blocking.rows + tiles.rows))),
                 reinterpret_cast<T*>(b_panels_.grow(room(blocking.columns + tiles.columns))), upper);
    });
}

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
