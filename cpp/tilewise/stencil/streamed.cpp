// Sweeps as stencil() does, which calls it where `options` have a tile, and checks all that they have in common. A
// pass takes the whole state from one file to the next, `options.depth` sweeps further, or up to a snapshot:
//
//     input ──depth sweeps──▶ states[0] ──depth sweeps──▶ states[1] ──▶ states[0] ──▶ … ──the last ones──▶ output
//
// In between the state is nowhere but in that file, in the type that is computed in. Within a pass each rank sweeps
// tile after tile on its own, each from what it depends on in the file: depth·radius cells around it, which
// neighbouring tiles compute, too. Ranks exchange nothing; they wait for each other between passes.
//
// Memory per rank, with field = (tile + 2·depth·radius in both directions, as far as the plane goes, or round it):
//     2 fields; 2·depth·radius rows of one; what the kernel keeps (Sweeper::sweep);
//     the tile once more where the orders of storage of input and output differ.
//
// Pass after pass over files, and in each of them tile after tile.
//
// Design: docs/design/stencil.md

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <numeric>
#include <optional>

#include "tilewise/base/threads.hpp"
#include "tilewise/io/background.hpp"
#include "tilewise/io/journal.hpp"
#include "tilewise/kernel/codec/convert.hpp"
#include "tilewise/mpi/sum.hpp"
#include "tilewise/mpi/together.hpp"
#include "tilewise/stencil/fields.hpp"
#include "tilewise/stencil/stencil.hpp"
#include "tilewise/stencil/tiling.hpp"

namespace tilewise::stencil {
namespace {

grid::Range from_begin(const grid::Range& range, const grid::Range& whole) {
    return {range.begin - whole.begin, range.end - whole.begin};
}

/// Brings into memory what a tile depends on: rows that the tile above had too are kept, all others are read.
///
/// The state before a pass: one file with planes, read tile after tile by all ranks together. All members throw the
/// same Error on every rank.
class TileSource {
public:
    /// `region` and `tiling` must live as long as this. While one tile is swept, the system is asked for the next
    /// where a rank reads at positions of its own. @note Collective.
    TileSource(Context& context, const io::Region& region, std::int64_t planes, const Tiling& tiling,
               io::StrategyKind read, const io::Hints& hints)
        : region_(region),
          planes_(region, planes),
          tiling_(tiling),
          input_(context, region, read, hints) {
        if (read == io::StrategyKind::positioned) {
            mpi::together(context.comm, [&] { prefetch_.emplace(region); });
        }
    }

