// How the two engines of `staged` cut a matrix. Everything here is in the order in which the input's file stores its
// numbers.
#pragma once

#include <algorithm>
#include <cmath>

#include "tilewise/base/page.hpp"
#include "tilewise/transpose/transpose.hpp"

namespace tilewise::transpose {

/// Whether both are single binary files that differ in their order of storage: what the engines below are for.
bool is_plain_turn(const io::Region& from, const io::Region& to);

inline constexpr std::int64_t mapped_strip_bytes = std::int64_t{2} << 20;  ///< and at least a cache line of columns
/// Requests of tiles past the page cache, on a node: devices want several, and pieces are short. Each rank has two at
/// least, with a buffer for each both ways.
inline constexpr int requests_in_flight = 8;
inline constexpr std::int64_t bounce_bytes = std::int64_t{256} << 10;  ///< of such a buffer, and a page on either side

/// Out of mapped pages, strip by strip, in whole rows of the result. Memory: a strip for each thread. @note Collective.
void turn_mapped(Context& context, const io::Region& from, const io::Region& to, const Options& options,
                 io::Output& output);

/// Tiles through memory: one is read while another is transposed and written. What a journal holds is left as it is,
/// and told. @note Collective.
std::optional<io::Resumed> turn_tiles(Context& context, const io::Region& from, const io::Region& to,
                                      const Options& options, io::Output& output);

/// Rows and columns of the input in one tile.
struct TileShape {
    std::int64_t rows = 1, columns = 1;
};

/// The tile that reads and writes in pieces as long as can be within `bytes` of memory; borders on pages where those of
/// the matrix are. Where the matrix is narrower than a square tile, the tile takes its whole width, and more of the
/// other side.
inline TileShape tile_shape(std::int64_t rows, std::int64_t columns, std::int64_t item, std::int64_t bytes) {
    const auto whole_pages = [&](std::int64_t count, std::int64_t most) {
        const std::int64_t unit = most * item % page == 0 ? std::max<std::int64_t>(1, page / item) : 1;
        return count >= most ? most : std::max<std::int64_t>(1, count > unit ? count / unit * unit : count);
    };
    const std::int64_t numbers = std::max<std::int64_t>(1, bytes / item);
    const auto side = static_cast<std::int64_t>(std::sqrt(static_cast<double>(numbers)));
    if (columns <= side) {
        return {whole_pages(numbers / std::max<std::int64_t>(1, columns), rows), std::max<std::int64_t>(1, columns)};
    }
    if (rows <= side) {
        return {std::max<std::int64_t>(1, rows), whole_pages(numbers / std::max<std::int64_t>(1, rows), columns)};
    }
    return {whole_pages(side, rows), whole_pages(side, columns)};
}

}  // namespace tilewise::transpose
