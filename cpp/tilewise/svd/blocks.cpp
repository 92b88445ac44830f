// Memory of blocks is handed from one that leaves to one that arrives: all but an unusually wide one are of nearly the same size.
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

void Blocks::fill(Buffer x, Buffer v) {
    const auto copy = [this](const Buffer& from, std::int64_t height, std::int64_t below) {
        const auto* next = reinterpret_cast<const double*>(from.data());
        for (const Block& block : blocks_) {
            const std::int64_t columns = block.columns.size();
            std::copy_n(next, columns * height, block.data() + columns * below);
            next += columns * height;
        }
    };
    copy(x, shape_.rows, 0);
    x = Buffer();
    if (shape_.v_rows > 0) {
        copy(v, shape_.v_rows, shape_.rows);
    }
}

Block Blocks::arriving(int index) {
    Block block{index, cut_[index], {}};
    const std::size_t needed = bytes(block.columns.size());
    const auto found =
        std::find_if(free_.begin(), free_.end(), [&](const Buffer& buffer) { return buffer.bytes() >= needed; });
    if (found != free_.end()) {
        block.memory = std::move(*found);
        free_.erase(found);
    } else {
        // A column more than the usual block has will do for all of those.
        block.memory = Buffer(std::max(needed, bytes(cut_.count() / cut_.parts() + 1)));
    }
    return block;
}

}  // namespace tilewise::svd
