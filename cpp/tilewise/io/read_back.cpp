// Reads back with pread, whatever wrote the file, so that no strategy proves itself.
#include "tilewise/io/read_back.hpp"

#include <algorithm>

#include "tilewise/base/buffer.hpp"
#include "tilewise/kernel/checksum.hpp"
#include "tilewise/mpi/together.hpp"

namespace tilewise::io {
namespace {

constexpr std::int64_t piece_bytes = std::int64_t{8} << 20;

/// Rows [from, to) of a share, counted within it.
grid::Share rows_of(const grid::Share& share, std::int64_t from, std::int64_t to) {
    std::vector<grid::Range> rows;
    std::int64_t before = 0;
    for (const grid::Range& range : share.rows) {
        const grid::Range own = grid::common({before, before + range.size()}, {from, to});
        if (own.size() > 0) {
            rows.push_back({range.begin + own.begin - before, range.begin + own.end - before});
        }
        before += range.size();
    }
    return {rows, share.columns};
}

std::uint64_t sum_of(const std::byte* data, std::int64_t bytes, std::int64_t place) {
    return kernel::checksum(data, static_cast<std::size_t>(bytes), static_cast<std::uint64_t>(place));
}

}  // namespace

void ReadBack::note(const Transfer& transfer, const grid::Share& share) {
    const std::int64_t row_bytes = share.width() * transfer.item();
    const std::int64_t height = std::max<std::int64_t>(1, piece_bytes / std::max<std::int64_t>(1, row_bytes));
    for (std::int64_t row = 0; row < share.height() && row_bytes > 0; row += height) {
        const std::int64_t end = std::min(row + height, share.height());
        grid::Share rows = rows_of(share, row, end);
        const std::int64_t place = grid::span_of(rows, transfer.columns()).begin;
        pieces_.push_back({std::move(rows), sum_of(transfer.data + row * row_bytes, (end - row) * row_bytes, place)});
    }
}

void ReadBack::note(std::int64_t offset, const std::byte* data, std::int64_t bytes) {
    bytes_.push_back({offset, bytes, sum_of(data, bytes, offset)});
}

std::int64_t ReadBack::compare(Context& context, const Region& region) const {
    const Timed timed(context.ledger, Phase::verify, "read back " + region.name);
    std::int64_t different = 0, everywhere = 0;
    context.comm.barrier();  // all have written
    mpi::together(context.comm, [&] {
        if (pieces_.empty() && bytes_.empty()) {
            return;
        }
        Counters& count = context.ledger.count();
        std::unique_ptr<PosixFile> file;
        if (region.tiles.empty()) {
            file = std::make_unique<PosixFile>(region.path, region.name, PosixFile::Mode::read);
        }
        Buffer buffer;
        const auto room = [&](std::int64_t bytes) {
            if (static_cast<std::int64_t>(buffer.bytes()) < bytes) {
                buffer = Buffer(static_cast<std::size_t>(bytes));
            }
            return buffer.data();
        };
        for (const Piece& piece : pieces_) {
            const Transfer transfer{
                region, {}, room(piece.share.size() * static_cast<std::int64_t>(size_of(region.dtype)))};
            const grid::Range span = grid::span_of(piece.share, transfer.columns());
            if (!file) {
                read_tiles(count, transfer, piece.share);
            } else {
                grid::for_runs(piece.share, transfer.columns(), span,
                               [&](std::int64_t first, std::int64_t elements, std::int64_t local) {
                                   count.io_calls += file->read(transfer.data + local * transfer.item(),
                                                                elements * transfer.item(), transfer.at(first));
                               });
                count.read += piece.share.size() * transfer.item();
            }
            different += sum_of(transfer.data, piece.share.size() * transfer.item(), span.begin) != piece.sum;
        }
        for (const Bytes& piece : bytes_) {
            count.io_calls += file->read(room(piece.bytes), piece.bytes, piece.offset);
            count.read += piece.bytes;
            different += sum_of(buffer.data(), piece.bytes, piece.offset) != piece.sum;
        }
    });
    mpi::check(MPI_Allreduce(&different, &everywhere, 1, MPI_INT64_T, MPI_SUM, context.comm.get()), "MPI_Allreduce");
    return everywhere;
}

}  // namespace tilewise::io
