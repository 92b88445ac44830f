// Both proofs read in bands of whole rows of the result, and in the byte order of the result.
#include "tilewise/transpose/proof.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "tilewise/base/buffer.hpp"
#include "tilewise/kernel/byte_order.hpp"
#include "tilewise/kernel/fingerprint.hpp"
#include "tilewise/kernel/transpose.hpp"
#include "tilewise/mpi/together.hpp"
#include "tilewise/transpose/local.hpp"

namespace tilewise::transpose {
namespace {

constexpr std::int64_t band_bytes = std::int64_t{4} << 20;

/// A file that is read band by band, each in the order in which the file stores it.
class Reading {
public:
    Reading(Context& context, const io::Region& region, bool swap)
        : context_(context),
          region_(region),
          swap_(swap),
          input_(context, region, "positioned", {}) {}

    /// Reads share_of(rank), in the coordinates of what `region` is wanted as, on every rank.
    const std::byte* read(const io::WantedShare& share_of) {
        const std::int64_t size = share_of(context_.comm.rank()).size();
        const std::size_t item = size_of(region_.dtype), width = facts(region_.dtype).component;
        mpi::together(context_.comm, [&] {
            if (memory_.bytes() < static_cast<std::size_t>(size) * item) {
                memory_ = Buffer(static_cast<std::size_t>(size) * item);
            }
        });
        input_.load_raw(context_, share_of, memory_.data());
        if (swap_) {
            kernel::swap_bytes(memory_.data(), memory_.data(), size * static_cast<std::int64_t>(item / width), width);
        }
        return memory_.data();
    }

private:
    Context& context_;
    const io::Region& region_;
    bool swap_;
    io::Input input_;
    Buffer memory_;
};

/// The fingerprint of the matrix that `region` is wanted as, over all ranks.
std::uint64_t fingerprint_of(Context& context, const io::Region& region, bool swap) {
    Reading reading(context, region, swap);
    const bool turned = region.stored_transposed();
    const std::int64_t rows = region.stored_rows(), columns = region.stored_columns();
    const auto item = static_cast<std::int64_t>(size_of(region.dtype));
    const int ranks = context.comm.size();
    const std::int64_t each = std::max<std::int64_t>(1, band_bytes / item / std::max<std::int64_t>(1, columns));
    std::uint64_t sum = 0, all = 0;
    for (std::int64_t begin = 0; begin < rows; begin += each * ranks) {
        const grid::Partition cut(std::min(each * ranks, rows - begin), ranks);
        const auto block_of = [&](int rank) -> grid::Block {
            return {{begin + cut[rank].begin, begin + cut[rank].end}, {0, columns}};
        };
        const std::byte* data = reading.read(
            [&](int rank) -> grid::Share { return turned ? block_of(rank).transposed() : block_of(rank); });
        const grid::Block mine = block_of(context.comm.rank());
        mpi::together(context.comm, [&] {
            sum += kernel::fingerprint(data, mine.rows.size(), columns, static_cast<std::size_t>(item), mine.rows.begin,
                                       0, turned, 0x7469'6C65'7769'7365u, context.threads);
        });
    }
    mpi::check(MPI_Allreduce(&sum, &all, 1, MPI_UINT64_T, MPI_SUM, context.comm.get()), "MPI_Allreduce");
    return all;
}

/// Numbers in which the files differ, found by rank 0 alone with two loops.
std::int64_t differences(Context& alone, const io::Region& from, const io::Region& to) {
    Reading source(alone, from, from.swap_bytes != to.swap_bytes), result(alone, to, false);
    const bool turned = is_turned(from, to);
    const std::int64_t rows = to.stored_rows(), columns = to.stored_columns();
    const auto item = static_cast<std::int64_t>(size_of(to.dtype));
    // Near to square, so that both files are read in runs that are not too short.
    const std::int64_t side =
        std::max<std::int64_t>(1, static_cast<std::int64_t>(std::sqrt(static_cast<double>(band_bytes / item))));
    Buffer turned_band(static_cast<std::size_t>(side * side * item));
    std::int64_t count = 0;
    for (std::int64_t i = 0; i < rows; i += side) {
        for (std::int64_t j = 0; j < columns; j += side) {
            const grid::Block block{{i, std::min(i + side, rows)}, {j, std::min(j + side, columns)}};
            const auto wanted = as_wanted(to, [&](int) { return block; });
            const std::byte* expected = source.read(wanted);
            if (turned) {
                kernel::plain_transpose(expected, block.rows.size() * item, block.columns.size(), block.rows.size(),
                                        static_cast<std::size_t>(item), turned_band.data(),
                                        block.columns.size() * item);
                expected = turned_band.data();
            }
            const std::byte* found = result.read(wanted);
            if (std::memcmp(expected, found, static_cast<std::size_t>(block.size() * item)) != 0) {
                for (std::int64_t k = 0; k < block.size(); ++k) {
                    count += std::memcmp(expected + k * item, found + k * item, static_cast<std::size_t>(item)) != 0;
                }
            }
        }
    }
    return count;
}

}  // namespace

Verification verify(Context& context, const io::Region& from, const io::Region& to, Verify how) {
    const Timed timed(context.ledger, Phase::verify, "verify");
    context.comm.barrier();
    io::Region written = to;
    if (to.text) {
        written.file_bytes = io::PosixFile(to.path, to.name, io::PosixFile::Mode::read).size();
    }
    if (how == Verify::fast) {
        const bool swap = from.swap_bytes != to.swap_bytes;
        const bool same = fingerprint_of(context, from, swap) == fingerprint_of(context, written, false);
        return {"fast", same, same ? 0.0 : 1.0};
    }
    std::int64_t count = 0;
    mpi::together(context.comm, [&] {
        if (context.comm.rank() == 0) {
            Context alone{mpi::Communicator(MPI_COMM_SELF), context.ledger, context.threads};
            count = differences(alone, from, written);
        }
    });
    mpi::check(MPI_Bcast(&count, 1, MPI_INT64_T, 0, context.comm.get()), "MPI_Bcast");
    return {"serial", count == 0, static_cast<double>(count)};
}

}  // namespace tilewise::transpose
