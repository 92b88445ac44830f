// The column blocks that a rank holds: two at each of its positions, each with its columns of X and, where it
// is wanted, of V.
//
//     a block's memory    [ X: rows × width, column by column | V: v_rows × width ]     one message takes both
#pragma once

#include <vector>

#include "tilewise/base/array.hpp"
#include "tilewise/grid/ring.hpp"
#include "tilewise/kernel/factor/jacobi.hpp"

namespace tilewise::svd {

/// What is swept: n columns of X, and as many of V.
struct Shape {
    std::int64_t rows = 0;    ///< of X
    std::int64_t v_rows = 0;  ///< of V; 0: V is not wanted

    std::int64_t height() const { return rows + v_rows; }
};

template <class T> struct Block {
    int index = 0;
    grid::Range columns;
    Array<T> memory;

    T* data() const { return memory.data(); }
    std::int64_t numbers(const Shape& shape) const { return columns.size() * shape.height(); }
    kernel::ColumnsOf<T> x(const Shape& shape) const { return {data(), shape.rows, columns.size(), shape.rows}; }
    kernel::ColumnsOf<T> v(const Shape& shape) const {
        return {data() + shape.rows * columns.size(), shape.v_rows, shape.v_rows > 0 ? columns.size() : 0,
                shape.v_rows};
    }
};

template <class T> class Blocks {
public:
    /// The first blocks of a rank, their numbers not set.
    Blocks(const grid::Ring& ring, const grid::Partition& cut, const Shape& shape, int rank);

    const Shape& shape() const { return shape_; }
    const grid::Partition& cut() const { return cut_; }
    /// Takes the columns of the blocks that the rank begins with, one beside the other; X is gone before V is
    /// touched, which is I where it is empty.
    void fill(kernel::MatrixOf<T> x, kernel::MatrixOf<T> v);
    /// Lets go of memory for blocks to come.
    void end_of_sweeps() { free_.clear(); }
    std::int64_t first_position() const { return positions_.begin; }
    int positions() const { return static_cast<int>(positions_.size()); }

    Block<T>& at(grid::Seat seat) { return blocks_[slot(seat)]; }
    /// Memory for a block that arrives, from those that have left, if one of them is large enough.
    Block<T> arriving(int index);
    /// Keeps a block's memory for those to come.
    void left(Block<T>&& block) { free_.push_back(std::move(block.memory)); }

    std::vector<Block<T>>& all() { return blocks_; }

private:
    std::size_t slot(grid::Seat seat) const {
        return static_cast<std::size_t>(2 * (seat.position - positions_.begin) +
                                        (seat.side == grid::Side::bottom ? 1 : 0));
    }

    grid::Partition cut_;
    Shape shape_;
    grid::Range positions_;
    std::vector<Block<T>> blocks_;
    std::vector<Array<T>> free_;
};

extern template class Blocks<double>;
extern template class Blocks<kernel::Complex>;

}  // namespace tilewise::svd
