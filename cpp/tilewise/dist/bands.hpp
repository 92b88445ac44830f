// The bands in which a matrix larger than memory passes through the ranks.
#pragma once

#include "tilewise/io/region.hpp"

namespace tilewise::dist {

/// The bands of a matrix, in the coordinates that its file stores it in, and which rank takes what of each.
///
///     in order                      by panels (a folder of tiles: each rank its own files)
///       band 0  [ r0 | r1 | r2 ]      rank 0  [ band 0 | band 1 ]
///       band 1  [ r0 | r1 | r2 ]      rank 1  [ band 0 | band 1 ]
///
/// Rows longer than a band are cut into columns, but for those of a text. Bands that lie next to each other come first.
/// Where the input is in chunks, bands end where these do as far as there is room, so that each is unpacked once.
class Bands {
public:
    /// Bands of at most `elements` numbers on each rank. `transposed`: the order of storage changes on the way, and
    /// bands are cut into columns so that pieces are long on both sides.
    /// `read`: the input, if that is another region.
    Bands(const io::Region& region, grid::Grid grid, std::int64_t elements, bool transposed,
          const io::Region* read = nullptr);

    std::int64_t count() const { return down_ * across_; }
    grid::Block operator()(std::int64_t index, int rank) const;

private:
    grid::Range rows(std::int64_t band, int part) const;
    void end_with_chunks(std::int64_t rows, std::int64_t columns, std::int64_t elements, bool whole_rows);

    std::int64_t rows_, columns_;
    grid::Grid grid_;
    bool by_panels_;
    std::int64_t width_ = 1, band_ = 1, unit_ = 1, down_ = 0, across_ = 0;  // rows of a band, and its cuts' unit
};

}  // namespace tilewise::dist
