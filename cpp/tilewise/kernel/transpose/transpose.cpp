// Cuts a transposition into strips for threads, and hands them to the code for this processor.
#include "tilewise/kernel/transpose/transpose.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <string>

#include "tilewise/base/buffer.hpp"
#include "tilewise/base/error.hpp"
#include "tilewise/base/threads.hpp"
#include "tilewise/base/work.hpp"
#include "tilewise/kernel/isa/backend.hpp"

namespace tilewise::kernel {
namespace {

constexpr std::int64_t cache_line = 64;
constexpr std::int64_t worth_threads = std::int64_t{4}
                                       << 20;  // bytes: below, starting threads costs more than they save
constexpr std::int64_t worth_streaming = std::int64_t{8} << 20;  // bytes: below, a cache holds both matrices

constexpr std::int64_t up(std::int64_t count, std::int64_t unit) { return (count + unit - 1) / unit * unit; }

/// Tiles have multiples of this many rows and columns: whole lines of the target, and whole blocks for registers.
constexpr std::int64_t unit_of(std::int64_t item) { return (item & (item - 1)) == 0 ? cache_line / item : cache_line; }

/// The whole matrix as one strip, before it is cut; `staging` is each thread's own.
struct Whole {
    TransposeStrip strip;
    std::size_t item;
    std::int64_t tile_columns;
    int threads;
};

void walk_all(const Whole& whole) {
    const auto walk_strip = backend().transpose;
    const TransposeStrip& all = whole.strip;
    if (all.rows == 0) {
        return;
    }
    const auto size = static_cast<std::int64_t>(whole.item);
    const std::int64_t strips = (all.columns + whole.tile_columns - 1) / whole.tile_columns;
    // A strip is best walked down to its end; only where there are few of them for the threads are they cut across.
    const std::int64_t tiles = (all.rows + all.tile_rows - 1) / all.tile_rows;
    const std::int64_t bands = std::min(tiles, (4 * whole.threads + strips - 1) / strips);
    parallel_ranges(whole.threads, strips * bands, [&](std::int64_t first, std::int64_t last, int) {
        const Buffer staging(
            static_cast<std::size_t>(staging_bytes(std::min(whole.tile_columns, all.columns), all.tile_rows, size)));
        for (std::int64_t piece = first; piece < last; ++piece) {
            const std::int64_t j = piece / bands * whole.tile_columns, band = piece % bands;
            const std::int64_t i = tiles * band / bands * all.tile_rows;
            TransposeStrip strip = all;
            strip.from += i * all.from_stride + j * size;
            strip.to += j * all.to_stride + i * size;
            strip.rows = std::min(tiles * (band + 1) / bands * all.tile_rows, all.rows) - i;
            strip.columns = std::min(whole.tile_columns, all.columns - j);
            strip.staging = staging.data();
            walk_strip(whole.item, strip);
        }
    });
}

}  // namespace

TransposeTile default_transpose_tile(std::size_t item) {
    const auto size = static_cast<std::int64_t>(std::max<std::size_t>(item, 1));
    // Reading wants long runs, writing past the caches does well with short ones. Two-byte items make tiles of many
    // rows: with runs half as long, the tile and the one that is fetched meanwhile stay in the second-level cache.
    // Those of eight bytes have few rows, and room for more.
    const std::int64_t run = size == 2 ? 2048 : size == 8 ? 8192 : 4096;
    return {.rows = up(128 / size, unit_of(size)), .columns = up(run / size, unit_of(size)), .streaming = true};
}

void transpose(const std::byte* from, std::int64_t from_stride, std::int64_t rows, std::int64_t columns,
               std::size_t item, std::byte* to, std::int64_t to_stride, int threads, const TransposeTile& tile) {
    if (item < 1 || item > 16) {
        throw InternalError("cannot transpose items of " + std::to_string(item) + " bytes; they must have 1 to 16");
    }
    const auto size = static_cast<std::int64_t>(item);
    if (rows == 0 || columns == 0 || stood_in_for(0, 2 * static_cast<double>(rows * columns * size))) {
        return;
    }
    if ((rows == 1 && to_stride == size) || (columns == 1 && from_stride == size)) {
        std::memcpy(to, from, static_cast<std::size_t>(rows * columns * size));
        return;
    }
    Whole whole{.strip = {.from = from,
                          .from_stride = from_stride,
                          .to = to,
                          .to_stride = to_stride,
                          .rows = rows,
                          .columns = columns,
                          .tile_rows = up(std::clamp<std::int64_t>(tile.rows, 1, rows), unit_of(size)),
                          .streaming = tile.streaming,
                          .lined_up = false,
                          .staging = nullptr},
                .item = item,
                .tile_columns = up(std::clamp<std::int64_t>(tile.columns, 1, columns), unit_of(size)),
                .threads = rows * columns * size < worth_threads ? 1 : threads};
    const auto behind = static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(to) % cache_line);
    const std::int64_t lacks = (cache_line - behind) % cache_line;
    if (tile.streaming && to_stride % cache_line == 0 && lacks % size == 0) {
        // All rows of the target start equally far behind a line: turn as many rows first as lead to the next one.
        const std::int64_t head = std::min(lacks / size, rows);
        Whole first = whole;
        first.strip.rows = head;
        first.strip.streaming = false;
        first.threads = 1;
        walk_all(first);
        whole.strip.from += head * from_stride;
        whole.strip.to += head * size;
        whole.strip.rows -= head;
        whole.strip.lined_up = true;
    }
    walk_all(whole);
}

void transpose(const std::byte* from, std::int64_t from_stride, std::int64_t rows, std::int64_t columns,
               std::size_t item, std::byte* to, std::int64_t to_stride, int threads) {
    TransposeTile tile = default_transpose_tile(item);
    tile.streaming = tile.streaming && rows * columns * static_cast<std::int64_t>(item) >= worth_streaming;
    transpose(from, from_stride, rows, columns, item, to, to_stride, threads, tile);
}

void plain_transpose(const std::byte* from, std::int64_t from_stride, std::int64_t rows, std::int64_t columns,
                     std::size_t item, std::byte* to, std::int64_t to_stride) {
    const auto size = static_cast<std::int64_t>(item);
    for (std::int64_t i = 0; i < rows; ++i) {
        for (std::int64_t j = 0; j < columns; ++j) {
            std::memcpy(to + j * to_stride + i * size, from + i * from_stride + j * size, item);
        }
    }
}

}  // namespace tilewise::kernel