    /// Fills field 0 of this rank with what its tile of this turn needs, and uses field 1. Turns come one after the
    /// other from 0 on. @note Collective.
    void load(Context& context, std::int64_t plane, std::int64_t turn, std::int64_t reach, const Fields& fields) {
        const auto tile_of = [&](int rank, std::int64_t at) { return tiling_.tile(rank, at, reach); };
        const Tile tile = tile_of(context.comm.rank(), turn);
        input_.load_raw(
            context, [&](int rank) { return planes_.wanted(plane, share(tile_of(rank, turn))); }, fields[1]);
        const Tile next = turn + 1 < tiling_.turns() ? tile_of(context.comm.rank(), turn + 1) : Tile{};
        if (prefetch_ && next.fresh.size() > 0) {
            prefetch_->want(region_.stored(planes_.wanted(plane, share(next))));
        }
        const Timed timed(context.ledger, context.ledger.phase(), Step::convert, "fill");
        mpi::together(context.comm, [&] {
            if (tile.cells.size() == 0) {
                return;
            }
            const std::int64_t above = tile.fresh.begin - tile.needed.rows.begin,
                               row_bytes = tile.needed.columns.size() * fields.item();
            for (std::int64_t row = 0; row < above; ++row) {
                std::memcpy(fields.at(0, row, 0), kept_.data() + row * row_bytes, static_cast<std::size_t>(row_bytes));
            }
            const Window rows(tile.fresh, planes_.rows, tiling_.is_periodic()),
                columns(tile.needed.columns, planes_.columns, tiling_.is_periodic());
            const std::int64_t line = grid::Share(rows.places, columns.places).width();
            const bool swapped = region_.swap_bytes && region_.generator.empty();  // what is made is in our own order
            for (const Window::Run& down : rows.runs) {
                for (const Window::Run& across : columns.runs) {
                    const std::int64_t at = down.there * line + across.there;
                    fill_field(fields[1] + at * static_cast<std::int64_t>(size_of(region_.dtype)), region_.dtype,
                               swapped, fields, 0,
                               {{above + down.here, above + down.here + down.length},
                                {across.here, across.here + across.length}},
                               context.threads, line);
                }
            }
            keep(context, tile, next, fields);
        });
    }

private:
    grid::Share share(const Tile& tile) const {
        if (tile.fresh.size() == 0) {
            return {};
        }
        const bool periodic = tiling_.is_periodic();
        return {Window(tile.fresh, planes_.rows, periodic).places,
                Window(tile.needed.columns, planes_.columns, periodic).places};
    }
    void keep(const Context& context, const Tile& tile, const Tile& next, const Fields& fields) {
        const grid::Range shared = from_begin({next.needed.rows.begin, next.fresh.begin}, tile.needed.rows);
        if (shared.size() == 0) {
            return;
        }
        const std::int64_t row_bytes = tile.needed.columns.size() * fields.item(), bytes = shared.size() * row_bytes;
        kept_.grow(static_cast<std::size_t>(bytes));
        constexpr std::int64_t worth_threads = std::int64_t{1} << 20;  // bytes
        parallel_ranges(bytes < worth_threads ? 1 : context.threads, shared.size(),
                        [&](std::int64_t begin, std::int64_t end, int) {
                            for (std::int64_t row = begin; row < end; ++row) {
                                std::memcpy(kept_.data() + row * row_bytes, fields.at(0, shared.begin + row, 0),
                                            static_cast<std::size_t>(row_bytes));
                            }
                        });
    }

    const io::Region& region_;
    Planes planes_;
    const Tiling& tiling_;
    io::Input input_;
    std::optional<io::Prefetch> prefetch_;
    Buffer kept_;  // rows of the field that the next tile begins with
};

/// How far a plane has come, and the file that holds it then, completely.
struct Reached {
    const io::Region* file;
    std::int64_t sweeps = 0;
};

Tiling tiling_of(const Planes& planes, const Options& options, int ranks, bool in_turn) {
    const std::int64_t rows = planes.transposed ? options.tile_columns : options.tile_rows,
                       columns = planes.transposed ? options.tile_rows : options.tile_columns;
    return {planes.rows, planes.columns, rows, columns, ranks, in_turn, options.boundary == kernel::Boundary::periodic};
}

bool is_written_in_order(const io::Region& region) { return region.text.has_value(); }

/// Sweeps of the pass that begins after `done`: up to the end or the next snapshot in passes of nearly equal length.
std::int64_t sweeps_of_pass(const Options& options, std::int64_t done) {
    std::int64_t left = options.steps - done;
    if (options.snapshot_every > 0) {
        left = std::min(left, options.snapshot_every - done % options.snapshot_every);
    }
    const std::int64_t passes = (left + options.depth - 1) / options.depth;
    return passes > 0 ? (left + passes - 1) / passes : 0;
}

class Run {
public:
    Run(Context& context, const io::Region& from, const io::Region& to, const std::vector<io::Region>& snapshots,
        Dtype dtype, const Options& options)
        : context_(context),
          from_(from),
          options_(options),
          planes_(from, options.planes),
          tiling_(tiling_of(planes_, options, context.comm.size(), is_written_in_order(to))),
          sweeper_(planes_.transposed ? transposed(options.weights) : options.weights, options.boundary, dtype,
                   options.plain) {
        const Timed timed(context.ledger, Phase::input, "open");
        const std::int64_t reach = std::min<std::int64_t>(options.depth, options.steps) * options.weights.radius;
        const grid::Block most = tiling_.largest(reach);
        whole_ = std::make_shared<Fields>(context, kernel::field_shape(most.rows.size(), most.columns.size(), 0, dtype),
                                          dtype, false);
        whole_->touch(context.threads);
        input_.emplace(context, from, options.planes, tiling_, options.read, options.hints);
        const Timed reserving(context.ledger, Phase::output, "reserve");
        for (const io::Region& region : snapshots) {
            snapshots_.push_back(std::make_unique<Sink>(context, region, planes_, options.write, options.hints));
        }
        output_.emplace(context, to, planes_, options.write, options.hints);
        checkpoints_ = io::make_checkpoints(context, options.checkpoints);
    }

