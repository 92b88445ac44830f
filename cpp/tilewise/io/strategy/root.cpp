// Strategies in which rank 0 alone touches the file, band by band, so that it needs a few bands and not the whole
// matrix.
//
//     root               file ──▶ rank 0 ──┬─▶ rank 1      Send and Recv: while the pieces of one band fly, the
//                                          ├─▶ rank 2      next one is read
//                                          └─▶ rank 3
//
//     root_collective    band of rows on rank 0      packed for Scatterv      on the ranks
//                        [ a a | b b ]               [ a a a a b b b b ]      rank 0: a a a a
//                        [ a a | b b ]                                        rank 1: b b b b
//
// On its way out of `root_collective` the next band is gathered while rank 0 writes the one before (as far as the
// library moves data by itself). The hint `gather` takes that apart: `blocking` is Gatherv, `nonblocking` Igatherv that
// is waited for at once, `overlap` the above.
#include <array>

#include "tilewise/base/buffer.hpp"
#include "tilewise/io/elements.hpp"
#include "tilewise/mpi/datatype.hpp"
#include "tilewise/mpi/together.hpp"

namespace tilewise::io {
namespace {

using mpi::check;

/// The file on rank 0, and the bands that it is read or written by.
class RootFile : public OpenFile {
public:
    /// `name` is what a trace calls all of it. @note Collective.
    RootFile(Context& context, const Transfer& transfer, Direction direction, const std::string& name)
        : OpenFile(context, transfer, direction),
          timed_(timed(Step::move, name)),
          shares_(context, transfer),
          bands_(transfer, shares_.span) {
        mpi::together(context.comm, [&] {
            if (me() == 0) {
                file_ = open_elements(transfer, direction, PosixFile::Cache::used, context.threads);
            }
        });
    }

    void move() final {
        mpi::no_return(context_.comm, [&] { reads() ? read() : write(); });
    }

    void close() final {
        mpi::together(context_.comm, [&] {
            if (file_ && !reads()) {
                file_->close();
            }
        });
    }

protected:
    virtual void read() = 0;
    virtual void write() = 0;

    /// Memory for one band.
    Buffer band_buffer() const { return Buffer(static_cast<std::size_t>(bands_.largest() * shares_.item)); }
    /// Where what a rank has of a band begins in its share.
    std::byte* place(grid::Range band) const { return transfer_.data + shares_.local(me(), band) * shares_.item; }

    void read_band(grid::Range band, std::byte* rows) {
        const Timed reading = timed(file_->step(), "read");
        file_->read(count(), band, rows);
        count().useful += shares_.owned(band) * shares_.item;
    }
    void write_band(grid::Range band, const std::byte* rows) {
        const Timed writing = timed(Step::file, "write");
        write_owned(*file_, count(), shares_, band, rows);
    }

    const Timed timed_;
    Shares shares_;
    Bands bands_;
    std::unique_ptr<ElementFile> file_;  ///< of rank 0
};

class Root final : public RootFile {
public:
    Root(Context& context, const Transfer& transfer, Direction direction)
        : RootFile(context, transfer, direction,
                   direction == Direction::read ? (context.comm.rank() == 0 ? "deal out" : "receive")
                                                : (context.comm.rank() == 0 ? "collect" : "send")),
          slots_{Slot{{context, transfer, shares_}}, Slot{{context, transfer, shares_}}} {}

private:
    /// One band on its way; on rank 0 in the file's order, and the same packed by rank.
    struct Slot {
        RangeExchange exchange;
        Buffer rows = {}, packed = {};
    };

    Slot& slot_of(std::int64_t index) {
        Slot& slot = slots_[static_cast<std::size_t>(index % 2)];
        if (file_ && slot.rows.data() == nullptr) {
            slot.rows = band_buffer();
            slot.packed = band_buffer();
        }
        return slot;
    }

    /// Rank 0 has all of a band.
    std::vector<grid::Range> ranges_of(grid::Range band) const {
        std::vector<grid::Range> ranges(static_cast<std::size_t>(context_.comm.size()));
        ranges[0] = band;
        return ranges;
    }

    void read() override {
        for (std::int64_t index = 0; index < bands_.count(); ++index) {
            const grid::Range band = bands_[index];
            if (shares_.owned(band) == 0) {
                continue;
            }
            Slot& slot = slot_of(index);
            slot.exchange.finish_scatter();
            slot.exchange.begin_scatter(ranges_of(band), slot.packed.data());
            if (file_) {
                read_band(band, slot.rows.data());
            }
            slot.exchange.send(slot.rows.data());
            report(index + 1, bands_.count());
        }
        for (Slot& slot : slots_) {
            slot.exchange.finish_scatter();
        }
    }

    void write() override {
        const auto begin = [&](std::int64_t index) {
            Slot& slot = slot_of(index);
            slot.exchange.begin_gather(ranges_of(bands_[index]), slot.packed.data());
        };
        if (bands_.count() > 0) {
            begin(0);
        }
        for (std::int64_t index = 0; index < bands_.count(); ++index) {
            if (index + 1 < bands_.count()) {  // the next band comes in while this one is written
                begin(index + 1);
            }
            Slot& slot = slot_of(index);
            slot.exchange.finish_gather(slot.rows.data());
            if (file_) {
                write_band(bands_[index], slot.rows.data());
            }
            report(index + 1, bands_.count());
        }
    }

