// Memory of blocks is handed from one that leaves to one that arrives: all but an unusually wide one are of nearly the
// same size.
#include "tilewise/svd/blocks.hpp"

#include <algorithm>

namespace tilewise::svd {

template <class T>
Blocks<T>::Blocks(const grid::Ring& ring, const grid::Partition& cut, const Shape& shape, int rank)
    : cut_(cut),
      shape_(shape),
      positions_(ring.positions_of(rank)) {
    const grid::Range mine = ring.first_blocks_of(rank);
    for (std::int64_t index = mine.begin; index < mine.end; ++index) {
        blocks_.push_back(arriving(static_cast<int>(index)));
    }
}

template <class T> void Blocks<T>::fill(kernel::MatrixOf<T> x, kernel::MatrixOf<T> v) {
    const auto copy = [this](const kernel::MatrixOf<T>& from,
                             kernel::ColumnsOf<T> (Block<T>::*part)(const Shape&) const) {
        std::int64_t next = 0;
        for (const Block<T>& block : blocks_) {
            const kernel::ColumnsOf<T> to = (block.*part)(shape_);
            for (std::int64_t c = 0; c < to.count; ++c) {
                std::copy_n(from.column(next++), to.rows, to.column(c));
            }
        }
    };
    copy(x, &Block<T>::x);
    x = {};
    if (v.rows > 0) {
        copy(v, &Block<T>::v);
        return;
    }
    for (const Block<T>& block : blocks_) {
        const kernel::ColumnsOf<T> identity = block.v(shape_);
        for (std::int64_t c = 0; c < identity.count; ++c) {
            std::fill_n(identity.column(c), identity.rows, T{});
            identity.column(c)[block.columns.begin + c] = 1.0;
        }
    }
}

template <class T> Block<T> Blocks<T>::arriving(int index) {
    Block<T> block{index, cut_[index], {}};
    const std::int64_t needed = block.columns.size() * shape_.height();
    const auto found =
        std::find_if(free_.begin(), free_.end(), [&](const Array<T>& memory) { return memory.holds(needed); });
    if (found != free_.end()) {
        block.memory = std::move(*found);
        free_.erase(found);
    } else {
        // A column more than the usual block has will do for all of those.
        block.memory = Array<T>(std::max(needed, (cut_.count() / cut_.parts() + 1) * shape_.height()));
    }
    return block;
}

template class Blocks<double>;
template class Blocks<kernel::Complex>;

}  // namespace tilewise::svd
