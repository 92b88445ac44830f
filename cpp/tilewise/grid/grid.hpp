// Arranges ranks in rows and columns, and says which block of a matrix a place in that arrangement owns.
#pragma once

#include "tilewise/grid/partition.hpp"

namespace tilewise::grid {

/// A rectangle of a matrix; may be empty.
struct Block {
    Range rows, columns;

    std::int64_t size() const { return rows.size() * columns.size(); }
    Block transposed() const { return {columns, rows}; }
    bool operator==(const Block&) const = default;
};

struct Place {
    int row = 0;
    int column = 0;
};

/// p × q ranks, numbered row by row.
struct Grid {
    int rows = 1;
    int columns = 1;

    int size() const { return rows * columns; }
    Place place(int rank) const { return {rank / columns, rank % columns}; }
    int rank(Place place) const { return place.row * columns + place.column; }
};

}  // namespace tilewise::grid
