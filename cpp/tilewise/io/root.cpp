// Strategy `root`: rank 0 alone touches the file, and deals the blocks out (or collects them) with Send and Recv.
//
//        file ──▶ rank 0 ──┬─▶ rank 1      band by band, so rank 0 needs two bands and not the whole matrix; while the
//                          ├─▶ rank 2      pieces of one band fly, the next one is read
//                          └─▶ rank 3
#include <array>
#include <cstring>

#include "tilewise/base/buffer.hpp"
#include "tilewise/io/bands.hpp"
#include "tilewise/io/file.hpp"
#include "tilewise/mpi/datatype.hpp"
#include "tilewise/mpi/together.hpp"

namespace tilewise::io {
namespace {

using mpi::check;

struct Slot {
    Buffer buffer;
    std::vector<MPI_Request> requests;
    std::vector<mpi::Datatype> types;

    void wait() {
        check(MPI_Waitall(static_cast<int>(requests.size()), requests.data(), MPI_STATUSES_IGNORE), "MPI_Waitall");
        requests.clear();
        types.clear();
    }
};

void copy_rows(std::byte* to, std::int64_t to_stride, const std::byte* from, std::int64_t from_stride,
               std::int64_t rows, std::int64_t bytes) {
    for (std::int64_t row = 0; row < rows; ++row) {
        std::memcpy(to + row * to_stride, from + row * from_stride, static_cast<std::size_t>(bytes));
    }
}

class Root final : public Strategy {
public:
    void read(Context& context, const Transfer& transfer) const override {
        if (context.comm.rank() == 0) {
            mpi::no_return(context.comm, [&] { deal_out(context, transfer); });
            return;
        }
        const Timed timed(context.ledger, context.ledger.phase(), Step::move, "receive " + transfer.region.name);
        mpi::no_return(context.comm, [&] {
            const grid::Block mine = transfer.block_of(context.comm.rank());
            const MPI_Datatype item = mpi::type_of(transfer.region.dtype);
            const Bands bands(transfer);
            for (std::int64_t index = 0; index < bands.count(); ++index) {
                const grid::Block piece = common(mine, bands[index]);
                if (piece.size() > 0) {
                    check(MPI_Recv(piece_data(transfer, mine, piece), static_cast<int>(piece.size()), item, 0, 0,
                                   context.comm.get(), MPI_STATUS_IGNORE),
                          "MPI_Recv");
                }
            }
        });
    }

    void write(Context& context, const Transfer& transfer) const override {
        if (context.comm.rank() == 0) {
            mpi::no_return(context.comm, [&] { collect(context, transfer); });
            return;
        }
        const Timed timed(context.ledger, context.ledger.phase(), Step::move, "send " + transfer.region.name);
        mpi::no_return(context.comm, [&] {
            const grid::Block mine = transfer.block_of(context.comm.rank());
            const MPI_Datatype item = mpi::type_of(transfer.region.dtype);
            const Bands bands(transfer);
            for (std::int64_t index = 0; index < bands.count(); ++index) {
                const grid::Block piece = common(mine, bands[index]);
                if (piece.size() > 0) {
                    check(MPI_Send(piece_data(transfer, mine, piece), static_cast<int>(piece.size()), item, 0, 0,
                                   context.comm.get()),
                          "MPI_Send");
                }
            }
        });
    }

private:
    /// Calls f(rank, piece, address in the band's buffer) for every rank that owns some of the band.
    template <class F> static void for_pieces(const Context& context, const Transfer& transfer, const grid::Block& band,
                                              std::byte* buffer, F f) {
        for (int rank = 0; rank < context.comm.size(); ++rank) {
            const grid::Block piece = common(transfer.block_of(rank), band);
            if (piece.size() > 0) {
                const std::int64_t elements = (piece.rows.begin - band.rows.begin) * band.columns.size() +
                                              piece.columns.begin - band.columns.begin;
                f(rank, piece, buffer + elements * transfer.item());
            }
        }
    }

