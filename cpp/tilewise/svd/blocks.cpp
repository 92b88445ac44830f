// Memory of blocks is handed from one that leaves to one that arrives: all but an unusually wide one are of nearly the
// same size.
#include "tilewise/svd/blocks.hpp"

#include <algorithm>

namespace tilewise::svd {

Blocks::Blocks(const grid::Ring& ring, const grid::Partition& cut, const Shape& shape, int rank)
    : cut_(cut),
      shape_(shape),
      positions_(ring.positions_of(rank)) {
    const grid::Range mine = ring.first_blocks_of(rank);
    for (std::int64_t index = mine.begin; index < mine.end; ++index) {
        blocks_.push_back(arriving(static_cast<int>(index)));
    }
}

void Blocks::fill(kernel::Matrix x, kernel::Matrix v) {
    const auto copy = [this](const kernel::Matrix& from, kernel::Columns (Block::*part)(const Shape&) const) {
        std::int64_t next = 0;
        for (const Block& block : blocks_) {
            const kernel::Columns to = (block.*part)(shape_);
            for (std::int64_t c = 0; c < to.count; ++c) {
                std::copy_n(from.column(next++), to.rows, to.column(c));
            }
        }
    };
    copy(x, &Block::x);
    x = {};
    if (v.rows > 0) {
        copy(v, &Block::v);
        return;
    }
    for (const Block& block : blocks_) {
        const kernel::Columns identity = block.v(shape_);
        for (std::int64_t c = 0; c < identity.count; ++c) {
            std::fill_n(identity.column(c), identity.rows, 0.0);
            identity.column(c)[block.columns.begin + c] = 1;
        }
    }
}

Block Blocks::arriving(int index) {
    Block block{index, cut_[index], {}};
    const std::int64_t needed = block.columns.size() * shape_.height();
    const auto found =
        std::find_if(free_.begin(), free_.end(), [&](const Array<double>& memory) { return memory.holds(needed); });
    if (found != free_.end()) {
        block.memory = std::move(*found);
        free_.erase(found);
    } else {
        // A column more than the usual block has will do for all of those.
        block.memory = Array<double>(std::max(needed, (cut_.count() / cut_.parts() + 1) * shape_.height()));
    }
    return block;
}

}  // namespace tilewise::svd
