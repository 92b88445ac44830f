// Whether a file holds the transpose of another, looked up in the files themselves: the proof knows nothing of how it
// was done.
//
// Both proofs read blocks of a bounded size, and compare numbers in this machine's byte order.
//
// Design: docs/design/transposition.md
#include <algorithm>
#include <cmath>
#include <cstring>

#include "tilewise/base/buffer.hpp"
#include "tilewise/kernel/codec/checksum.hpp"
#include "tilewise/kernel/codec/convert.hpp"
#include "tilewise/kernel/transpose/transpose.hpp"
#include "tilewise/mpi/sum.hpp"
#include "tilewise/mpi/together.hpp"
#include "tilewise/transpose/local.hpp"
#include "tilewise/transpose/transpose.hpp"

namespace tilewise::transpose {
namespace {

constexpr std::int64_t block_bytes = std::int64_t{4} << 20;

/// A file that is read block by block, each in the order in which the file stores it.
class Reading {
public:
    /// `one_nan`: all that is no number shall be the same, since a text has one word for it.
    Reading(Context& context, const io::Region& region, bool one_nan)
        : context_(context),
          region_(region),
          one_nan_(one_nan && !is_integer(region.dtype)),
          input_(context, region, io::StrategyKind::positioned, {}) {}

    /// Reads share_of(rank), in the coordinates of what `region` is wanted as, on every rank.
    const std::byte* read(const io::WantedShare& share_of) {
        const std::int64_t size = share_of(context_.comm.rank()).size();
        const std::size_t item = size_of(region_.dtype), width = facts(region_.dtype).component;
        mpi::together(context_.comm, [&] { memory_.grow(size * static_cast<std::int64_t>(item)); });
        input_.load_raw(context_, share_of, memory_.data());
        const std::int64_t components = size * static_cast<std::int64_t>(item / width);
        if (region_.swap_bytes) {
            kernel::swap_bytes(memory_.data(), memory_.data(), components, width);
        }
        if (one_nan_) {
            kernel::make_nans_equal(memory_.data(), components, width);
        }
        return memory_.data();
    }

private:
    Context& context_;
    const io::Region& region_;
    bool one_nan_;
    io::Input input_;
    Array<std::byte> memory_;
};

/// Numbers of a row that are read at once: as many as make a block with their weights, and what cannot be read in
/// parts: a line of a text.
std::int64_t widest_piece(const io::Region& region) {
    constexpr std::size_t weight = 8;
    std::int64_t widest = block_bytes / static_cast<std::int64_t>(std::max(size_of(region.dtype), weight));
    if (region.text) {
        widest = std::max(widest, region.text->elements());
    }
    return widest;
}

/// The fingerprint of the matrix that `region` is wanted as, over all ranks. Each reads some whole rows at a time, or,
/// where rows are longer than a block, its piece of one.
std::uint64_t fingerprint_of(Context& context, const io::Region& region, bool one_nan) {
    Reading reading(context, region, one_nan);
    const bool transposed = region.stored_transposed();
    const std::int64_t rows = region.stored_rows(), columns = region.stored_columns();
    const auto item = static_cast<std::int64_t>(size_of(region.dtype));
    const int ranks = context.comm.size();
    const std::int64_t width = std::clamp<std::int64_t>(columns, 1, widest_piece(region));
    const bool cut = width < columns;
    const grid::Grid over = cut ? grid::Grid{1, ranks} : grid::Grid{ranks, 1};
    const std::int64_t height = cut ? 1 : std::max<std::int64_t>(1, block_bytes / item / width);
    std::uint64_t sum = 0;
    for (std::int64_t i = 0; i < rows; i += height * over.rows) {
        for (std::int64_t j = 0; j < columns; j += width * over.columns) {
            const grid::Partition down(std::min(height * over.rows, rows - i), over.rows),
                across(std::min(width * over.columns, columns - j), over.columns);
            const auto block_of = [&](int rank) -> grid::Block {
                const grid::Place place = over.place(rank);
                const grid::Range its_rows = down[place.row], its_columns = across[place.column];
                return {{i + its_rows.begin, i + its_rows.end}, {j + its_columns.begin, j + its_columns.end}};
            };
            const std::byte* data = reading.read(
                [&](int rank) -> grid::Share { return transposed ? block_of(rank).transposed() : block_of(rank); });
            const grid::Block mine = block_of(context.comm.rank());
            mpi::together(context.comm, [&] {
                sum += kernel::fingerprint(data, mine.rows.size(), mine.columns.size(), static_cast<std::size_t>(item),
                                           mine.rows.begin, mine.columns.begin, transposed, 0x7469'6C65'7769'7365u,
                                           context.threads);
            });
        }
    }
    return mpi::sum_of(context.comm, sum);
}

/// Numbers in which the files differ, found by rank 0 alone with two loops.
std::int64_t differences(Context& alone, const io::Region& from, const io::Region& to, bool one_nan) {
    Reading source(alone, from, one_nan), result(alone, to, one_nan);
    const bool transposed = is_transposed(from, to);
    const std::int64_t rows = to.stored_rows(), columns = to.stored_columns();
    const auto item = static_cast<std::int64_t>(size_of(to.dtype));
    // Near to square, so that both files are read in runs that are not too short; longer where the matrix is narrower
    // than that.
    const std::int64_t most = block_bytes / item;
    const auto side = static_cast<std::int64_t>(std::sqrt(static_cast<double>(most)));
    const std::int64_t width =
        std::clamp<std::int64_t>(most / std::clamp<std::int64_t>(rows, 1, side), 1, std::max<std::int64_t>(1, columns));
    const std::int64_t height = most / width;
    Buffer transposed_block(static_cast<std::size_t>(block_bytes));
    std::int64_t count = 0;
    for (std::int64_t i = 0; i < rows; i += height) {
        for (std::int64_t j = 0; j < columns; j += width) {
            const grid::Block block{{i, std::min(i + height, rows)}, {j, std::min(j + width, columns)}};
            const auto wanted = as_wanted(to, [&](int) { return block; });
            const std::byte* expected = source.read(wanted);
            if (transposed) {
                kernel::plain_transpose(expected, block.rows.size() * item, block.columns.size(), block.rows.size(),
                                        static_cast<std::size_t>(item), transposed_block.data(),
                                        block.columns.size() * item);
                expected = transposed_block.data();
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
    const io::Region written = io::as_written(context, to);
    const bool one_nan = from.text || to.text;
    if (how == Verify::fast) {
        const bool same = fingerprint_of(context, from, one_nan) == fingerprint_of(context, written, one_nan);
        return {.method = "fast", .passed = same, .error = same ? 0.0 : 1.0};
    }
    std::int64_t count = 0;
    mpi::together(context.comm, [&] {
        if (context.comm.rank() == 0) {
            Context alone{mpi::Communicator(MPI_COMM_SELF), context.ledger, context.threads};
            count = differences(alone, from, written, one_nan);
        }
    });
    count = mpi::of_root(context.comm, count);
    return {.method = "serial", .passed = count == 0, .error = static_cast<double>(count)};
}

}  // namespace tilewise::transpose
