// Cuts a stored matrix into contiguous bands that fit a bounded buffer: what rank 0 holds at a time when it reads or writes for all.
#pragma once

#include <algorithm>
#include <vector>

#include "tilewise/io/strategy.hpp"

namespace tilewise::io {

inline constexpr std::int64_t band_bytes = std::int64_t{8} << 20;

/// Full-width bands of whole rows; where one row exceeds the buffer, parts of single rows. Each is contiguous in the file.
class Bands {
public:
    explicit Bands(const Transfer& transfer)
        : rows_(transfer.rows()),
          columns_(transfer.columns()),
          width_(std::clamp<std::int64_t>(band_bytes / transfer.item(), 1, std::max<std::int64_t>(columns_, 1))),
          height_(width_ < columns_
                      ? 1
                      : std::max<std::int64_t>(1, band_bytes / std::max<std::int64_t>(1, columns_ * transfer.item()))) {
    }

    std::int64_t count() const { return rows_ == 0 || columns_ == 0 ? 0 : down() * across(); }
    grid::Block operator[](std::int64_t index) const {
        const std::int64_t row = index / across() * height_, column = index % across() * width_;
        return {{row, std::min(row + height_, rows_)}, {column, std::min(column + width_, columns_)}};
    }
    std::int64_t largest() const { return width_ * height_; }

private:
    std::int64_t down() const { return (rows_ + height_ - 1) / height_; }
    std::int64_t across() const { return (columns_ + width_ - 1) / width_; }

    std::int64_t rows_, columns_, width_, height_;
};

inline grid::Range common(grid::Range a, grid::Range b) {
    const std::int64_t begin = std::max(a.begin, b.begin), end = std::min(a.end, b.end);
    return {begin, std::max(begin, end)};
}
inline grid::Block common(const grid::Block& a, const grid::Block& b) {
    return {common(a.rows, b.rows), common(a.columns, b.columns)};
}

/// Where a piece of `block` begins in the rank's memory. A piece of a band is contiguous there: it is as wide as the block, or
/// a single row.
inline std::byte* piece_data(const Transfer& transfer, const grid::Block& block, const grid::Block& piece) {
    const std::int64_t elements =
        (piece.rows.begin - block.rows.begin) * block.columns.size() + piece.columns.begin - block.columns.begin;
    return transfer.data + elements * transfer.item();
}

}  // namespace tilewise::io
