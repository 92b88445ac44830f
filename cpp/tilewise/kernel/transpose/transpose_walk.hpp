// Walks down a strip of columns tile by tile; compiled once for each width of registers, so nothing here has a name
// outside its file.
//
//     from  [ . # . . ]  a strip; a tile of few rows that are read far enough for the processor to fetch ahead,
//           [ . # . . ]  in blocks of a cache line's width, each source line once
//     to    [ . . . . ]
//           [ # # # # ]
//           [ . . . . ]
//
// Where rows of the target start at multiples of a cache line, whole lines go there straight from registers. Else
// transposed blocks are staged: whole lines leave as soon as a tile's are there, and what a line lacks is carried until
// it comes with the next tile.
//
// Design: docs/design/transposition.md
#pragma once

#include "tilewise/base/memory.hpp"
#include "tilewise/kernel/isa/turn.hpp"
#include "tilewise/kernel/transpose/transpose.hpp"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace tilewise::kernel {
namespace {

constexpr std::int64_t cache_line = 64;

constexpr std::int64_t smaller(std::int64_t a, std::int64_t b) { return a < b ? a : b; }

constexpr bool turns_in_registers(std::size_t item) { return (item & (item - 1)) == 0; }

/// A register to a multiple of its width, past the caches where the instruction set can.
template <std::size_t width> [[gnu::always_inline]] inline void stream_register(
    std::byte* to, const typename Register<width>::type& value) {
#if defined(__x86_64__)
    if constexpr (width == 16) {
        _mm_stream_si128(reinterpret_cast<__m128i*>(to), (__m128i)value);
        return;
    }
#endif
#if defined(__AVX2__)
    if constexpr (width == 32) {
        _mm256_stream_si256(reinterpret_cast<__m256i*>(to), (__m256i)value);
        return;
    }
#endif
#if defined(__AVX512F__)
    if constexpr (width == 64) {
        _mm512_stream_si512(reinterpret_cast<__m512i*>(to), (__m512i)value);
        return;
    }
#endif
    std::memcpy(to, &value, width);
}

/// A whole line, past the caches or not. Both ends lie at multiples of 64 bytes.
template <std::size_t width, bool streaming> [[gnu::always_inline]] inline void put_line(std::byte* to,
                                                                                         const std::byte* from) {
    if constexpr (streaming) {
#pragma GCC unroll 4
        for (std::size_t at = 0; at < cache_line; at += width) {
            typename Register<width>::type value;
            std::memcpy(&value, from + at, width);
            stream_register<width>(to + at, value);
        }
    } else {
        std::memcpy(to, from, cache_line);
    }
}

template <std::size_t width, std::size_t item, bool staged, bool streaming> class Walk {
public:
    explicit Walk(const TransposeStrip& strip) : s_(strip) {}

    void go() {
        for (std::int64_t i = 0; i < s_.rows; i += s_.tile_rows) {
            const std::int64_t end = smaller(i + s_.tile_rows, s_.rows);
            for (std::int64_t j = 0; j < s_.columns; j += block_columns) {
                const std::int64_t j_end = smaller(j + block_columns, s_.columns);
                if constexpr (staged) {
                    arrive(i, j, j_end);
                }
                for (std::int64_t b = i; b < end; b += block_rows) {
                    fetch(i, b, j);
                    block(i, b, smaller(b + block_rows, end), j, j_end);
                }
                if constexpr (staged) {
                    for (std::int64_t column = j; column < j_end; ++column) {
                        leave(i, end, column);
                    }
                }
            }
        }
#if defined(__x86_64__)
        if constexpr (streaming) {
            _mm_sfence();
        }
#endif
    }

private:
    static constexpr auto size = static_cast<std::int64_t>(item);
    static constexpr bool in_registers = turns_in_registers(item);
    /// Registers side by side in a row of a turned block: what goes past the caches by itself is a whole line, so that
    /// memory never sees a part of one.
    static constexpr std::int64_t beside = streaming && !staged ? cache_line / static_cast<std::int64_t>(width) : 1;
    static constexpr std::int64_t register_rows = static_cast<std::int64_t>(width / item);
    static constexpr std::int64_t block_rows = in_registers ? beside * register_rows : 16;
    static constexpr std::int64_t block_columns = in_registers ? cache_line / size : 16;
    static constexpr std::int64_t lane_columns = in_registers ? 16 / size : 1;

    const TransposeStrip& s_;
    alignas(64) std::byte block_[static_cast<std::size_t>(block_rows * cache_line)]{};

    const std::byte* source(std::int64_t i, std::int64_t j) const { return s_.from + i * s_.from_stride + j * size; }
    std::byte* target(std::int64_t i, std::int64_t j) const { return s_.to + j * s_.to_stride + i * size; }

    /// How far behind a line's start row j of the target starts. Tiles have whole lines, so it holds for each of them.
    std::int64_t behind(std::int64_t j) const {
        return static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(target(0, j)) % cache_line);
    }
    /// The bytes of row j of the target that did not fill a line yet: at the start of a line of their own.
    std::byte* carried(std::int64_t j) const { return s_.staging + j * cache_line; }
    /// Where row j of the target is staged: there is room for one block's columns, so that it stays in the first-level
    /// cache.
    std::byte* staging(std::int64_t j) const {
        return s_.staging + s_.columns * cache_line + j % block_columns * (s_.tile_rows * size + cache_line);
    }

