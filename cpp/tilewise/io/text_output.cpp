// Lines have the length that their numbers need: in each stage all ranks format consecutive lines, add up their lengths, and write side by side.
//
//        stage     rank 0: lines 0–7     rank 1: lines 8–15          formatted in memory
//        lengths   812 bytes             790 bytes                   a prefix sum says where each begins
//        file      [ … | 812 bytes | 790 bytes | next stage …
#include <algorithm>

#include "tilewise/base/buffer.hpp"
#include "tilewise/base/threads.hpp"
#include "tilewise/io/text.hpp"
#include "tilewise/kernel/text.hpp"
#include "tilewise/mpi/datatype.hpp"
#include "tilewise/mpi/together.hpp"

namespace tilewise::io {
namespace {

using mpi::check;

constexpr std::int64_t stage_bytes = std::int64_t{1} << 20;  // of binary numbers, on each rank

/// Lines of one stage, formatted by several threads one after the other.
struct Lines {
    std::vector<Buffer> memory;
    std::vector<std::int64_t> lengths;

    void format(const Region& region, grid::Range elements, const std::byte* data, int threads) {
        const std::int64_t line = region.text->elements(), item = static_cast<std::int64_t>(size_of(region.dtype));
        const std::int64_t rows = elements.size() / line;
        const kernel::TextStyle style{.separator = region.text->separator, .line_numbers = region.text->line_numbers};
        memory.resize(static_cast<std::size_t>(threads));
        lengths.assign(static_cast<std::size_t>(threads), 0);
        parallel_ranges(elements.size() < (1 << 13) ? 1 : threads, rows,
                        [&](std::int64_t from, std::int64_t to, int thread) {
                            Buffer& buffer = memory[static_cast<std::size_t>(thread)];
                            const std::size_t room =
                                static_cast<std::size_t>((to - from) * (line + 1)) * kernel::text_width(region.dtype);
                            if (buffer.bytes() < room) {
                                buffer = Buffer(room);
                            }
                            char* start = reinterpret_cast<char*>(buffer.data());
                            lengths[static_cast<std::size_t>(thread)] =
                                kernel::format_text(data + from * line * item, region.dtype, to - from, style,
                                                    region.text->pairs, start) -
                                start;
                        });
    }

    std::int64_t bytes() const {
        std::int64_t sum = 0;
        for (const std::int64_t length : lengths) {
            sum += length;
        }
        return sum;
    }

    void write(const PosixFile& file, Counters& count, std::int64_t offset, ReadBack* proof) const {
        for (std::size_t part = 0; part < memory.size(); ++part) {
            if (proof != nullptr && lengths[part] > 0) {
                proof->note(offset, memory[part].data(), lengths[part]);
            }
            count.io_calls += file.write(memory[part].data(), lengths[part], offset);
            count.written += lengths[part];
            offset += lengths[part];
        }
    }
};

/// Brings the elements of everybody's range to them, in the file's order.
void gather(const Context& context, const Transfer& transfer, const Shares& shares,
            const std::vector<grid::Range>& ranges, std::byte* packed, std::byte* rows) {
    const int me = context.comm.rank();
    const MPI_Datatype item = mpi::type_of(transfer.region.dtype);
    const grid::Range mine = ranges[static_cast<std::size_t>(me)];
    std::vector<MPI_Request> requests;
    std::byte* place = packed;
    for (int rank = 0; rank < context.comm.size(); ++rank) {
        const std::int64_t count = rank == me ? 0 : shares.count(rank, mine);
        if (count > 0) {
            requests.push_back(MPI_REQUEST_NULL);
            check(MPI_Irecv(place, static_cast<int>(count), item, rank, 0, context.comm.get(), &requests.back()),
                  "MPI_Irecv");
            place += count * shares.item;
        }
    }
    for (int rank = 0; rank < context.comm.size(); ++rank) {
        const grid::Range its = ranges[static_cast<std::size_t>(rank)];
        const std::int64_t count = rank == me ? 0 : shares.count(me, its);
        if (count > 0) {
            requests.push_back(MPI_REQUEST_NULL);
            check(MPI_Isend(transfer.data + shares.local(me, its) * shares.item, static_cast<int>(count), item, rank, 0,
                            context.comm.get(), &requests.back()),
                  "MPI_Isend");
        }
    }
    check(MPI_Waitall(static_cast<int>(requests.size()), requests.data(), MPI_STATUSES_IGNORE), "MPI_Waitall");
    place = packed;
    for (int rank = 0; rank < context.comm.size(); ++rank) {
        unpack(shares, rank, mine, rank == me ? transfer.data + shares.local(me, mine) * shares.item : place, rows);
        place += rank == me ? 0 : shares.count(rank, mine) * shares.item;
    }
}

}  // namespace

void TextOutput::append(Context& context, const Transfer& transfer) {
    const Timed moving(context.ledger, context.ledger.phase(), Step::move, "gather lines");
    const Shares shares(context, transfer);
    const std::int64_t line = region_.text->elements();
    const int ranks = context.comm.size(), writers = by_root_ ? 1 : ranks;
    std::unique_ptr<PosixFile> file;
    mpi::together(context.comm, [&] {
        if (shares.span.size() > 0 && (shares.owned(shares.span) != shares.span.size() ||
                                       shares.span.begin % line != 0 || shares.span.end % line != 0)) {
            throw Error(ErrorKind::internal, "a text can only be written in whole lines, one after the other");
        }
        if (context.comm.rank() < writers) {
            file = std::make_unique<PosixFile>(region_.path, region_.name, PosixFile::Mode::write);
        }
    });
    const std::int64_t each = std::max<std::int64_t>(1, stage_bytes / shares.item / line);  // lines a rank and stage
    mpi::no_return(context.comm, [&] {
        Lines lines;
        Buffer packed, rows;
        if (file) {
            const std::int64_t most = std::min(each * line, shares.span.size());
            packed = Buffer(static_cast<std::size_t>(most * shares.item));
            rows = Buffer(static_cast<std::size_t>(most * shares.item));
        }
        for (std::int64_t begin = shares.span.begin; begin < shares.span.end; begin += each * line * writers) {
            const std::int64_t end = std::min(begin + each * line * writers, shares.span.end);
            const grid::Partition cut((end - begin) / line, writers);
            std::vector<grid::Range> ranges;
            for (int rank = 0; rank < ranks; ++rank) {
                const grid::Range part = rank < writers ? cut[rank] : grid::Range{};
                ranges.push_back({begin + part.begin * line, begin + part.end * line});
            }
            gather(context, transfer, shares, ranges, packed.data(), rows.data());
            if (file) {
                const Timed timed(context.ledger, context.ledger.phase(), Step::convert, "format " + region_.name);
                lines.format(region_, ranges[static_cast<std::size_t>(context.comm.rank())], rows.data(),
                             context.threads);
            }
            std::int64_t mine = lines.bytes(), before = 0, all = 0;
            check(MPI_Exscan(&mine, &before, 1, MPI_INT64_T, MPI_SUM, context.comm.get()), "MPI_Exscan");
            check(MPI_Allreduce(&mine, &all, 1, MPI_INT64_T, MPI_SUM, context.comm.get()), "MPI_Allreduce");
            if (file) {
                const Timed timed(context.ledger, context.ledger.phase(), Step::file, "write " + region_.name);
                lines.write(*file, context.ledger.count(), end_ + (context.comm.rank() == 0 ? 0 : before), proof_);
            }
            end_ += all;
            context.report(context.ledger.phase(),
                           static_cast<double>(end - shares.span.begin) / static_cast<double>(shares.span.size()));
        }
    });
}

}  // namespace tilewise::io
