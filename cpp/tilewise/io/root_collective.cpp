// Strategy `root_collective`: rank 0 alone touches the file; Scatterv deals out, Igatherv collects, band by band.
//
//        band of rows on rank 0      packed for Scatterv      on the ranks
//        [ a a | b b ]               [ a a a a b b b b ]      rank 0: a a a a
//        [ a a | b b ]                                        rank 1: b b b b
//
// On the way out the next band is gathered while rank 0 writes the one before (as far as the library moves data by
// itself). The hint `gather` takes that apart: `blocking` is Gatherv, `nonblocking` Igatherv that is waited for at
// once, `overlap` the above.
#include <array>

#include "tilewise/base/buffer.hpp"
#include "tilewise/io/elements.hpp"
#include "tilewise/mpi/datatype.hpp"
#include "tilewise/mpi/together.hpp"

namespace tilewise::io {
namespace {

using mpi::check;

/// What a rank works with; only rank 0 has a file and buffers.
struct RootBuffers {
    Shares shares;
    Bands bands;
    std::unique_ptr<ElementFile> file;
    Buffer rows;
    std::array<Buffer, 2> packed;

    RootBuffers(const Context& context, const Transfer& transfer, PosixFile::Mode mode)
        : shares(context, transfer),
          bands(transfer, shares.span) {
        if (context.comm.rank() == 0) {
            const auto bytes = static_cast<std::size_t>(bands.largest() * transfer.item());
            file = open_elements(transfer, mode, PosixFile::Cache::used, context.threads);
            rows = Buffer(bytes);
            packed = {Buffer(bytes), Buffer(mode == PosixFile::Mode::write ? bytes : 0)};
        }
    }
};

/// How one band is cut among the ranks; a band is small, so counts fit MPI's integers.
struct BandCounts {
    std::vector<int> counts, places;  // of every rank; only rank 0 needs them
    std::byte* mine;
    int my_count;

    BandCounts(const Context& context, const Transfer& transfer, const Shares& shares, grid::Range band)
        : mine(transfer.data + shares.local(context.comm.rank(), band) * shares.item),
          my_count(static_cast<int>(shares.count(context.comm.rank(), band))) {
        int place = 0;
        for (int rank = 0; context.comm.rank() == 0 && rank < context.comm.size(); ++rank) {
            counts.push_back(static_cast<int>(shares.count(rank, band)));
            places.push_back(place);
            place += counts.back();
        }
    }

    /// Calls f(rank, place of its packed piece) on rank 0.
    template <class F> void for_pieces(const Shares& shares, std::byte* packed, F f) const {
        for (std::size_t rank = 0; rank < counts.size(); ++rank) {
            f(static_cast<int>(rank), packed + places[rank] * shares.item);
        }
    }
};

enum class Gather { blocking, nonblocking, overlap };

class RootCollective final : public Strategy {
public:
    explicit RootCollective(Gather gather) : gather_(gather) {}

    void read(Context& context, const Transfer& transfer) const override {
        const Timed timed(context.ledger, context.ledger.phase(), Step::move, "Scatterv " + transfer.region.name);
        mpi::no_return(context.comm, [&] {
            const RootBuffers root(context, transfer, PosixFile::Mode::read);
            const MPI_Datatype item = mpi::type_of(transfer.region.dtype);
            for (std::int64_t index = 0; index < root.bands.count(); ++index) {
                const grid::Range band = root.bands[index];
                if (root.shares.owned(band) == 0) {
                    continue;
                }
                const BandCounts pieces(context, transfer, root.shares, band);
                if (root.file) {
                    {
                        const Timed reading(context.ledger, context.ledger.phase(), root.file->step(),
                                            "read " + transfer.region.name);
                        root.file->read(context.ledger.count(), band, root.rows.data());
                    }
                    pieces.for_pieces(root.shares, root.packed[0].data(), [&](int rank, std::byte* packed) {
                        pack(root.shares, rank, band, root.rows.data(), packed);
                        context.ledger.count().useful += root.shares.count(rank, band) * root.shares.item;
                    });
                }
                check(MPI_Scatterv(root.packed[0].data(), pieces.counts.data(), pieces.places.data(), item, pieces.mine,
                                   pieces.my_count, item, 0, context.comm.get()),
                      "MPI_Scatterv");
                context.report(context.ledger.phase(),
                               static_cast<double>(index + 1) / static_cast<double>(root.bands.count()));
            }
        });
    }

    void write(Context& context, const Transfer& transfer) const override {
        const std::string call = gather_ == Gather::blocking ? "Gatherv " : "Igatherv ";
        const Timed timed(context.ledger, context.ledger.phase(), Step::move, call + transfer.region.name);
        mpi::no_return(context.comm, [&] {
            const RootBuffers root(context, transfer, PosixFile::Mode::write);
            std::vector<BandCounts> pieces_of_bands;  // their counts must live until a gathering is over
            pieces_of_bands.reserve(static_cast<std::size_t>(root.bands.count()));
            std::array<MPI_Request, 2> requests{MPI_REQUEST_NULL, MPI_REQUEST_NULL};
            const std::int64_t ahead = gather_ == Gather::overlap ? 1 : 0;
            for (std::int64_t index = 0; index < root.bands.count() + ahead; ++index) {
                if (index < root.bands.count()) {
                    const auto here = static_cast<std::size_t>(index % 2);
                    const BandCounts& pieces =
                        pieces_of_bands.emplace_back(context, transfer, root.shares, root.bands[index]);
                    collect(context, transfer, pieces, root.packed[here].data(), requests[here]);
                }
                if (const std::int64_t before = index - ahead; before >= 0) {
                    const auto there = static_cast<std::size_t>(before % 2);
                    check(MPI_Wait(&requests[there], MPI_STATUS_IGNORE), "MPI_Wait");
                    write_band(context, transfer, root, root.bands[before],
                               pieces_of_bands[static_cast<std::size_t>(before)], root.packed[there]);
                    context.report(context.ledger.phase(),
                                   static_cast<double>(before + 1) / static_cast<double>(root.bands.count()));
                }
            }
            if (root.file) {
                root.file->close();
            }
        });
    }

private:
    /// Starts to collect a band; a blocking call leaves no request behind.
    void collect(const Context& context, const Transfer& transfer, const BandCounts& pieces, std::byte* packed,
                 MPI_Request& request) const {
        const MPI_Datatype item = mpi::type_of(transfer.region.dtype);
        if (gather_ == Gather::blocking) {
            check(MPI_Gatherv(pieces.mine, pieces.my_count, item, packed, pieces.counts.data(), pieces.places.data(),
                              item, 0, context.comm.get()),
                  "MPI_Gatherv");
        } else {
            check(MPI_Igatherv(pieces.mine, pieces.my_count, item, packed, pieces.counts.data(), pieces.places.data(),
                               item, 0, context.comm.get(), &request),
                  "MPI_Igatherv");
        }
    }

    static void write_band(Context& context, const Transfer& transfer, const RootBuffers& root, grid::Range band,
                           const BandCounts& pieces, const Buffer& packed) {
        if (!root.file) {
            return;
        }
        pieces.for_pieces(root.shares, packed.data(), [&](int rank, const std::byte* piece) {
            unpack(root.shares, rank, band, piece, root.rows.data());
        });
        const Timed writing(context.ledger, context.ledger.phase(), Step::file, "write " + transfer.region.name);
        write_owned(*root.file, context.ledger.count(), root.shares, band, root.rows.data());
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

std::unique_ptr<Strategy> make_root_collective(const Hints& hints) {
    return std::make_unique<RootCollective>(gather_of(hints));
}

}  // namespace tilewise::io