    Outcome operator()() {
        const auto phases = [&] { return context_.ledger.books().phases[static_cast<std::size_t>(Phase::compute)]; };
        const double before = phases();
        for (std::int64_t plane = 0; plane < planes_.count; ++plane) {
            outcome_.passes = 0;
            Reached reached = begin();
            do {
                reached = pass(plane, reached);
                ++outcome_.passes;
            } while (reached.sweeps < options_.steps);
            outcome_.sweeps.push_back(reached.sweeps);
        }
        {
            const Timed timed(context_.ledger, Phase::output, "output");
            output_->finish(context_, options_.sync);
        }
        add_up(phases() - before);
        return std::move(outcome_);
    }

private:
    /// The input, or the state that an earlier start has left.
    Reached begin() {
        if (!checkpoints_) {
            return {&from_};
        }
        outcome_.restored = checkpoints_->restored();
        const io::Saved* found = checkpoints_->found();
        if (found == nullptr) {
            return {&from_};
        }
        facts_ = found->facts;
        outcome_.input_non_finite =
            context_.comm.rank() == 0 ? static_cast<std::int64_t>(facts_.at(0)) : 0;  // they are added up
        return {&checkpoints_->slot(found->slot), found->version};
    }

    /// From the file that holds a state to the one that holds the next. @note Collective.
    Reached pass(std::int64_t plane, const Reached& begun) {
        const std::int64_t sweeps = sweeps_of_pass(options_, begun.sweeps), done = begun.sweeps + sweeps,
                           reach = sweeps * options_.weights.radius;
        const bool is_last = done >= options_.steps;
        const bool is_shown = !is_last && options_.snapshot_every > 0 && done % options_.snapshot_every == 0;
        const io::Region* next = nullptr;
        std::optional<TileSource> between;
        std::optional<Sink> state;
        if (begun.file != &from_) {
            between.emplace(context_, *begun.file, 1, tiling_, of_states(options_.read), options_.hints);
        }
        if (!is_last) {
            next = checkpoints_ ? &checkpoints_->slot(checkpoints_->next())
                                : &options_.states[static_cast<std::size_t>(outcome_.passes) % options_.states.size()];
            state.emplace(context_, *next, Planes(*next, 1), of_states(options_.write), options_.hints);
        }
        TileSource& source = between ? *between : *input_;
        for (std::int64_t turn = 0; turn < tiling_.turns(); ++turn) {
            const Tile tile = tiling_.tile(context_.comm.rank(), turn, reach);
            const Fields fields(
                *whole_, kernel::field_shape(tile.needed.rows.size(), tile.needed.columns.size(), 0, whole_->dtype()));
            {
                const Timed timed(context_.ledger, Phase::input, "input");
                source.load(context_, between ? 0 : plane, turn, reach, fields);
            }
            if (begun.file == &from_) {
                outcome_.input_non_finite += not_finite(fields, own(tile));
            }
            const int field = sweep(tile, fields, sweeps);
            const Timed timed(context_.ledger, Phase::output, "output");
            const auto write = [&](Sink& sink, std::int64_t to_plane) {
                return sink.write(
                    context_, to_plane, [&](int rank) { return tiling_.tile(rank, turn, reach).cells; }, fields, field,
                    own(tile), staging_);
            };
            if (is_shown) {
                write(shown(done), plane);
            }
            if (is_last) {
                outcome_.result += write(*output_, plane);
            } else {
                write(*state, 0);
                if (checkpoints_) {  // the numbers are staged in the other field, as they lie in the file
                    mpi::together(context_.comm, [&] { checkpoints_->wrote(done, tile.cells, fields[1 - field]); });
                }
            }
            report(plane, static_cast<double>(begun.sweeps) + static_cast<double>(sweeps) *
                                                                  static_cast<double>(turn + 1) /
                                                                  static_cast<double>(tiling_.turns()));
        }
        if (state) {
            const Timed timed(context_.ledger, Phase::output, "output");
            state->finish(context_, false);
        }
        if (is_shown && plane + 1 == planes_.count) {
            publish(done);
        }
        context_.comm.barrier();  // all of the state is in the file
        if (state && checkpoints_) {
            keep(begun, done);
        }
        return {next, done};
    }