    /// More rows at once than the processor keeps track of: fetches as many lines of the tile below as the block at (b,
    /// j) has.
    [[gnu::always_inline]] void fetch(std::int64_t i, std::int64_t b, std::int64_t j) const {
        if constexpr (in_registers) {
            if (item >= 4 || s_.from_stride % page == 0) {
                fetch_along(i, b, j);
            } else if (b + block_rows + s_.tile_rows <= s_.rows) {
                const std::byte* below = source(b + s_.tile_rows, j);
#pragma GCC unroll 64
                for (std::int64_t row = 0; row < block_rows; ++row) {
                    __builtin_prefetch(below + row * s_.from_stride, 0, 2);
                }
            }
        }
    }

    /// Rows in turn, each from end to end, as memory likes it best. Narrow items only where rows lie whole pages apart
    /// and so share few places of the caches, where a column of lines would push itself out: their tiles are so wide
    /// that what is fetched along rows is gone again too often.
    [[gnu::always_inline]] void fetch_along(std::int64_t i, std::int64_t b, std::int64_t j) const {
        const std::int64_t lines = (s_.columns + block_columns - 1) / block_columns;
        const std::int64_t first =
            (j / block_columns * (s_.tile_rows / block_rows) + (b - i) / block_rows) * block_rows;
        std::int64_t row = i + s_.tile_rows + first / lines, line = first % lines;
        for (std::int64_t left = block_rows; left > 0 && row < s_.rows; ++row) {
            const std::int64_t end = smaller(lines, line + left);
            const std::byte* from = source(row, 0);
            left -= end - line;
            for (; line < end; ++line) {
                __builtin_prefetch(from + line * cache_line, 0, 3);
            }
            line = 0;
        }
    }

    /// What the tile above left of rows [j, j_end) of the target goes before what comes now.
    [[gnu::always_inline]] void arrive(std::int64_t i, std::int64_t j, std::int64_t j_end) const {
        for (std::int64_t column = j; i > 0 && column < j_end; ++column) {
            if (behind(column) > 0) {
                put_line<width, false>(staging(column), carried(column));
            }
        }
    }

    /// Rows [b, b_end) and columns [j, j_end) of the tile that starts at row i.
    [[gnu::always_inline]] void block(std::int64_t i, std::int64_t b, std::int64_t b_end, std::int64_t j,
                                      std::int64_t j_end) {
        if constexpr (!in_registers) {
            one_by_one(i, b, b_end, j, j_end);
        } else if (b_end - b == block_rows && j_end - j == block_columns) {
            const std::byte* from = source(b, j);
            std::int64_t stride = s_.from_stride;
            if constexpr (item < 8) {
                // Rows that lie a power of two apart share few places of the first-level cache: take each line once.
#pragma GCC unroll 64
                for (std::int64_t row = 0; row < block_rows; ++row) {
                    std::memcpy(block_ + row * cache_line, from + row * stride, cache_line);
                }
                from = block_;
                stride = cache_line;
            }
#pragma GCC unroll 4
            for (std::int64_t lane = 0; lane < 4; ++lane) {
                typename Register<width>::type transposed[beside][lane_columns];
#pragma GCC unroll 4
                for (std::int64_t h = 0; h < beside; ++h) {
                    turn<width, item>(from + h * register_rows * stride + lane * 16, stride, transposed[h]);
                }
#pragma GCC unroll 16
                for (std::int64_t k = 0; k < lane_columns; ++k) {
                    const std::int64_t column = j + lane * lane_columns + k;
                    std::byte* to = staged ? staging(column) + behind(column) + (b - i) * size : target(b, column);
#pragma GCC unroll 4
                    for (std::int64_t h = 0; h < beside; ++h, to += width) {
                        if constexpr (streaming && !staged) {
                            stream_register<width>(to, transposed[h][k]);
                        } else {
                            std::memcpy(to, &transposed[h][k], width);
                        }
                    }
                }
            }
        } else {
            edge(i, b, b_end, j, j_end);
        }
    }