    std::array<Slot, 2> slots_;
};

enum class Gather { blocking, nonblocking, overlap };

class RootCollective final : public RootFile {
public:
    RootCollective(Context& context, const Transfer& transfer, Direction direction, Gather gather)
        : RootFile(context, transfer, direction,
                   direction == Direction::read ? "Scatterv"
                   : gather == Gather::blocking ? "Gatherv"
                                                : "Igatherv"),
          gather_(gather) {}

private:
    /// How one band is cut among the ranks; a band is small, so counts fit MPI's integers.
    struct Cut {
        int mine = 0;
        std::vector<int> counts, places;  // of every rank; only rank 0 needs them
    };

    Cut cut_of(grid::Range band) const {
        Cut cut;
        cut.mine = static_cast<int>(shares_.count(me(), band));
        int place = 0;
        for (int rank = 0; me() == 0 && rank < context_.comm.size(); ++rank) {
            cut.counts.push_back(static_cast<int>(shares_.count(rank, band)));
            cut.places.push_back(place);
            place += cut.counts.back();
        }
        return cut;
    }

    void read() override {
        const MPI_Datatype item = mpi::type_of(transfer_.region.dtype);
        Buffer rows, packed;
        if (file_) {
            rows = band_buffer();
            packed = band_buffer();
        }
        for (std::int64_t index = 0; index < bands_.count(); ++index) {
            const grid::Range band = bands_[index];
            if (shares_.owned(band) == 0) {
                continue;
            }
            const Cut cut = cut_of(band);
            if (file_) {
                read_band(band, rows.data());
            }
            for (std::size_t rank = 0; rank < cut.counts.size(); ++rank) {
                pack(shares_, static_cast<int>(rank), band, rows.data(),
                     packed.data() + cut.places[rank] * shares_.item);
            }
            check(MPI_Scatterv(packed.data(), cut.counts.data(), cut.places.data(), item, place(band), cut.mine, item,
                               0, context_.comm.get()),
                  "MPI_Scatterv");
            report(index + 1, bands_.count());
        }
    }

    void write() override {
        std::array<Buffer, 2> packed;
        Buffer rows;
        if (file_) {
            packed = {band_buffer(), band_buffer()};
            rows = band_buffer();
        }
        std::vector<Cut> cuts;  // their counts must live until a gathering is over
        cuts.reserve(static_cast<std::size_t>(bands_.count()));
        std::array<MPI_Request, 2> requests{MPI_REQUEST_NULL, MPI_REQUEST_NULL};
        const std::int64_t ahead = gather_ == Gather::overlap ? 1 : 0;
        for (std::int64_t index = 0; index < bands_.count() + ahead; ++index) {
            if (index < bands_.count()) {
                const auto here = static_cast<std::size_t>(index % 2);
                collect(bands_[index], cuts.emplace_back(cut_of(bands_[index])), packed[here].data(), requests[here]);
            }
            if (const std::int64_t before = index - ahead; before >= 0) {
                const auto there = static_cast<std::size_t>(before % 2);
                check(MPI_Wait(&requests[there], MPI_STATUS_IGNORE), "MPI_Wait");
                const Cut& cut = cuts[static_cast<std::size_t>(before)];
                for (std::size_t rank = 0; rank < cut.counts.size(); ++rank) {
                    unpack(shares_, static_cast<int>(rank), bands_[before],
                           packed[there].data() + cut.places[rank] * shares_.item, rows.data());
                }
                if (file_) {
                    write_band(bands_[before], rows.data());
                }
                report(before + 1, bands_.count());
            }
        }
    }

    /// Starts to collect a band; a blocking call leaves no request behind.
    void collect(grid::Range band, const Cut& cut, std::byte* packed, MPI_Request& request) const {
        const MPI_Datatype item = mpi::type_of(transfer_.region.dtype);
        if (gather_ == Gather::blocking) {
            check(MPI_Gatherv(place(band), cut.mine, item, packed, cut.counts.data(), cut.places.data(), item, 0,
                              context_.comm.get()),
                  "MPI_Gatherv");
        } else {
            check(MPI_Igatherv(place(band), cut.mine, item, packed, cut.counts.data(), cut.places.data(), item, 0,
                               context_.comm.get(), &request),
                  "MPI_Igatherv");
        }
    }

    Gather gather_;
};

/// The value of the hint `gather`; `overlap` without one.
Gather gather_of(const Hints& hints) {
    const auto found = hints.find("gather");
    const std::string name = found == hints.end() ? "overlap" : found->second;
    if (name == "blocking") {
        return Gather::blocking;
    }
    if (name == "nonblocking") {
        return Gather::nonblocking;
    }
    if (name == "overlap") {
        return Gather::overlap;
    }
    throw UsageError("--hint gather=" + name + ": expected one of blocking, nonblocking, overlap");
}

}  // namespace

Strategy make_root(const Hints&) { return strategy_of<Root>(); }

Strategy make_root_collective(const Hints& hints) { return strategy_of<RootCollective>(gather_of(hints)); }

}  // namespace tilewise::io