    /// Says that the state after so many sweeps is whole; ends the job where somebody asks for that. @note Collective.
    void keep(const Reached& begun, std::int64_t done) {
        const Timed timed(context_.ledger, Phase::output, "checkpoint");
        if (begun.file == &from_) {
            facts_ = {static_cast<double>(mpi::sum_of(context_.comm, outcome_.input_non_finite))};
        }
        checkpoints_->complete(context_, done, facts_);
        if (checkpoints_->wish(context_) == io::Checkpoints::Wish::save_and_stop) {
            mpi::throw_agreed(context_.comm, io::stopped());
        }
    }

    /// The tile's own cells, in its field.
    static grid::Block own(const Tile& tile) { return in_field(tile, tile.cells); }
    static grid::Block in_field(const Tile& tile, const grid::Block& cells) {
        const std::int64_t down = tile.needed.rows.begin, right = tile.needed.columns.begin;
        return {{cells.rows.begin - down, cells.rows.end - down},
                {cells.columns.begin - right, cells.columns.end - right}};
    }

    /// From field 0 to the one that is returned, as many sweeps at once as the kernel likes best. Not collective.
    int sweep(const Tile& tile, const Fields& fields, std::int64_t sweeps) {
        if (tile.cells.size() == 0) {
            return 0;
        }
        const Timed timed(context_.ledger, Phase::compute, "sweep");
        int field = 0;
        const std::int64_t chunks =
            std::max<std::int64_t>(1, (sweeps + sweeper_.best_steps() - 1) / sweeper_.best_steps());
        std::int64_t left = sweeps;
        for (std::int64_t chunk = chunks; chunk > 0; --chunk) {
            const std::int64_t now = (left + chunk - 1) / chunk;
            left -= now;
            const grid::Block right = in_field(tile, tile.right(left * options_.weights.radius));
            outcome_.model_bytes += static_cast<double>(
                sweeper_.sweep(fields.shape(), tile.edges, fields[field], fields[1 - field],
                               {right.rows.begin, right.rows.end, right.columns.begin, right.columns.end},
                               static_cast<int>(now), context_.threads));
            field = 1 - field;
        }
        outcome_.point_sweeps += static_cast<double>(tile.cells.size()) * static_cast<double>(sweeps);
        outcome_.working = true;
        return field;
    }

    std::int64_t not_finite(const Fields& fields, const grid::Block& cells) const {
        if (is_integer(from_.dtype)) {
            return 0;
        }
        const Timed timed(context_.ledger, Phase::input, Step::convert, "not finite");
        std::vector<std::int64_t> found(static_cast<std::size_t>(std::max(1, context_.threads)));
        constexpr std::int64_t worth_threads = std::int64_t{1} << 17;  // numbers
        parallel_ranges(cells.size() < worth_threads ? 1 : context_.threads, cells.rows.size(),
                        [&](std::int64_t begin, std::int64_t end, int thread) {
                            for (std::int64_t row = begin; row < end; ++row) {
                                found[static_cast<std::size_t>(thread)] +=
                                    kernel::count_not_finite(fields.at(0, cells.rows.begin + row, cells.columns.begin),
                                                             cells.columns.size(), fields.dtype());
                            }
                        });
        return std::accumulate(found.begin(), found.end(), std::int64_t{0});
    }

    Sink& shown(std::int64_t sweeps) {
        return *snapshots_[static_cast<std::size_t>(sweeps / options_.snapshot_every - 1)];
    }

    void publish(std::int64_t sweeps) {
        const Timed timed(context_.ledger, Phase::output, "snapshot");
        shown(sweeps).finish(context_, options_.sync);
        outcome_.snapshots.push_back(sweeps);
        if (options_.snapshot_done && context_.comm.rank() == 0) {
            options_.snapshot_done(sweeps / options_.snapshot_every - 1);
        }
    }

