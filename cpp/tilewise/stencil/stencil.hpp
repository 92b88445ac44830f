// Stencil sweeps over a matrix in a file, over any number of ranks: the operation that the worker and other programs
// call.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tilewise/base/outcome.hpp"
#include "tilewise/io/journal.hpp"
#include "tilewise/io/transfer.hpp"
#include "tilewise/mpi/exchange/kinds.hpp"
#include "tilewise/stencil/halo.hpp"

namespace tilewise::stencil {

using mpi::ExchangeKind;

class Fields;

inline constexpr auto exchange_names = mpi::exchange_names_without();
/// Throws UsageError for an unknown name.
inline ExchangeKind exchange_named(std::string_view name) { return mpi::exchange_named(name, exchange_names); }

/// How cells leave the field: copied into a dense buffer and sent as one message a piece; described by a datatype and
/// taken straight from the field; or each as a message of its own (the third report's mistake, there to be seen).
enum class HaloForm { packed, datatype, elementwise };
inline constexpr std::array<std::string_view, 3> halo_names{"packed", "datatype", "elementwise"};
/// Throws UsageError for an unknown name.
HaloForm halo_named(std::string_view name);

struct Options {
    std::int64_t steps = 1;
    kernel::Weights weights;
    kernel::Boundary boundary = kernel::Boundary::zero;
    std::int64_t planes = 1;          ///< matrices one under the other, each swept on its own
    std::int64_t snapshot_every = 0;  ///< sweeps; 0: none
    double until_change = 0;        ///< the largest change of one sweep below which a plane is at rest; 0: never asked
    std::int64_t check_every = 16;  ///< sweeps from one check to the next
    ExchangeKind exchange = ExchangeKind::none;
    HaloForm halo = HaloForm::packed;
    int depth =
        /// sweeps of a pass, and between two exchanges; 0: what the kernel likes best, as far as blocks are large
        /// enough
        0;
    io::StrategyKind read = io::StrategyKind::positioned, write = io::StrategyKind::positioned;
    io::Hints hints;
    grid::Grid grid;         ///< of the ranks over the matrix, numbered row by row
    std::vector<int> order;  ///< the place in the grid of each rank; empty: rank i is at place i
    grid::Remainder remainder = grid::Remainder::spread;
    /// Of a field larger than memory: rows and columns, as the user sees the matrix, of what is swept at a time.
    std::int64_t tile_rows = 0, tile_columns = 0;
    /// Files in the type that is computed in, of the size and order of one plane of the input, for the states between
    /// the passes of a field larger than memory: none for one pass, one for two, else two.
    std::vector<io::Region> states = {};
    /// States to go on from after a death, of one plane swept once, in files like `states`, whose place they take.
    io::CheckpointOptions checkpoints = {};
    bool plain = false;  ///< the reference's loops instead of the fast kernel
    Verify verify = Verify::off;
    int repeat = 1, warmup = 0;  ///< of the sweeps, each time from the input's state
    bool sync = false;
    /// Told on rank 0 that a snapshot's file is whole, with its place among all of them.
    std::function<void(std::int64_t index)> snapshot_done = {};
};

/// Numbers of which a file cannot say what was computed.
struct Tally {
    std::int64_t non_finite = 0;  ///< NaN or infinite
    std::int64_t held = 0;        ///< finite, and beyond the file's type: held to its range

