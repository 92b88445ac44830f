// Reads back with pread, whatever wrote the file, so that no strategy proves itself.
#include "tilewise/io/read_back.hpp"

#include <algorithm>
#include <bit>

#include "tilewise/base/buffer.hpp"
#include "tilewise/kernel/codec/checksum.hpp"
#include "tilewise/mpi/sum.hpp"
#include "tilewise/mpi/together.hpp"

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
    const std::int64_t columns = transfer.columns(), item = transfer.item();
    const auto keep = [&](grid::Share part, const std::byte* data) {
        const std::int64_t place = grid::span_of(part, columns).begin, bytes = part.size() * item;
        pieces_.push_back({std::move(part), sum_of(data, bytes, place)});
    };
    if (extent_ == Extent::samples) {
        const grid::Range all{0, transfer.rows() * columns};
        for (const Sample& sample : samples_of(share, columns, item, all, sample_cell, rank_)) {
            const std::byte* data = transfer.data + sample.local * item;
            for (std::int64_t first = sample.first, end = first + sample.count; first < end;) {  // row by row
                const std::int64_t row = first / columns, column = first % columns,
                                   count = std::min(end - first, columns - column);
                keep(grid::Block{{row, row + 1}, {column, column + count}}, data + (first - sample.first) * item);
                first += count;
            }
        }
        return;
    }
    const std::int64_t row_bytes = share.width() * item;
    const std::int64_t height = std::max<std::int64_t>(1, piece_bytes / std::max<std::int64_t>(1, row_bytes));
    for (std::int64_t row = 0; row < share.height() && row_bytes > 0; row += height) {
        keep(rows_of(share, row, std::min(row + height, share.height())), transfer.data + row * row_bytes);
    }
}

void ReadBack::note(std::int64_t offset, const std::byte* data, std::int64_t bytes) {
    const std::int64_t skipped = extent_ == Extent::samples ? std::max<std::int64_t>(0, bytes - sample_bytes) : 0;
    bytes_.push_back({offset + skipped, bytes - skipped, sum_of(data + skipped, bytes - skipped, offset + skipped)});
}

std::int64_t ReadBack::different(Counters& count, const Region& region) const {
    if (pieces_.empty() && bytes_.empty()) {
        return 0;
    }
    std::int64_t found = 0;
    std::unique_ptr<PosixFile> file;
    if (region.tiles.empty()) {
        file = std::make_unique<PosixFile>(region.path, region.name, PosixFile::Mode::read);
    }
    Array<std::byte> buffer;
    const auto differs = [&](std::int64_t bytes, std::int64_t place, std::uint64_t sum, const auto& read) {
        buffer.grow(bytes);
        try {
            read(buffer.data());
        } catch (const IoError& error) {
            if (error.error_number() != 0) {
                throw;
            }
            return true;  // the file ends before
        }
        return sum_of(buffer.data(), bytes, place) != sum;
    };
    const std::int64_t item = static_cast<std::int64_t>(size_of(region.dtype));
    for (const Piece& piece : pieces_) {
        const grid::Range span = grid::span_of(piece.share, region.stored_columns());
        const std::int64_t bytes = piece.share.size() * item;
        found += differs(bytes, span.begin, piece.sum, [&](std::byte* data) {
            const Transfer transfer{region, {}, data};
            if (!file) {
                read_tiles(count, transfer, piece.share);
                return;
            }
            grid::for_runs(piece.share, transfer.columns(), span,
                           [&](std::int64_t first, std::int64_t elements, std::int64_t local) {
                               count.io_calls += file->read(data + local * item, elements * item, transfer.at(first));
                           });
            count.read += bytes;
        });
    }
    for (const Bytes& piece : bytes_) {
        found += differs(piece.bytes, piece.offset, piece.sum, [&](std::byte* data) {
            count.io_calls += file->read(data, piece.bytes, piece.offset);
            count.read += piece.bytes;
        });
    }
    return found;
}

std::int64_t ReadBack::compare(Context& context, const Region& region) const {
    std::int64_t mine = 0;
    context.comm.barrier();  // all have written
    mpi::together(context.comm, [&] {
        Counters samples;  // so few that they are not in the books
        mine = different(extent_ == Extent::samples ? samples : context.ledger.count(), region);
    });
    return mpi::sum_of(context.comm, mine);
}

}  // namespace tilewise::io
