// Strategy `per_rank`: the matrix is a folder of tiles, one file a rank where it was written; any ranks read and write
// any of them.
//
//        A.tiles/   [ tile 0 | tile 1 ]      where rank r's share is exactly tile r, each rank touches one file,
//                   [ tile 2 | tile 3 ]      front to back; any other share touches what it needs of each
#include <algorithm>
#include <cstring>

#include "tilewise/base/buffer.hpp"
#include "tilewise/io/file.hpp"
#include "tilewise/io/runs.hpp"

namespace tilewise::io {
namespace {

constexpr std::int64_t buffer_bytes = std::int64_t{4} << 20;

/// Calls piece(data, bytes, offset in the tile's file) for what `share` has in rows `band` of a tile, in order.
template <class Piece>
void for_pieces(const Transfer& transfer, const grid::Share& share, const Tile& tile, grid::Range band, Piece piece) {
    const std::int64_t item = transfer.item(), n = transfer.columns(), width = tile.block.columns.size();
    grid::for_runs(share, n, {band.begin * n, band.end * n},
                   [&](std::int64_t first, std::int64_t count, std::int64_t local) {
                       // A run may be several whole rows of the matrix, and a tile narrower than these.
                       for (std::int64_t at = first; at < first + count; at = (at / n + 1) * n) {
                           const std::int64_t row = at / n, start = row * n;
                           const grid::Range own =
                               grid::common({at, std::min(first + count, start + n)},
                                            {start + tile.block.columns.begin, start + tile.block.columns.end});
                           if (own.size() > 0) {
                               const std::int64_t place =
                                   (row - tile.block.rows.begin) * width + own.begin - start - tile.block.columns.begin;
                               piece(transfer.data + (local + own.begin - first) * item, own.size() * item,
                                     tile.offset + place * item);
                           }
                       }
                   });
}

/// Reads or writes what `share` has of a tile: through a buffer of whole rows, or, to write less than whole rows, piece
/// by piece, since what is between the pieces belongs to other ranks.
void move_tile(Counters& count, const Transfer& transfer, const grid::Share& share, const Tile& tile, bool reading) {
    const grid::Share part = share.within(tile.block);
    if (part.size() == 0) {
        return;
    }
    PosixFile file(tile.path, transfer.region.name + " (" + tile.path + ")",
                   reading ? PosixFile::Mode::read : PosixFile::Mode::write);
    const std::int64_t row_bytes = tile.block.columns.size() * transfer.item();
    const std::int64_t height = std::max<std::int64_t>(1, buffer_bytes / row_bytes);
    const grid::Range rows{part.rows.front().begin, part.rows.back().end};
    const Buffer buffer(static_cast<std::size_t>(std::min(height, rows.size()) * row_bytes));
    for (std::int64_t begin = rows.begin; begin < rows.end; begin += height) {
        const grid::Range band{begin, std::min(begin + height, rows.end)};
        const std::int64_t start = tile.offset + (band.begin - tile.block.rows.begin) * row_bytes;
        const std::int64_t bytes = band.size() * row_bytes;
        const bool whole = part.within({band, tile.block.columns}).size() * transfer.item() == bytes;
        if (reading) {
            count.io_calls += file.read(buffer.data(), bytes, start);
            count.read += bytes;
        }
        for_pieces(transfer, share, tile, band, [&](std::byte* data, std::int64_t size, std::int64_t offset) {
            if (reading) {
                std::memcpy(data, buffer.data() + offset - start, static_cast<std::size_t>(size));
            } else if (whole) {
                std::memcpy(buffer.data() + offset - start, data, static_cast<std::size_t>(size));
            } else {
                count.io_calls += file.write(data, size, offset);
            }
        });
        if (!reading && whole) {
            count.io_calls += file.write(buffer.data(), bytes, start);
        }
    }
    if (!reading) {
        file.close();
    }
}

class PerRank final : public Strategy {
public:
    void read(Context& context, const Transfer& transfer) const override { move(context, transfer, true); }
    void write(Context& context, const Transfer& transfer) const override { move(context, transfer, false); }

private:
    static void move(Context& context, const Transfer& transfer, bool reading) {
        const Timed timed(context.ledger, context.ledger.phase(), Step::file,
                          (reading ? "read tiles of " : "write tiles of ") + transfer.region.name);
        const grid::Share share = transfer.share_of(context.comm.rank());
        mpi::together(context.comm, [&] {
            for (const Tile& tile : transfer.region.tiles) {
                move_tile(context.ledger.count(), transfer, share, tile, reading);
            }
        });
        (reading ? context.ledger.count().useful : context.ledger.count().written) += share.size() * transfer.item();
    }
};

}  // namespace

void read_tiles(Counters& count, const Transfer& transfer, const grid::Share& share) {
    for (const Tile& tile : transfer.region.tiles) {
        move_tile(count, transfer, share, tile, true);
    }
}

std::unique_ptr<Strategy> make_per_rank(const Hints&) { return std::make_unique<PerRank>(); }

}  // namespace tilewise::io
