// Cuts by arithmetic alone: every rank knows every rank's part of every band.
#include "tilewise/dist/bands.hpp"

#include <algorithm>
#include <cmath>

namespace tilewise::dist {

Bands::Bands(const io::Region& region, grid::Grid grid, std::int64_t elements, bool transposed, const io::Region* read)
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
    const std::int64_t height = std::max<std::int64_t>(1, elements / share);
    const std::int64_t most = by_panels_ ? grid::Partition(rows_, grid.rows).largest() : rows_;
    band_ = by_panels_ ? height : height * grid.rows;
    const io::Region& source = read == nullptr ? region : *read;
    if (source.chunks != nullptr && !by_panels_) {
        const bool turned = source.stored_transposed() != region.stored_transposed();
        const std::int64_t rows = turned ? source.chunks->columns : source.chunks->rows,
                           columns = turned ? source.chunks->rows : source.chunks->columns;
        end_with_chunks(rows, columns, elements, region.text.has_value());
    }
    down_ = (most + band_ - 1) / band_;
    across_ = (columns_ + width_ - 1) / width_;
}

void Bands::end_with_chunks(std::int64_t rows, std::int64_t columns, std::int64_t elements, bool whole_rows) {
    const auto floored = [](std::int64_t value, std::int64_t unit) { return value / unit * unit; };
    const std::int64_t all = std::max<std::int64_t>(1, columns_), across = (all + grid_.columns - 1) / grid_.columns,
                       fitting = elements / across * grid_.rows;  // whole rows that all ranks have room for
    const std::int64_t height = std::min(rows, std::max<std::int64_t>(1, rows_)),
                       most = elements / ((height + grid_.rows - 1) / grid_.rows) * grid_.columns;
    if (fitting >= height) {
        width_ = all;
        band_ = fitting >= rows * grid_.rows ? floored(fitting, rows * grid_.rows)
                                             : std::max(height, floored(fitting, rows));
    } else if (floored(most, columns) > 0 && !whole_rows) {
        width_ = std::min(floored(most, columns), all);
        band_ = height;
    }
    unit_ = band_ % (rows * grid_.rows) == 0 ? rows : 1;
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
        const std::int64_t begin = panel.begin + band * band_;
        return grid::common(panel, {begin, begin + band_});
    }
    const std::int64_t begin = band * band_, end = std::min(begin + band_, rows_);
    const grid::Range mine = grid::Partition((end - begin + unit_ - 1) / unit_, grid_.rows)[part];
    return {std::min(begin + mine.begin * unit_, end), std::min(begin + mine.end * unit_, end)};
}

}  // namespace tilewise::dist
