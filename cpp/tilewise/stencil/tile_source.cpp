// Reads the rows that are new, and puts each place of the plane wherever the field shows it.
#include "tilewise/stencil/tile_source.hpp"

#include <cstring>

#include "tilewise/base/threads.hpp"
#include "tilewise/mpi/together.hpp"

namespace tilewise::stencil {
namespace {

grid::Range from_begin(const grid::Range& range, const grid::Range& whole) {
    return {range.begin - whole.begin, range.end - whole.begin};
}

}  // namespace

TileSource::TileSource(Context& context, const io::Region& region, std::int64_t planes, const Tiling& tiling,
                       io::StrategyKind read, const io::Hints& hints)
    : region_(region),
      planes_(region, planes),
      tiling_(tiling),
      input_(context, region, read, hints) {
    if (read == io::StrategyKind::positioned) {
        mpi::together(context.comm, [&] { ahead_.emplace(region); });
    }
}

grid::Share TileSource::share(const Tile& tile) const {
    if (tile.fresh.size() == 0) {
        return {};
    }
    const bool periodic = tiling_.is_periodic();
    return {Window(tile.fresh, planes_.rows, periodic).places,
            Window(tile.needed.columns, planes_.columns, periodic).places};
}

void TileSource::load(Context& context, std::int64_t plane, std::int64_t turn, std::int64_t reach,
                      const Fields& fields) {
    const auto tile_of = [&](int rank, std::int64_t at) { return tiling_.tile(rank, at, reach); };
    const Tile tile = tile_of(context.comm.rank(), turn);
    input_.load_raw(context, [&](int rank) { return planes_.wanted(plane, share(tile_of(rank, turn))); }, fields[1]);
    const Tile next = turn + 1 < tiling_.turns() ? tile_of(context.comm.rank(), turn + 1) : Tile{};
    if (ahead_ && next.fresh.size() > 0) {
        ahead_->want(region_.stored(planes_.wanted(plane, share(next))));
    }
    const Timed timed(context.ledger, context.ledger.phase(), Step::convert, "fill");
    mpi::together(context.comm, [&] {
        if (tile.cells.size() == 0) {
            return;
        }
        const std::int64_t above = tile.fresh.begin - tile.needed.rows.begin,
                           row_bytes = tile.needed.columns.size() * fields.item();
        for (std::int64_t row = 0; row < above; ++row) {
            std::memcpy(fields.at(0, row, 0), kept_.data() + row * row_bytes, static_cast<std::size_t>(row_bytes));
        }
        const Window rows(tile.fresh, planes_.rows, tiling_.is_periodic()),
            columns(tile.needed.columns, planes_.columns, tiling_.is_periodic());
        const std::int64_t line = grid::Share(rows.places, columns.places).width();
        const bool swapped = region_.swap_bytes && region_.generator.empty();  // what is made is in our own order
        for (const Window::Run& down : rows.runs) {
            for (const Window::Run& across : columns.runs) {
                const std::int64_t at = down.there * line + across.there;
                fill_field(
                    fields[1] + at * static_cast<std::int64_t>(size_of(region_.dtype)), region_.dtype, swapped, fields,
                    0,
                    {{above + down.here, above + down.here + down.length}, {across.here, across.here + across.length}},
                    context.threads, line);
            }
        }
        keep(context, tile, next, fields);
    });
}

void TileSource::keep(const Context& context, const Tile& tile, const Tile& next, const Fields& fields) {
    const grid::Range shared = from_begin({next.needed.rows.begin, next.fresh.begin}, tile.needed.rows);
    if (shared.size() == 0) {
        return;
    }
    const std::int64_t row_bytes = tile.needed.columns.size() * fields.item(), bytes = shared.size() * row_bytes;
    if (static_cast<std::int64_t>(kept_.bytes()) < bytes) {
        kept_ = Buffer(static_cast<std::size_t>(bytes));
    }
    constexpr std::int64_t worth_threads = std::int64_t{1} << 20;  // bytes
    parallel_ranges(bytes < worth_threads ? 1 : context.threads, shared.size(),
                    [&](std::int64_t begin, std::int64_t end, int) {
                        for (std::int64_t row = begin; row < end; ++row) {
                            std::memcpy(kept_.data() + row * row_bytes, fields.at(0, shared.begin + row, 0),
                                        static_cast<std::size_t>(row_bytes));
                        }
                    });
}

}  // namespace tilewise::stencil
