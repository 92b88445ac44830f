// Datatypes for blocks: one number, a strided rectangle, a rectangle of a file, and counts beyond 2³¹.
#pragma once

#include "tilewise/base/dtype.hpp"
#include "tilewise/grid/share.hpp"
#include "tilewise/mpi/handle.hpp"

namespace tilewise::mpi {

/// The predefined MPI type of a dtype; float16 as two bytes, which MPI can move but not add.
MPI_Datatype type_of(Dtype dtype);

/// `count` items of `item` as (count, type) that fit MPI's 32-bit counts, whatever `count` is: the only place that
/// knows about large counts. Below 2³¹ it is the item itself; above, one derived type of chunks.
class Span {
public:
    Span(std::int64_t count, MPI_Datatype item);
    /// A rectangle of `rows` rows that lie `stride` items apart; without gaps it is `rows · columns` items.
    Span(std::int64_t rows, std::int64_t columns, std::int64_t stride, MPI_Datatype item);

    int count() const { return count_; }
    MPI_Datatype type() const { return derived_ ? derived_.get() : item_; }

private:
    MPI_Datatype item_;
    int count_;
    Datatype derived_;
};

/// `rows` rows of `columns` items, the rows `stride` items apart; committed.
Datatype strided(std::int64_t rows, std::int64_t columns, std::int64_t stride, MPI_Datatype item);

/// The share of a rows × columns row-major matrix of items, as a file view wants it; committed. Empty shares are
/// allowed.
Datatype share_of_matrix(std::int64_t rows, std::int64_t columns, const grid::Share& share, MPI_Datatype item);

}  // namespace tilewise::mpi