    Tally& operator+=(const Tally& more) {
        non_finite += more.non_finite;
        held += more.held;
        return *this;
    }
};

/// Where numbers were found that are not finite when sweeps should come to rest, its verification says "convergence":
/// nothing whole was written then.
struct Outcome : tilewise::Outcome {
    std::vector<std::int64_t> sweeps;      ///< of each plane
    std::optional<double> last_change;     ///< the largest one at the last check of any plane
    Tally result;                          ///< of the last state, as computed, over all ranks
    std::int64_t input_non_finite = 0;     ///< numbers of the input that are NaN or infinite, over all ranks
    std::vector<std::int64_t> snapshots;   ///< sweeps after which one was written; files beyond the last are not whole
    double point_sweeps = 0;               ///< points of the matrix times sweeps, over all planes, in this start
    double model_bytes = 0;                ///< of all ranks: what passes move through memory (see Sweeper::sweep)
    int depth = 1;                         ///< that was swept with
    std::int64_t passes = 0;               ///< over the files of each plane; 0: all was in memory
    std::optional<io::Restored> restored;  ///< where there are checkpoints
    std::shared_ptr<Fields>
        fields;  ///< for whoever wants to measure what memory gives; release it on all ranks together
};

/// `to` = `from` after so many sweeps, computed in `dtype` (float32 or float64), and rounded to the type of `to`: to
/// the nearest number, halves to the even one, and what an integer cannot hold to the nearest that it can. `to` and
/// `snapshots` are part files that exist with their full size, of the same rows and columns as `from`. Swept as the
/// input is stored: where that is column by column, the weights are transposed and not the matrix. Results are
/// bit-identical for every grid, exchange, depth and number of threads, on one instruction set and one order of
/// storage.
///
/// Memory per rank, with field = (rows + 2·depth·radius)·(columns + 2·depth·radius) numbers of `dtype`, padded as
/// field_shape says, of the largest block (on one rank without margins, unless the boundary is periodic):
///     2 fields; `packed` both ways: 2 × the cells of the margin; what the kernel keeps (Sweeper::sweep);
///     a block in the input's type with `repeat` or `warmup`, or where that is wider than `dtype`;
///     a block in the output's type where that is wider than `dtype`;
///     another one where the orders of storage of input and output differ: one of each for the output and all
///     snapshots.
/// Else numbers are staged in the second field. What a field larger than memory takes, stencil_streamed says. Throws
/// the same Error on every rank, or aborts the job where ranks already wait.
/// @note Collective over `context.comm`, whose ranks must match the grid.
Outcome stencil(Context& context, const io::Region& from, const io::Region& to,
                const std::vector<io::Region>& snapshots, Dtype dtype, const Options& options);

/// Adds and multiplications of one point: a multiplication for each tap, and an addition between two. Zero weights off
/// the cross are no taps where all of them are zero.
double plain_flops_per_point(const kernel::Weights& weights);

/// Whether a weight off the cross is not zero, so that sweeps look into corners.
bool has_corners(const kernel::Weights& weights);

/// Weights for the transpose of the matrix.
kernel::Weights transposed(const kernel::Weights& weights);

/// The planes of a matrix as it is stored.
struct Planes {
    std::int64_t count = 1, rows = 0, columns = 0;  ///< of a plane, as it is stored
    bool transposed = false;                        ///< stored column by column

    Planes(const io::Region& region, std::int64_t planes)
        : count(planes),
          rows(region.stored_transposed() ? region.logical_columns() : region.logical_rows() / planes),
          columns(region.stored_transposed() ? region.logical_rows() / planes : region.logical_columns()),
          transposed(region.stored_transposed()) {}

    std::int64_t points() const { return rows * columns; }
    /// The same of a share.
    grid::Share wanted(std::int64_t index, const grid::Share& stored) const {
        return (transposed ? stored.transposed() : stored).moved(index * (transposed ? columns : rows), 0);
    }
    /// A block of plane `index`, as a block of the whole matrix as the user sees it.
    grid::Block wanted(std::int64_t index, const grid::Block& stored) const {
        grid::Block block = transposed ? stored.transposed() : stored;
        const std::int64_t down = index * (transposed ? columns : rows);
        block.rows = {block.rows.begin + down, block.rows.end + down};
        return block;
    }
};

/// Throws UsageError unless a file can hold the state of a plane.
void check_state(const io::Region& state, const Planes& planes, Dtype dtype);

inline constexpr std::int64_t patch_side = 24;  ///< rows and columns of a patch that is recomputed
/// Points times sweeps up to which all are swept again: a few milliseconds, beside which patches save nothing.
inline constexpr std::int64_t points_swept_again = 2'000'000;
/// Beyond that, one of so many points that were swept may be swept again for patches.
inline constexpr std::int64_t points_per_patch_point = 250;
inline constexpr std::int64_t proof_band_bytes = std::int64_t{4} << 20;  ///< of a file that is read again

/// How a plane was cut, as it is stored: where faults are most likely.
struct Seams {
    grid::Partition rows, columns;
};

/// `sweeps` of each plane. `fast`: patches are recomputed out of the cells that they depend on, dealt out to the ranks,
/// and compared bit by bit with the file: always the last corner of the last plane, and of the first plane the
/// middlemost place where blocks meet by `seams` (where there is one block its middle); then corners, edges, seams and
/// places drawn by a fixed seed, while all together cost less than `points_per_patch_point` says. `serial`: rank 0
/// alone recomputes everything. Memory: two fields of a patch with all that it depends on (`serial`: of a plane), and
/// as much again for the numbers of the files. @note Collective.
Verification verify(Context& context, const io::Region& from, const io::Region& to, Dtype dtype, const Options& options,
                    const std::vector<std::int64_t>& sweeps, const Seams& seams);

/// Sweeps over a field larger than memory: see streamed.cpp. @note Collective.
Outcome stencil_streamed(Context& context, const io::Region& from, const io::Region& to,
                         const std::vector<io::Region>& snapshots, Dtype dtype, const Options& options);

/// Where its tiles meet.
Seams seams_of_tiles(const io::Region& from, const Options& options, int ranks);

}  // namespace tilewise::stencil
