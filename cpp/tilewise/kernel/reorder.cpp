// Transposition in tiles within blocks, so that each cache line is fetched once and each page looked up seldom.
//
//     from   [ . . . . ]   a block: 64 rows, and as many columns as      to   [ . | . ]   within it, tiles of one cache line's width,
//            [ . # . . ]   lie in 8 cache lines; its lines are in the         [ . | # ]   turned round in a small array, so that whole
//            [ . . . . ]   first-level cache until all of them is used        [ . | . ]   lines are written one after the other
#include "tilewise/kernel/reorder.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <string>
#include <type_traits>
#include <utility>

#include "tilewise/base/error.hpp"
#include "tilewise/base/threads.hpp"

namespace tilewise::kernel {
namespace {

constexpr std::int64_t cache_line = 64;

template <std::size_t size> constexpr std::int64_t tile_width = cache_line / static_cast<std::int64_t>(size);

template <std::size_t size> struct Matrices {
    const std::byte* from;
    std::byte* to;
    std::int64_t rows, columns;

    const std::byte* source(std::int64_t i, std::int64_t j) const {
        return from + (i * columns + j) * static_cast<std::int64_t>(size);
    }
    std::byte* target(std::int64_t i, std::int64_t j) const {
        return to + (j * rows + i) * static_cast<std::int64_t>(size);
    }
};

template <std::size_t size> struct Vector {
    using Lane = std::conditional_t<
        size == 1, std::uint8_t,
        std::conditional_t<size == 2, std::uint16_t, std::conditional_t<size == 4, std::uint32_t, std::uint64_t>>>;
    typedef Lane type __attribute__((vector_size(16)));
    static constexpr std::size_t lanes = 16 / size;
};

/// Lanes of two vectors in turn, a0 b0 a1 b1 …: of their first halves or of their second ones.
template <std::size_t size, bool second, std::size_t... lane>
auto interleave(typename Vector<size>::type a, typename Vector<size>::type b, std::index_sequence<lane...>) {
    constexpr std::size_t lanes = Vector<size>::lanes;
    return __builtin_shufflevector(a, b, (lane / 2 + (second ? lanes / 2 : 0) + (lane % 2) * lanes)...);
}

/// Turns as many vectors as one has lanes into the columns of what they were: each round of interleaving the upper half of the rows
/// with the lower one moves one bit of an item's row number into its column number.
template <std::size_t size> [[gnu::always_inline]] inline void turn(const std::byte* from, std::int64_t from_stride,
                                                                    std::byte* to, std::int64_t to_stride) {
    if constexpr (size == 16) {
        std::memcpy(to, from, size);
    } else {
        using V = typename Vector<size>::type;
        constexpr std::size_t lanes = Vector<size>::lanes;
        constexpr auto order = std::make_index_sequence<lanes>{};
        V rows[lanes];
#pragma GCC unroll 16
        for (std::size_t i = 0; i < lanes; ++i) {
            std::memcpy(&rows[i], from + static_cast<std::int64_t>(i) * from_stride, 16);
        }
#pragma GCC unroll 4
        for (std::size_t round = 1; round < lanes; round *= 2) {
            V next[lanes];
#pragma GCC unroll 8
            for (std::size_t i = 0; i < lanes / 2; ++i) {
                next[2 * i] = interleave<size, false>(rows[i], rows[i + lanes / 2], order);
                next[2 * i + 1] = interleave<size, true>(rows[i], rows[i + lanes / 2], order);
            }
#pragma GCC unroll 16
            for (std::size_t i = 0; i < lanes; ++i) {
                rows[i] = next[i];
            }
        }
#pragma GCC unroll 16
        for (std::size_t i = 0; i < lanes; ++i) {
            std::memcpy(to + static_cast<std::int64_t>(i) * to_stride, &rows[i], 16);
        }
    }
}

/// A square tile as wide as a cache line, or what is left of it at an edge.
template <std::size_t size> void turn_tile(const Matrices<size>& m, std::int64_t i, std::int64_t j) {
    constexpr std::int64_t width = tile_width<size>, lanes = 16 / static_cast<std::int64_t>(size);
    constexpr auto item = static_cast<std::int64_t>(size);
    if (i + width <= m.rows && j + width <= m.columns) {
        alignas(cache_line) std::array<std::byte, static_cast<std::size_t>(width * cache_line)> turned;
        for (std::int64_t r = 0; r < width; r += lanes) {
            for (std::int64_t c = 0; c < width; c += lanes) {
                turn<size>(m.source(i + r, j + c), m.columns * item, turned.data() + c * cache_line + r * item,
                           cache_line);
            }
        }
        for (std::int64_t c = 0; c < width; ++c) {
            std::memcpy(m.target(i, j + c), turned.data() + c * cache_line, cache_line);
        }
        return;
    }
    for (std::int64_t c = j; c < std::min(j + width, m.columns); ++c) {
        for (std::int64_t r = i; r < std::min(i + width, m.rows); ++r) {
            std::memcpy(m.target(r, c), m.source(r, c), size);
        }
    }
}

template <std::size_t size> void transpose_items(const Matrices<size>& m, int threads) {
    constexpr std::int64_t width = tile_width<size>;
    constexpr std::int64_t block_rows = std::max<std::int64_t>(width, 64), block_columns = 8 * width;
    const std::int64_t bands = (m.columns + width - 1) / width;
    parallel_ranges(threads, bands, [&](std::int64_t first, std::int64_t last, int) {
        const std::int64_t columns_end = std::min(last * width, m.columns);
        for (std::int64_t block_j = first * width; block_j < columns_end; block_j += block_columns) {
            for (std::int64_t block_i = 0; block_i < m.rows; block_i += block_rows) {
                const std::int64_t i_end = std::min(block_i + block_rows, m.rows);
                const std::int64_t j_end = std::min(block_j + block_columns, columns_end);
                for (std::int64_t j = block_j; j < j_end; j += width) {
                    for (std::int64_t i = block_i; i < i_end; i += width) {
                        turn_tile(m, i, j);
                    }
                }
            }
        }
    });
}

}  // namespace

void transpose(const std::byte* from, std::int64_t rows, std::int64_t columns, std::size_t item, std::byte* to,
               int threads) {
    constexpr std::int64_t worth_threads = std::int64_t{4} << 20;
    const int workers = rows * columns * static_cast<std::int64_t>(item) < worth_threads ? 1 : threads;
    switch (item) {
        case 1:
            return transpose_items<1>({from, to, rows, columns}, workers);
        case 2:
            return transpose_items<2>({from, to, rows, columns}, workers);
        case 4:
            return transpose_items<4>({from, to, rows, columns}, workers);
        case 8:
            return transpose_items<8>({from, to, rows, columns}, workers);
        case 16:
            return transpose_items<16>({from, to, rows, columns}, workers);
        default:
            throw Error(ErrorKind::internal, "cannot transpose items of " + std::to_string(item) +
                                                 " bytes; 1, 2, 4, 8 and 16 can be transposed");
    }
}

void plain_transpose(const std::byte* from, std::int64_t rows, std::int64_t columns, std::size_t item, std::byte* to) {
    for (std::int64_t i = 0; i < rows; ++i) {
        for (std::int64_t j = 0; j < columns; ++j) {
            std::memcpy(to + static_cast<std::size_t>(j * rows + i) * item,
                        from + static_cast<std::size_t>(i * columns + j) * item, item);
        }
    }
}

}  // namespace tilewise::kernel
