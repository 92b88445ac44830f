// How the two engines of `staged` cut a matrix. Everything here is in the order in which the input's file stores its numbers.
#pragma once

#include <algorithm>
#include <cmath>

#include "tilewise/transpose/transpose.hpp"

namespace tilewise::transpose {

inline constexpr std::int64_t page = 4096;

/// Whether both are single binary files that differ in their order of storage: what the engines below are for.
bool is_plain_turn(const io::Region& from, const io::Region& to);

inline constexpr std::int64_t mapped_strip_bytes = std::int64_t{2} << 20;  ///< and at least a cache line of columns

/// Out of mapped pages, strip by strip, in whole rows of the result. Memory: a strip for each thread. @note Collective.
void turn_mapped(Context& context, const io::Region& from, const io::Region& to, const Options& options);

/// Tiles through memory: one is read while another is turned and written. @note Collective.
void turn_tiles(Context& context, const io::Region& from, const io::Region& to, const Options& options);

/// Rows and columns of the input in one tile.
struct TileShape {
    std::int64_t rows = 1, columns = 1;
};

/// The tile that reads and writes in pieces as long as can be within `bytes` of memory, padding to pages included; borders on pages where pieces are longer
/// than a page. Where the matrix is narrower than a square tile, the tile takes its whole width, and more of the other side.
inline TileShape tile_shape(std::int64_t rows, std::int64_t columns, std::int64_t item, std::int64_t bytes) {
    constexpr std::int64_t padding = 3 * page;
    const auto whole_pages = [&](std::int64_t count, std::int64_t most) {
        const std::int64_t unit = std::max<std::int64_t>(1, page / item);
        return count >= most ? most : std::max<std::int64_t>(1, count > unit ? count / unit * unit : count);
    };
    const double p = static_cast<double>(padding), s = static_cast<double>(item), b = static_cast<double>(bytes);
    const auto side =
        std::max<std::int64_t>(1, static_cast<std::int64_t>((std::sqrt(p * p + 4 * s * b) - p) / (2 * s)));
    const auto rest = [&](std::int64_t taken) {
        // `taken` pieces of so many items and the padding of each; and the same seen from the other side.
        const std::int64_t by_rows = bytes / (taken * item + padding);
        const std::int64_t by_columns = (bytes / taken - padding) / item;
        return std::max<std::int64_t>(1, std::min(by_rows, by_columns));
    };
    if (columns <= side) {
        return {whole_pages(rest(std::max<std::int64_t>(1, columns)), rows), std::max<std::int64_t>(1, columns)};
    }
    if (rows <= side) {
        return {std::max<std::int64_t>(1, rows), whole_pages(rest(std::max<std::int64_t>(1, rows)), columns)};
    }
    return {whole_pages(side, rows), whole_pages(side, columns)};
}

}  // namespace tilewise::transpose