    /// A block that the matrix cuts off.
    [[gnu::noinline]] void edge(std::int64_t i, std::int64_t b, std::int64_t b_end, std::int64_t j,
                                std::int64_t j_end) {
        for (std::int64_t row = b; row < b_end; ++row) {
            std::memcpy(block_ + (row - b) * cache_line, source(row, j), static_cast<std::size_t>((j_end - j) * size));
        }
        for (std::int64_t column = j; column < j_end; column += lane_columns) {
            for (std::int64_t row = b; row < b_end; row += register_rows) {
                typename Register<width>::type transposed[lane_columns];
                turn<width, item>(block_ + (row - b) * cache_line + (column - j) * size, cache_line, transposed);
                const auto bytes = static_cast<std::size_t>(smaller(register_rows, b_end - row) * size);
                for (std::int64_t k = 0; k < smaller(lane_columns, j_end - column); ++k) {
                    std::memcpy(
                        staged ? staging(column + k) + behind(column + k) + (row - i) * size : target(row, column + k),
                        &transposed[k], bytes);
                }
            }
        }
    }

    /// Items of sizes that no register takes.
    void one_by_one(std::int64_t i, std::int64_t b, std::int64_t b_end, std::int64_t j, std::int64_t j_end) {
        for (std::int64_t column = j; column < j_end; ++column) {
            std::byte* to = staged ? staging(column) + behind(column) + (b - i) * size : target(b, column);
            for (std::int64_t row = b; row < b_end; ++row, to += size) {
                std::memcpy(to, source(row, column), item);
            }
        }
    }

    /// The whole lines of what is staged for row j of the target go there, and the rest too where there is no tile
    /// below.
    [[gnu::always_inline]] void leave(std::int64_t i, std::int64_t end, std::int64_t j) {
        const std::int64_t first = behind(j), stop = first + (end - i) * size;
        std::byte* staged_row = staging(j);
        std::byte* row = target(i, j) - first;  // the start of the line
        std::int64_t at = 0;
        if (i == 0 && first > 0) {
            at = smaller(stop, cache_line);
            std::memcpy(row + first, staged_row + first, static_cast<std::size_t>(at - first));
        }
        for (; at + cache_line <= stop; at += cache_line) {
            put_line<width, streaming>(row + at, staged_row + at);
        }
        if (at < stop) {
            if (end == s_.rows) {
                std::memcpy(row + at, staged_row + at, static_cast<std::size_t>(stop - at));
            } else {
                put_line<width, false>(carried(j), staged_row + at);
            }
        }
    }
};

template <std::size_t width, std::size_t item> void walk(const TransposeStrip& strip) {
    if constexpr (turns_in_registers(item)) {
        if (!strip.streaming) {
            return Walk<width, item, false, false>(strip).go();
        }
        if (strip.lined_up) {
            return Walk<width, item, false, true>(strip).go();
        }
        return Walk<width, item, true, true>(strip).go();
    } else if (strip.streaming) {
        Walk<width, item, true, true>(strip).go();
    } else {
        Walk<width, item, false, false>(strip).go();
    }
}

template <std::size_t width> [[gnu::always_inline]] inline void walk(std::size_t item, const TransposeStrip& strip) {
    switch (item) {
        case 1:
            return walk<width, 1>(strip);
        case 2:
            return walk<width, 2>(strip);
        case 3:
            return walk<width, 3>(strip);
        case 4:
            return walk<width, 4>(strip);
        case 5:
            return walk<width, 5>(strip);
        case 6:
            return walk<width, 6>(strip);
        case 7:
            return walk<width, 7>(strip);
        case 8:
            return walk<width, 8>(strip);
        case 9:
            return walk<width, 9>(strip);
        case 10:
            return walk<width, 10>(strip);
        case 11:
            return walk<width, 11>(strip);
        case 12:
            return walk<width, 12>(strip);
        case 13:
            return walk<width, 13>(strip);
        case 14:
            return walk<width, 14>(strip);
        case 15:
            return walk<width, 15>(strip);
        case 16:
            return walk<width, 16>(strip);
        default:
            return;  // transpose has refused it
    }
}

}  // namespace
}  // namespace tilewise::kernel
