// Strategy `root`: rank 0 alone touches the file, and deals the shares out (or collects them) with Send and Recv.
//
//        file ──▶ rank 0 ──┬─▶ rank 1      band by band, so rank 0 needs four bands and not the whole matrix; while the
//                          ├─▶ rank 2      pieces of one band fly, the next one is read
//                          └─▶ rank 3
#include <array>

#include "tilewise/base/buffer.hpp"
#include "tilewise/io/elements.hpp"
#include "tilewise/mpi/datatype.hpp"
#include "tilewise/mpi/together.hpp"

namespace tilewise::io {
namespace {

using mpi::check;

/// One band in the file's order, and the same packed by rank.
struct Slot {
    Buffer rows, packed;
    std::vector<MPI_Request> requests;

    void make(std::int64_t bytes) {
        rows = Buffer(static_cast<std::size_t>(bytes));
        packed = Buffer(static_cast<std::size_t>(bytes));
    }
    void wait() {
        check(MPI_Waitall(static_cast<int>(requests.size()), requests.data(), MPI_STATUSES_IGNORE), "MPI_Waitall");
        requests.clear();
    }
};

class Root final : public Strategy {
public:
    void read(Context& context, const Transfer& transfer) const override {
        mpi::no_return(context.comm,
                       [&] { context.comm.rank() == 0 ? deal_out(context, transfer) : receive(context, transfer); });
    }

    void write(Context& context, const Transfer& transfer) const override {
        mpi::no_return(context.comm,
                       [&] { context.comm.rank() == 0 ? collect(context, transfer) : send(context, transfer); });
    }

private:
    static void receive(Context& context, const Transfer& transfer) {
        const Timed timed(context.ledger, context.ledger.phase(), Step::move, "receive " + transfer.region.name);
        for_my_bands(context, transfer, [&](std::byte* data, int count, MPI_Datatype item) {
            check(MPI_Recv(data, count, item, 0, 0, context.comm.get(), MPI_STATUS_IGNORE), "MPI_Recv");
        });
    }

    static void send(Context& context, const Transfer& transfer) {
        const Timed timed(context.ledger, context.ledger.phase(), Step::move, "send " + transfer.region.name);
        for_my_bands(context, transfer, [&](std::byte* data, int count, MPI_Datatype item) {
            check(MPI_Send(data, count, item, 0, 0, context.comm.get()), "MPI_Send");
        });
    }

    template <class F> static void for_my_bands(const Context& context, const Transfer& transfer, F f) {
        const Shares shares(context, transfer);
        const Bands bands(transfer, shares.span);
        const int me = context.comm.rank();
        for (std::int64_t index = 0; index < bands.count(); ++index) {
            if (const std::int64_t count = shares.count(me, bands[index]); count > 0) {
                f(transfer.data + shares.local(me, bands[index]) * shares.item, static_cast<int>(count),
                  mpi::type_of(transfer.region.dtype));
            }
        }
    }

    static void deal_out(Context& context, const Transfer& transfer) {
        const Timed dealing(context.ledger, context.ledger.phase(), Step::move, "deal out " + transfer.region.name);
        const auto file = open_elements(transfer, PosixFile::Mode::read, PosixFile::Cache::used, context.threads);
        const Shares shares(context, transfer);
        const Bands bands(transfer, shares.span);
        std::array<Slot, 2> slots;
        for (std::int64_t index = 0; index < bands.count(); ++index) {
            const grid::Range band = bands[index];
            if (shares.owned(band) == 0) {
                continue;
            }
            Slot& slot = slots[static_cast<std::size_t>(index % 2)];
            slot.wait();
            if (slot.rows.data() == nullptr) {
                slot.make(bands.largest() * shares.item);
            }
            {
                const Timed timed(context.ledger, context.ledger.phase(), file->step(), "read " + transfer.region.name);
                file->read(context.ledger.count(), band, slot.rows.data());
            }
            std::byte* packed = slot.packed.data();
            for (int rank = 0; rank < context.comm.size(); ++rank) {
                const std::int64_t count = shares.count(rank, band);
                context.ledger.count().useful += count * shares.item;
                if (rank == 0) {
                    pack(shares, rank, band, slot.rows.data(), transfer.data + shares.local(rank, band) * shares.item);
                } else if (count > 0) {
                    pack(shares, rank, band, slot.rows.data(), packed);
                    slot.requests.push_back(MPI_REQUEST_NULL);
                    check(MPI_Isend(packed, static_cast<int>(count), mpi::type_of(transfer.region.dtype), rank, 0,
                                    context.comm.get(), &slot.requests.back()),
                          "MPI_Isend");
                    packed += count * shares.item;
                }
            }
            context.report(context.ledger.phase(), static_cast<double>(index + 1) / static_cast<double>(bands.count()));
        }
        slots[0].wait();
        slots[1].wait();
    }

    static void collect(Context& context, const Transfer& transfer) {
        const Timed collecting(context.ledger, context.ledger.phase(), Step::move, "collect " + transfer.region.name);
        const auto file = open_elements(transfer, PosixFile::Mode::write, PosixFile::Cache::used, context.threads);
        const Shares shares(context, transfer);
        const Bands bands(transfer, shares.span);
        std::array<Slot, 2> slots;
        const auto post = [&](std::int64_t index) {
            Slot& slot = slots[static_cast<std::size_t>(index % 2)];
            if (slot.rows.data() == nullptr) {
                slot.make(bands.largest() * shares.item);
            }
            post_receives(context, transfer, shares, bands[index], slot);
        };
        if (bands.count() > 0) {
            post(0);
        }
        for (std::int64_t index = 0; index < bands.count(); ++index) {
            const grid::Range band = bands[index];
            Slot& slot = slots[static_cast<std::size_t>(index % 2)];
            if (index + 1 < bands.count()) {  // the next band comes in while this one is written
                post(index + 1);
            }
            slot.wait();
            const std::byte* packed = slot.packed.data();
            for (int rank = 0; rank < context.comm.size(); ++rank) {
                unpack(shares, rank, band, rank == 0 ? transfer.data + shares.local(rank, band) * shares.item : packed,
                       slot.rows.data());
                packed += rank == 0 ? 0 : shares.count(rank, band) * shares.item;
            }
            const Timed timed(context.ledger, context.ledger.phase(), Step::file, "write " + transfer.region.name);
            write_owned(*file, context.ledger.count(), shares, band, slot.rows.data());
            context.report(context.ledger.phase(), static_cast<double>(index + 1) / static_cast<double>(bands.count()));
        }
        file->close();
    }

    static void post_receives(const Context& context, const Transfer& transfer, const Shares& shares, grid::Range band,
                              Slot& slot) {
        std::byte* packed = slot.packed.data();
        for (int rank = 1; rank < context.comm.size(); ++rank) {
            if (const std::int64_t count = shares.count(rank, band); count > 0) {
                slot.requests.push_back(MPI_REQUEST_NULL);
                check(MPI_Irecv(packed, static_cast<int>(count), mpi::type_of(transfer.region.dtype), rank, 0,
                                context.comm.get(), &slot.requests.back()),
                      "MPI_Irecv");
                packed += count * shares.item;
            }
        }
    }
};

}  // namespace

std::unique_ptr<Strategy> make_root(const Hints&) { return std::make_unique<Root>(); }

}  // namespace tilewise::io
