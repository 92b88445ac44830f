// Walks over the cells of a share's span, and takes two samples of each that it has something of.
#include "tilewise/io/samples.hpp"

#include <algorithm>
#include <bit>

namespace tilewise::io {

std::vector<Sample> samples_of(const grid::Share& share, std::int64_t columns, std::int64_t item, grid::Range within,
                               std::int64_t cell, int turn) {
    std::vector<Sample> samples;
    const grid::Range span = grid::common(grid::span_of(share, columns), within);
    const std::int64_t own = grid::count_in(share, columns, span);
    if (own == 0) {
        return samples;
    }
    const std::int64_t step = std::max<std::int64_t>(1, cell / item),
                       few = std::max<std::int64_t>(1, sample_bytes / item);
    // A power of two, so that ranks of which one has a column more than another still come in turn.
    const std::int64_t turns =
        turn < 0 ? 1 : static_cast<std::int64_t>(std::bit_floor(static_cast<std::uint64_t>(span.size() / own)));
    const std::int64_t first_cell = span.begin / step, last_cell = (span.end - 1) / step;
    const auto look = [&](std::int64_t index) {
        Sample head{}, tail{};
        grid::for_runs(share, columns, grid::common(span, {index * step, (index + 1) * step}),
                       [&](std::int64_t first, std::int64_t count, std::int64_t local) {
                           const std::int64_t some = std::min(count, few);
                           if (head.count == 0) {
                               head = {first, some, local};
                           }
                           tail = {first + count - some, some, local + count - some};
                       });
        if (head.count > 0) {
            samples.push_back(head);
        }
        if (tail.first != head.first) {
            samples.push_back(tail);
        }
    };
    look(first_cell);
    const std::int64_t mine = turn < 0 ? 0 : turn % turns;
    for (std::int64_t index = first_cell + 1 + (mine - (first_cell + 1) % turns + turns) % turns; index < last_cell;
         index += turns) {
        look(index);
    }
    if (last_cell != first_cell) {
        look(last_cell);
    }
    return samples;
}

}  // namespace tilewise::io
