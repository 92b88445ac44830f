// Strategy `per_rank`: the matrix is a folder of tiles, one file a rank where it was written; any ranks read and write
// any of them.
//
//        A.tiles/   [ tile 0 | tile 1 ]      where rank r's share is exactly tile r, each rank touches one file,
//                   [ tile 2 | tile 3 ]      front to back; any other share touches what it needs of each
#include <algorithm>
#include <array>
#include <cstring>
#include <vector>

#include "tilewise/base/buffer.hpp"
#include "tilewise/base/threads.hpp"
#include "tilewise/io/strategy/own_share.hpp"

namespace tilewise::io {
namespace {

constexpr std::int64_t buffer_bytes = std::int64_t{4} << 20;
constexpr std::int64_t gap_bytes = std::int64_t{8} << 10;  // between wanted numbers: less is read through, not skipped
constexpr int most_threads = 8;                            // each has a buffer

/// Calls piece(data, count, row, column) for what `share` has in the rows and columns of `block`, run after run.
template <class Piece>
void for_pieces(const Transfer& transfer, const grid::Share& share, const grid::Block& block, Piece piece) {
    const std::int64_t item = transfer.item(), width = share.width();
    grid::Overlap(share, block).for_runs([&](const grid::Overlap::Run& run) {
        piece(transfer.data + (run.first.row * width + run.first.column) * item, run.count, run.in_matrix.row,
              run.in_matrix.column);
    });
}

/// The first to the last row and column of a share.
grid::Block hull_of(const grid::Share& share) {
    return {{share.rows.front().begin, share.rows.back().end}, {share.columns.front().begin, share.columns.back().end}};
}

/// Whether a share may have part of a block: most tiles are none of its business.
bool meets(const grid::Share& share, const grid::Block& block) {
    if (share.rows.empty() || share.columns.empty()) {
        return false;
    }
    return grid::common_block(hull_of(share), block).size() > 0;
}

PosixFile opened(const Transfer& transfer, const Tile& tile, PosixFile::Mode mode) {
    return {tile.path, transfer.region.name + " (" + tile.path + ")", mode};
}

/// Numbers without a file.
void fill(const Transfer& transfer, const grid::Share& share, const Tile& tile) {
    const std::string& number = transfer.region.fill;
    if (std::ssize(number) != transfer.item()) {
        throw InternalError(transfer.region.name + ": a tile has neither a file nor a number");
    }
    for_pieces(transfer, share, tile.block, [&](std::byte* data, std::int64_t count, std::int64_t, std::int64_t) {
        for (std::int64_t i = 0; i < count; ++i) {
            std::memcpy(data + i * transfer.item(), number.data(), number.size());
        }
    });
}

/// Where `part`, what a share has of a tile, lies in memory, if it is one piece both there and in the tile's file; else
/// null.
std::byte* one_piece(const Transfer& transfer, const grid::Share& share, const grid::Share& part, const Tile& tile) {
    const bool whole_rows = part.rows.size() == 1 && share.columns == std::vector{tile.block.columns};
    if (!whole_rows || tile.step != 1 || tile.down() != share.width()) {
        return nullptr;
    }
    const std::int64_t before = part.rows[0].begin * transfer.columns();
    return transfer.data + grid::count_in(share, transfer.columns(), {0, before}) * transfer.item();
}

/// Where it lies in the file.
std::int64_t file_offset(const Transfer& transfer, const grid::Share& part, const Tile& tile) {
    return tile.offset + tile.place(part.rows[0].begin, tile.block.columns.begin) * transfer.item();
}

/// Reads what `share` has of a tile. What is no single piece goes through a buffer: several rows at once, with what
/// lies between them, where that is little; numbers that lie far apart one by one.
void read_tile(Counters& count, Buffer& buffer, const Transfer& transfer, const grid::Share& share, const Tile& tile) {
    const grid::Share part = share.within(tile.block);
    if (part.size() == 0) {
        return;
    }
    if (tile.path.empty()) {
        fill(transfer, share, tile);
        return;
    }
    const PosixFile file = opened(transfer, tile, PosixFile::Mode::read);
    if (std::byte* data = one_piece(transfer, share, part, tile)) {
        const std::int64_t bytes = part.size() * transfer.item();
        count.io_calls += file.read(data, bytes, file_offset(transfer, part, tile));
        count.read += bytes;
        return;
    }
    const grid::Block hull = hull_of(part);
    const std::int64_t item = transfer.item(), apart = tile.step * item;
    const std::int64_t group = apart > item + gap_bytes ? 1 : buffer_bytes / apart;
    const std::int64_t down = tile.down() * item;
    for (std::int64_t left = hull.columns.begin; left < hull.columns.end; left += group) {
        const grid::Range columns{left, std::min(left + group, hull.columns.end)};
        const std::int64_t across = ((columns.size() - 1) * tile.step + 1) * item;
        const std::int64_t high =
            down > across + gap_bytes ? 1 : std::clamp<std::int64_t>(buffer_bytes / down, 1, hull.rows.size());
        buffer.grow(static_cast<std::size_t>((high - 1) * down + across));
        for (std::int64_t top = hull.rows.begin; top < hull.rows.end; top += high) {
            const grid::Block block{{top, std::min(top + high, hull.rows.end)}, columns};
            const std::int64_t first = tile.place(top, left), bytes = (block.rows.size() - 1) * down + across;
            count.io_calls += file.read(buffer.data(), bytes, tile.offset + first * item);
            count.read += bytes;
            for_pieces(transfer, share, block,
                       [&](std::byte* data, std::int64_t numbers, std::int64_t row, std::int64_t column) {
                           copy_items(buffer.data() + (tile.place(row, column) - first) * item, apart, data, item,
                                      numbers, item);
                       });
        }
    }
}

/// Writes what `share` has of a tile. What is no single piece goes through a buffer of whole rows, or, where it has
/// less than these or they are longer than the buffer, piece by piece, since what is between the pieces belongs to
/// other ranks. What is behind a row of the tile belongs to nobody.
void write_tile(Counters& count, Buffer& buffer, const Transfer& transfer, const grid::Share& share, const Tile& tile) {
    const grid::Share part = share.within(tile.block);
    if (part.size() == 0) {
        return;
    }
    PosixFile file = opened(transfer, tile, PosixFile::Mode::write);
    if (const std::byte* data = one_piece(transfer, share, part, tile)) {
        count.io_calls += file.write(data, part.size() * transfer.item(), file_offset(transfer, part, tile));
        file.close();
        return;
    }
    const std::int64_t item = transfer.item(), down = tile.down() * item, across = tile.block.columns.size() * item;
    const grid::Range rows = hull_of(part).rows;
    const std::int64_t high =
        down > across + gap_bytes ? 1 : std::clamp<std::int64_t>(buffer_bytes / down, 1, rows.size());
    const bool fits = across <= buffer_bytes;
    if (fits) {
        buffer.grow(static_cast<std::size_t>((high - 1) * down + across));
        if (down > across) {  // another tile's numbers may lie in between
            std::memset(buffer.data(), 0, buffer.bytes());
        }
    }
    for (std::int64_t top = rows.begin; top < rows.end; top += high) {
        const grid::Block band{{top, std::min(top + high, rows.end)}, tile.block.columns};
        const std::int64_t first = tile.place(top, tile.block.columns.begin);
        const bool whole = fits && part.within(band).size() == band.size();
        for_pieces(
            transfer, share, band, [&](std::byte* data, std::int64_t numbers, std::int64_t row, std::int64_t column) {
                const std::int64_t place = tile.place(row, column);
                if (whole) {
                    std::memcpy(buffer.data() + (place - first) * item, data, static_cast<std::size_t>(numbers * item));
                } else {
                    count.io_calls += file.write(data, numbers * item, tile.offset + place * item);
                }
            });
        if (whole) {
            count.io_calls +=
                file.write(buffer.data(), (band.rows.size() - 1) * down + across, tile.offset + first * item);
        }
    }
    file.close();
}

/// Calls move(counters, tile) for each tile that `share` may have part of, on the threads of the rank.
template <class Move> void for_tiles(Context& context, const Transfer& transfer, const grid::Share& share, Move move) {
    std::vector<const Tile*> mine;
    for (const Tile& tile : transfer.region.tiles) {
        if (meets(share, tile.block)) {
            mine.push_back(&tile);
        }
    }
    const bool alone = share.size() * transfer.item() < worth_threads;
    std::array<Counters, most_threads> counts;
    std::array<Buffer, most_threads> buffers;
    parallel_tasks(alone ? 1 : std::min(context.threads, most_threads), std::ssize(mine),
                   [&](std::int64_t task, int thread) {
                       const auto own = static_cast<std::size_t>(thread);
                       move(counts[own], buffers[own], *mine[static_cast<std::size_t>(task)]);
                   });
    for (const Counters& count : counts) {
        context.ledger.count().io_calls += count.io_calls;
        context.ledger.count().read += count.read;
    }
}

/// Each tile is opened when its turn comes: there may be more of them than a process can have open.
class PerRank final : public OpenFile {
public:
    using OpenFile::OpenFile;

    void move() override {
        const Timed moving = timed(Step::file, reads() ? "read tiles of" : "write tiles of");
        const grid::Share share = transfer_.share_of(me());
        mpi::together(context_.comm, [&] {
            for_tiles(context_, transfer_, share, [&](Counters& counts, Buffer& buffer, const Tile& tile) {
                (reads() ? read_tile : write_tile)(counts, buffer, transfer_, share, tile);
            });
        });
        (reads() ? count().useful : count().written) += share.size() * transfer_.item();
    }
};

}  // namespace

void read_tiles(Counters& count, const Transfer& transfer, const grid::Share& share) {
    Buffer buffer;
    for (const Tile& tile : transfer.region.tiles) {
        if (meets(share, tile.block)) {
            read_tile(count, buffer, transfer, share, tile);
        }
    }
}

Strategy make_per_rank(const Hints&) { return strategy_of<PerRank>(); }

}  // namespace tilewise::io