    void report(std::int64_t plane, double sweeps) {
        const double all = static_cast<double>(std::max<std::int64_t>(1, options_.steps));
        context_.report(Phase::compute,
                        (static_cast<double>(plane) + sweeps / all) / static_cast<double>(planes_.count));
    }

    /// What is said of all ranks together; `seconds` this one swept. @note Collective.
    void add_up(double seconds) {
        std::array<std::int64_t, 3> counts{outcome_.result.non_finite, outcome_.result.held, outcome_.input_non_finite};
        mpi::check(MPI_Allreduce(MPI_IN_PLACE, counts.data(), 3, MPI_INT64_T, MPI_SUM, context_.comm.get()),
                   "MPI_Allreduce");
        outcome_.result = {counts[0], counts[1]};
        outcome_.input_non_finite = counts[2];
        std::array<double, 2> sums{outcome_.model_bytes, outcome_.point_sweeps};
        mpi::check(MPI_Allreduce(MPI_IN_PLACE, sums.data(), 2, MPI_DOUBLE, MPI_SUM, context_.comm.get()),
                   "MPI_Allreduce");
        outcome_.model_bytes = sums[0];
        outcome_.point_sweeps = sums[1];
        seconds = mpi::most_of(context_.comm, seconds);
        outcome_.samples = {{.compute = seconds, .exchange = 0, .both = seconds}};
        outcome_.depth = options_.depth;
        outcome_.fields = whole_;
    }

    Context& context_;
    const io::Region& from_;
    const Options& options_;
    Planes planes_;
    Tiling tiling_;
    kernel::Sweeper sweeper_;
    std::shared_ptr<Fields> whole_;  // memory for the fields of any tile
    std::optional<TileSource> input_;
    std::optional<Sink> output_;
    std::vector<std::unique_ptr<Sink>> snapshots_;
    std::unique_ptr<io::Checkpoints> checkpoints_;
    std::vector<double> facts_;  // of a checkpoint: numbers of the input that are not finite
    Staging staging_;
    Outcome outcome_;
};

void check(const io::Region& from, const io::Region& to, Dtype dtype, const Options& options) {
    if (options.tile_rows < 1 || options.tile_columns < 1 || options.depth < 1) {
        throw UsageError("a field larger than memory is swept in tiles of at least one cell, one sweep or more a pass");
    }
    if (options.until_change > 0 || options.repeat > 1 || options.warmup > 0 || options.verify == Verify::serial) {
        throw UsageError("a field larger than memory is swept once, as often as was said, and not proved serially");
    }
    for (const io::Region* region : {&from, &to}) {
        if (size_of(region->dtype) > size_of(dtype)) {
            throw UsageError(region->name + ": numbers of a field larger than memory are computed in a type as wide");
        }
    }
    const Planes planes(from, options.planes);
    if (is_written_in_order(to) &&
        (planes.transposed ? options.tile_rows < planes.columns : options.tile_columns < planes.columns)) {
        throw UsageError(to.name + ": a text is written in whole rows");
    }
    std::int64_t passes = 0;
    for (std::int64_t done = 0; done < options.steps; ++passes) {
        done += sweeps_of_pass(options, done);
    }
    if (options.checkpoints.folder.empty() && std::ssize(options.states) < std::min<std::int64_t>(passes - 1, 2)) {
        throw UsageError(std::to_string(passes) + " passes need files for the states between them");
    }
    for (const io::Region& state : options.states) {
        check_state(state, planes, dtype);
    }
}

}  // namespace

Outcome stencil_streamed(Context& context, const io::Region& from, const io::Region& to,
                         const std::vector<io::Region>& snapshots, Dtype dtype, const Options& options) {
    mpi::together(context.comm, [&] { check(from, to, dtype, options); });
    return mpi::no_return(context.comm, [&] { return Run(context, from, to, snapshots, dtype, options)(); });
}

Seams seams_of_tiles(const io::Region& from, const Options& options, int ranks) {
    const Tiling tiling = tiling_of(Planes(from, options.planes), options, ranks, false);
    return {tiling.rows(), tiling.columns()};
}

}  // namespace tilewise::stencil
