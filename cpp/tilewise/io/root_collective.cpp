// Strategy `root_collective`: rank 0 alone touches the file; Scatterv deals out, Igatherv collects, band by band.
//
//        band of rows on rank 0      packed for Scatterv      on the ranks
//        [ a a | b b ]               [ a a a a b b b b ]      rank 0: a a a a
//        [ a a | b b ]                                        rank 1: b b b b
//
// On the way out the next band is gathered while rank 0 writes the one before (as far as the library moves data by itself).
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

/// How one band is cut among the ranks; a band is small, so counts fit MPI's integers.
struct Cut {
    std::vector<grid::Block> pieces;  // of every rank; only rank 0 needs them
    std::vector<int> counts, places;
    grid::Block mine;

    Cut(const Context& context, const Transfer& transfer, const grid::Block& band)
        : mine(common(transfer.block_of(context.comm.rank()), band)) {
        if (context.comm.rank() != 0) {
            return;
        }
        int place = 0;
        for (int rank = 0; rank < context.comm.size(); ++rank) {
            pieces.push_back(common(transfer.block_of(rank), band));
            counts.push_back(static_cast<int>(pieces.back().size()));
            places.push_back(place);
            place += counts.back();
        }
    }
};

enum class Direction { pack, unpack };

/// Copies between the band as the file has it and the pieces one after the other.
void repack(const Transfer& transfer, const grid::Block& band, const Cut& cut, std::byte* rows, std::byte* packed,
            Direction direction) {
    const std::int64_t item = transfer.item();
    for (const grid::Block& piece : cut.pieces) {
        const std::int64_t bytes = piece.columns.size() * item;
        for (std::int64_t row = piece.rows.begin; row < piece.rows.end && bytes > 0; ++row, packed += bytes) {
            std::byte* place =
                rows +
                ((row - band.rows.begin) * band.columns.size() + piece.columns.begin - band.columns.begin) * item;
            direction == Direction::pack ? std::memcpy(packed, place, static_cast<std::size_t>(bytes))
                                         : std::memcpy(place, packed, static_cast<std::size_t>(bytes));
        }
    }
}

class RootCollective final : public Strategy {
public:
    void read(Context& context, const Transfer& transfer) const override {
        const Timed timed(context.ledger, context.ledger.phase(), Step::move, "Scatterv " + transfer.region.name);
        mpi::no_return(context.comm, [&] {
            const Desk desk(context, transfer, PosixFile::Mode::read);
            const grid::Block block = transfer.block_of(context.comm.rank());
            const MPI_Datatype item = mpi::type_of(transfer.region.dtype);
            for (std::int64_t index = 0; index < desk.bands.count(); ++index) {
                const grid::Block band = desk.bands[index];
                const Cut cut(context, transfer, band);
                if (desk.file) {
                    {
                        const Timed reading(context.ledger, context.ledger.phase(), Step::file,
                                            "pread " + transfer.region.name);
                        const std::int64_t bytes = band.size() * transfer.item();
                        context.ledger.count().io_calls +=
                            desk.file->read(desk.rows.data(), bytes, transfer.at(band.rows.begin, band.columns.begin));
                        context.ledger.count().read += bytes;
                        context.ledger.count().useful += bytes;
                    }
                    repack(transfer, band, cut, desk.rows.data(), desk.packed[0].data(), Direction::pack);
                }
                check(MPI_Scatterv(desk.packed[0].data(), cut.counts.data(), cut.places.data(), item,
                                   piece_data(transfer, block, cut.mine), static_cast<int>(cut.mine.size()), item, 0,
                                   context.comm.get()),
                      "MPI_Scatterv");
                context.report(context.ledger.phase(),
                               static_cast<double>(index + 1) / static_cast<double>(desk.bands.count()));
            }
        });
    }

    void write(Context& context, const Transfer& transfer) const override {
        const Timed timed(context.ledger, context.ledger.phase(), Step::move, "Igatherv " + transfer.region.name);
        mpi::no_return(context.comm, [&] {
            const Desk desk(context, transfer, PosixFile::Mode::write);
            std::vector<Cut> cuts;  // of the band being gathered and of the one being written
            std::array<MPI_Request, 2> requests{MPI_REQUEST_NULL, MPI_REQUEST_NULL};
            cuts.reserve(static_cast<std::size_t>(desk.bands.count()));
            for (std::int64_t index = 0; index <= desk.bands.count(); ++index) {
                if (index < desk.bands.count()) {
                    cuts.emplace_back(context, transfer, desk.bands[index]);
                    start_gathering(context, transfer, cuts.back(), desk.packed[static_cast<std::size_t>(index % 2)],
                                    requests[static_cast<std::size_t>(index % 2)]);
                }
                if (index > 0) {
                    const auto before = static_cast<std::size_t>((index - 1) % 2);
                    check(MPI_Wait(&requests[before], MPI_STATUS_IGNORE), "MPI_Wait");
                    write_band(context, transfer, desk, desk.bands[index - 1],
                               cuts[static_cast<std::size_t>(index - 1)], desk.packed[before]);
                    context.report(context.ledger.phase(),
                                   static_cast<double>(index) / static_cast<double>(desk.bands.count()));
                }
            }
        });
    }

private:
    /// What rank 0 works with; on the others only the bands.
    struct Desk {
        Bands bands;
        std::unique_ptr<PosixFile> file;
        Buffer rows;
        std::array<Buffer, 2> packed;

        Desk(const Context& context, const Transfer& transfer, PosixFile::Mode mode) : bands(transfer) {
            if (context.comm.rank() == 0) {
                const auto bytes = static_cast<std::size_t>(bands.largest() * transfer.item());
                file = std::make_unique<PosixFile>(transfer.region.path, transfer.region.name, mode);
                rows = Buffer(bytes);
                packed = {Buffer(bytes), Buffer(mode == PosixFile::Mode::write ? bytes : 0)};
            }
        }
    };

    static void start_gathering(const Context& context, const Transfer& transfer, const Cut& cut, const Buffer& packed,
                                MPI_Request& request) {
        const grid::Block block = transfer.block_of(context.comm.rank());
        const MPI_Datatype item = mpi::type_of(transfer.region.dtype);
        check(MPI_Igatherv(piece_data(transfer, block, cut.mine), static_cast<int>(cut.mine.size()), item,
                           packed.data(), cut.counts.data(), cut.places.data(), item, 0, context.comm.get(), &request),
              "MPI_Igatherv");
    }

    static void write_band(Context& context, const Transfer& transfer, const Desk& desk, const grid::Block& band,
                           const Cut& cut, const Buffer& packed) {
        if (!desk.file) {
            return;
        }
        repack(transfer, band, cut, desk.rows.data(), packed.data(), Direction::unpack);
        const Timed writing(context.ledger, context.ledger.phase(), Step::file, "pwrite " + transfer.region.name);
        const std::int64_t bytes = band.size() * transfer.item();
        context.ledger.count().io_calls +=
            desk.file->write(desk.rows.data(), bytes, transfer.at(band.rows.begin, band.columns.begin));
        context.ledger.count().written += bytes;
    }
};

}  // namespace

std::unique_ptr<Strategy> make_root_collective() { return std::make_unique<RootCollective>(); }

}  // namespace tilewise::io