    static void deal_out(Context& context, const Transfer& transfer) {
        const Timed dealing(context.ledger, context.ledger.phase(), Step::move, "deal out " + transfer.region.name);
        const PosixFile file(transfer.region.path, transfer.region.name, PosixFile::Mode::read);
        const MPI_Datatype item = mpi::type_of(transfer.region.dtype);
        const Bands bands(transfer);
        const grid::Block mine = transfer.block_of(0);
        std::array<Slot, 2> slots;
        for (std::int64_t index = 0; index < bands.count(); ++index) {
            const grid::Block band = bands[index];
            Slot& slot = slots[static_cast<std::size_t>(index % 2)];
            slot.wait();
            read_band(context, transfer, file, band, bands.largest(), slot.buffer);
            for_pieces(
                context, transfer, band, slot.buffer.data(), [&](int rank, const grid::Block& piece, std::byte* data) {
                    const std::int64_t stride = band.columns.size();
                    if (rank == 0) {
                        copy_rows(piece_data(transfer, mine, piece), piece.columns.size() * transfer.item(), data,
                                  stride * transfer.item(), piece.rows.size(), piece.columns.size() * transfer.item());
                        return;
                    }
                    slot.types.push_back(mpi::strided(piece.rows.size(), piece.columns.size(), stride, item));
                    slot.requests.push_back(MPI_REQUEST_NULL);
                    check(
                        MPI_Isend(data, 1, slot.types.back().get(), rank, 0, context.comm.get(), &slot.requests.back()),
                        "MPI_Isend");
                });
            context.report(context.ledger.phase(), static_cast<double>(index + 1) / static_cast<double>(bands.count()));
        }
        slots[0].wait();
        slots[1].wait();
    }

    static void read_band(Context& context, const Transfer& transfer, const PosixFile& file, const grid::Block& band,
                          std::int64_t largest, Buffer& buffer) {
        const Timed timed(context.ledger, context.ledger.phase(), Step::file, "pread " + transfer.region.name);
        if (buffer.data() == nullptr) {
            buffer = Buffer(static_cast<std::size_t>(largest * transfer.item()));
        }
        const std::int64_t bytes = band.size() * transfer.item();
        context.ledger.count().io_calls +=
            file.read(buffer.data(), bytes, transfer.at(band.rows.begin, band.columns.begin));
        context.ledger.count().read += bytes;
        context.ledger.count().useful += bytes;
    }

    static void collect(Context& context, const Transfer& transfer) {
        const Timed collecting(context.ledger, context.ledger.phase(), Step::move, "collect " + transfer.region.name);
        const PosixFile file(transfer.region.path, transfer.region.name, PosixFile::Mode::write);
        const Bands bands(transfer);
        std::array<Slot, 2> slots;
        if (bands.count() > 0) {
            post_receives(context, transfer, bands[0], bands.largest(), slots[0]);
        }
        for (std::int64_t index = 0; index < bands.count(); ++index) {
            Slot& slot = slots[static_cast<std::size_t>(index % 2)];
            if (index + 1 < bands.count()) {  // the next band comes in while this one is written
                post_receives(context, transfer, bands[index + 1], bands.largest(),
                              slots[static_cast<std::size_t>((index + 1) % 2)]);
            }
            slot.wait();
            const Timed timed(context.ledger, context.ledger.phase(), Step::file, "pwrite " + transfer.region.name);
            const grid::Block band = bands[index];
            const std::int64_t bytes = band.size() * transfer.item();
            context.ledger.count().io_calls +=
                file.write(slot.buffer.data(), bytes, transfer.at(band.rows.begin, band.columns.begin));
            context.ledger.count().written += bytes;
            context.report(context.ledger.phase(), static_cast<double>(index + 1) / static_cast<double>(bands.count()));
        }
    }

    static void post_receives(Context& context, const Transfer& transfer, const grid::Block& band, std::int64_t largest,
                              Slot& slot) {
        if (slot.buffer.data() == nullptr) {
            slot.buffer = Buffer(static_cast<std::size_t>(largest * transfer.item()));
        }
        const grid::Block mine = transfer.block_of(0);
        const MPI_Datatype item = mpi::type_of(transfer.region.dtype);
        for_pieces(
            context, transfer, band, slot.buffer.data(), [&](int rank, const grid::Block& piece, std::byte* data) {
                const std::int64_t stride = band.columns.size();
                if (rank == 0) {
                    copy_rows(data, stride * transfer.item(), piece_data(transfer, mine, piece),
                              piece.columns.size() * transfer.item(), piece.rows.size(),
                              piece.columns.size() * transfer.item());
                    return;
                }
                slot.types.push_back(mpi::strided(piece.rows.size(), piece.columns.size(), stride, item));
                slot.requests.push_back(MPI_REQUEST_NULL);
                check(MPI_Irecv(data, 1, slot.types.back().get(), rank, 0, context.comm.get(), &slot.requests.back()),
                      "MPI_Irecv");
            });
    }
};

}  // namespace

std::unique_ptr<Strategy> make_root() { return std::make_unique<Root>(); }

}  // namespace tilewise::io
