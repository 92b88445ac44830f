// Cuts a plane, deals its tiles out, and finds what lies around them.
#include "tilewise/stencil/tiling.hpp"

#include <algorithm>

#include "tilewise/stencil/halo.hpp"

namespace tilewise::stencil {
namespace {

int parts_of(std::int64_t count, std::int64_t most) {
    const std::int64_t size = std::max<std::int64_t>(1, most);
    return static_cast<int>(std::max<std::int64_t>(1, (count + size - 1) / size));
}

grid::Range around(grid::Range range, std::int64_t cells) { return {range.begin - cells, range.end + cells}; }

grid::Block around(const grid::Block& block, std::int64_t cells) {
    return {around(block.rows, cells), around(block.columns, cells)};
}

grid::Block common(const grid::Block& a, const grid::Block& b) {
    return {grid::common(a.rows, b.rows), grid::common(a.columns, b.columns)};
}

}  // namespace

grid::Block Tile::right(std::int64_t left) const { return common(around(cells, left), needed); }

Tiling::Tiling(std::int64_t plane_rows, std::int64_t plane_columns, std::int64_t rows, std::int64_t columns, int ranks,
               bool in_turn, bool periodic)
    : rows_(plane_rows, parts_of(plane_rows, rows)),
      columns_(plane_columns, parts_of(plane_columns, columns)),
      dealt_(std::int64_t{rows_.parts()} * columns_.parts(), ranks),
      in_turn_(in_turn),
      periodic_(periodic) {}

std::int64_t Tiling::number(int rank, std::int64_t turn) const {
    const std::int64_t number = in_turn_ ? turn * ranks() + rank : dealt_[rank].begin + turn;
    return turn >= 0 && number < (in_turn_ ? tiles() : dealt_[rank].end) ? number : -1;
}

grid::Block Tiling::needed(const grid::Block& cells, std::int64_t reach) const {
    const grid::Block wide = around(cells, reach);
    return periodic_ ? wide : common(wide, {{0, rows_.count()}, {0, columns_.count()}});
}

Tile Tiling::tile(int rank, std::int64_t turn, std::int64_t reach) const {
    const auto cells_of = [&](std::int64_t number) -> grid::Block {
        return {rows_[static_cast<int>(number % rows_.parts())], columns_[static_cast<int>(number / rows_.parts())]};
    };
    const std::int64_t own = number(rank, turn), before = number(rank, turn - 1);
    if (own < 0 || cells_of(own).size() == 0) {
        return {};
    }
    Tile tile{.cells = cells_of(own), .needed = needed(cells_of(own), reach), .fresh = {}, .edges = {}};
    tile.fresh = tile.needed.rows;
    if (before >= 0 && before / rows_.parts() == own / rows_.parts()) {
        const grid::Range read = needed(cells_of(before), reach).rows;
        tile.fresh.begin = std::clamp(read.end, tile.fresh.begin, tile.fresh.end);
    }
    tile.edges = {.top = !periodic_ && tile.needed.rows.begin == 0,
                  .bottom = !periodic_ && tile.needed.rows.end == rows_.count(),
                  .left = !periodic_ && tile.needed.columns.begin == 0,
                  .right = !periodic_ && tile.needed.columns.end == columns_.count()};
    return tile;
}

grid::Block Tiling::largest(std::int64_t reach) const {
    const auto along = [&](const grid::Partition& cut) -> grid::Range {
        const std::int64_t most = cut[0].size() + 2 * reach;
        return {0, periodic_ ? most : std::min(most, cut.count())};
    };
    return {along(rows_), along(columns_)};
}

Window::Window(grid::Range wanted, std::int64_t count, bool periodic) {
    if (!periodic) {
        places = {wanted};
        runs = {{0, 0, wanted.size()}};
        return;
    }
    const auto pieces = stretches(grid::Partition(count, 1), {wanted.begin, wanted.begin}, 0, wanted.size(), true);
    std::vector<grid::Range> all;
    for (const Stretch& piece : pieces) {
        all.push_back(piece.there);
    }
    std::sort(all.begin(), all.end(), [](grid::Range a, grid::Range b) { return a.begin < b.begin; });
    for (const grid::Range& range : all) {
        if (!places.empty() && range.begin <= places.back().end) {
            places.back().end = std::max(places.back().end, range.end);
        } else {
            places.push_back(range);
        }
    }
    for (const Stretch& piece : pieces) {
        std::int64_t before = 0;
        for (const grid::Range& range : places) {
            before += std::clamp<std::int64_t>(piece.there.begin - range.begin, 0, range.size());
        }
        runs.push_back({piece.here.begin, before, piece.here.size()});
    }
}

}  // namespace tilewise::stencil
