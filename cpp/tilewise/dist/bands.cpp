// Cuts by arithmetic alone: every rank knows every rank's part of every band.
#include "tilewise/dist/bands.hpp"

#include <algorithm>
#include <cmath>

namespace tilewise::dist {

Bands::Bands(const io::Region& region, grid::Grid grid, std::int64_t elements, bool transposed)
    : rows_(region.stored_rows()),
      columns_(region.stored_columns()),
      grid_(grid),
      by_panels_(!region.tiles.empty() && grid.columns == 1) {
    width_ = std::max<std::int64_t>(1, columns_);
    if (transposed && !region.text) {
        const auto side = static_cast<std::int64_t>(std::sqrt(static_cast<double>(elements)));
        width_ = std::min(width_, std::max<std::int64_t>(1, side * grid.columns));
    }
    if (!region.text) {  // rows may be longer than a band
        width_ = std::min(width_, elements * grid.columns);
    }
    const std::int64_t share = (width_ + grid.columns - 1) / grid.columns;
    height_ = std::max<std::int64_t>(1, elements / share);
    const std::int64_t most = by_panels_ ? grid::Partition(rows_, grid.rows).largest() : rows_;
    const std::int64_t band = by_panels_ ? height_ : height_ * grid.rows;
    down_ = (most + band - 1) / band;
    across_ = (columns_ + width_ - 1) / width_;
}

grid::Block Bands::operator()(std::int64_t index, int rank) const {
    const grid::Place place = grid_.place(rank);
    const std::int64_t row = index / across_, column = index % across_ * width_;
    const grid::Range columns{column, std::min(column + width_, columns_)};
    const grid::Range mine = grid::Partition(columns.size(), grid_.columns)[place.column];
    return {rows(row, place.row), {columns.begin + mine.begin, columns.begin + mine.end}};
}

grid::Range Bands::rows(std::int64_t band, int part) const {
    if (by_panels_) {
        const grid::Range panel = grid::Partition(rows_, grid_.rows)[part];
        const std::int64_t begin = panel.begin + band * height_;
        return grid::common(panel, {begin, begin + height_});
    }
    const std::int64_t begin = band * height_ * grid_.rows, end = std::min(begin + height_ * grid_.rows, rows_);
    const grid::Range mine = grid::Partition(end - begin, grid_.rows)[part];
    return {begin + mine.begin, begin + mine.end};
}

}  // namespace tilewise::dist
