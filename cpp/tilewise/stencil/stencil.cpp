// Checks what is asked, and takes plane after plane from the input's file through its sweeps to the output's.
#include "tilewise/stencil/stencil.hpp"

#include <algorithm>
#include <array>

#include "tilewise/io/corrupt_for_test.hpp"
#include "tilewise/io/journal.hpp"
#include "tilewise/mpi/repeat.hpp"
#include "tilewise/mpi/sum.hpp"
#include "tilewise/mpi/together.hpp"
#include "tilewise/stencil/evolution.hpp"
#include "tilewise/stencil/fields.hpp"

namespace tilewise::stencil {
namespace {

void check_shapes(const io::Region& from, const io::Region& to, Dtype dtype, const Options& options) {
    if (from.logical_rows() != to.logical_rows() || from.logical_columns() != to.logical_columns()) {
        throw UsageError(from.name + " and " + to.name + " are of different shapes");
    }
    if (is_complex(from.dtype) || is_complex(to.dtype)) {
        throw UsageError(from.name + ": a stencil needs real numbers, not " + std::string(name_of(from.dtype)));
    }
    if (dtype != Dtype::float32 && dtype != Dtype::float64) {
        throw UsageError("a stencil computes in float32 or float64, not in " + std::string(name_of(dtype)));
    }
    if (options.planes < 1 || from.logical_rows() % options.planes != 0) {
        throw UsageError(from.name + ": its " + std::to_string(from.logical_rows()) + " rows are not " +
                         std::to_string(options.planes) + " planes of the same height");
    }
    if (options.steps < 0 || options.depth < 0 || options.snapshot_every < 0 || options.check_every < 1) {
        throw UsageError(
            "steps, depth and snapshots must not be negative, and checks must be at least one sweep apart");
    }
}

bool is_streamed(const Options& options) { return options.tile_rows > 0 || options.tile_columns > 0; }

void check_options(const Context& context, const Options& options, std::size_t snapshots) {
    if (options.grid.size() != context.comm.size()) {
        throw UsageError("the grid has " + std::to_string(options.grid.size()) + " places for " +
                         std::to_string(context.comm.size()) + " ranks");
    }
    if (!is_streamed(options)) {
        check_exchange(options.exchange, options.halo, context.comm.size());
    }
    if (options.repeat < 1 || options.warmup < 0) {
        throw UsageError("sweeps need at least one repetition and no negative warm-up, not " +
                         std::to_string(options.repeat) + " times after " + std::to_string(options.warmup));
    }
    if (!options.checkpoints.folder.empty() && (options.planes > 1 || options.repeat > 1 || options.warmup > 0)) {
        throw UsageError("checkpoints are of one plane, swept once");
    }
    const std::int64_t due =
        options.snapshot_every > 0 ? std::max<std::int64_t>(0, options.steps - 1) / options.snapshot_every : 0;
    if (static_cast<std::int64_t>(snapshots) != due) {
        throw UsageError(std::to_string(due) + " snapshots are due and " + std::to_string(snapshots) +
                         " files were given");
    }
}

class SweptInMemory {
public:
    SweptInMemory(Context& context, const io::Region& from, const io::Region& to,
                  const std::vector<io::Region>& snapshots, Dtype dtype, const Options& options)
        : context_(context),
          options_(options),
          planes_(from, options.planes),
          layout_(planes_.rows, planes_.columns, options.grid, options.remainder, planes_.transposed, options.order) {
        const Timed timed(context.ledger, Phase::exchange, "prepare");
        const kernel::Weights weights = planes_.transposed ? transposed(options.weights) : options.weights;
        evolution_.emplace(context, options, weights, layout_, dtype);
        const Timed opening(context.ledger, Phase::input, "open");
        fields().touch(context.threads);
        source_.emplace(context, from, layout_, planes_, options);
        const Timed reserving(context.ledger, Phase::output, "reserve");
        for (const io::Region& region : snapshots) {
            snapshots_.push_back(std::make_unique<Sink>(context, region, planes_, options.write, options.hints));
        }
        output_.emplace(context, to, planes_, options.write, options.hints);
        checkpoints_ = io::make_checkpoints(context, options.checkpoints);
        if (checkpoints_ && checkpoints_->found() != nullptr) {
            state_.emplace(context, checkpoints_->slot(checkpoints_->found()->slot), layout_,
                           Planes(checkpoints_->slot(0), 1), options);
        }
    }

    Outcome operator()() {
        outcome_.depth = evolution_->depth();
        outcome_.working = layout_.block(context_.comm.rank()).size() > 0;
        outcome_.samples.resize(static_cast<std::size_t>(options_.repeat));
        outcome_.fields = evolution_->fields();
        if (checkpoints_) {
            outcome_.restored = checkpoints_->restored();
        }
        std::int64_t input_non_finite = 0;
        Tally written;
        for (std::int64_t plane = 0; plane < planes_.count; ++plane) {
            {
                const Timed timed(context_.ledger, Phase::input, "input");
                begin().read(context_, plane, fields());
            }
            std::int64_t found = 0;
            const State state = sweep(plane, found);
            input_non_finite += found;
            book(state);
            if (state.diverged > 0) {
                outcome_.result.non_finite = state.diverged;
                outcome_.verification = {.method = "convergence",
                                         .passed = false,
                                         .error = state.change.value_or(0),
                                         .tolerance = options_.until_change};
                break;
            }
            write_plane(plane, state, written);
        }
        if (!outcome_.verification) {
            finish_files();
            outcome_.result = over_ranks(written);
        }
        outcome_.input_non_finite = over_ranks({.non_finite = input_non_finite}).non_finite;
        outcome_.model_bytes = mpi::sum_of(context_.comm, outcome_.model_bytes);
        return std::move(outcome_);
    }

private:
    const Fields& fields() const { return *evolution_->fields(); }

    /// Where the first state comes from: the input, or what an earlier start has left, after `begun()` sweeps.
    Source& begin() { return state_ ? *state_ : *source_; }
    std::int64_t begun() const { return state_ ? checkpoints_->found()->version : 0; }

    Tally over_ranks(const Tally& mine) const {
        std::array<std::int64_t, 2> counts{mine.non_finite, mine.held};
        mpi::check(MPI_Allreduce(MPI_IN_PLACE, counts.data(), 2, MPI_INT64_T, MPI_SUM, context_.comm.get()),
                   "MPI_Allreduce");
        return {counts[0], counts[1]};
    }

    /// All rounds of a plane, each from the input's state, of whose numbers `found` are not finite on this rank.
    State sweep(std::int64_t plane, std::int64_t& found) {
        State state;
        const std::int64_t rounds = options_.warmup + options_.repeat;
        const double share = 1.0 / static_cast<double>(planes_.count * rounds);
        std::int64_t passed = plane * rounds;
        const std::vector<Sample> samples = mpi::repeat(
            context_, options_.warmup, options_.repeat,
            [&](bool last) {
                const auto snapshot = [&](std::int64_t sweeps, int field) {
                    if (last) {
                        write_snapshot(sweeps / options_.snapshot_every - 1, plane, field);
                    }
                };
                const auto between = [&](std::int64_t sweeps, int field) {
                    if (checkpoints_) {
                        checkpoint(sweeps, field, found);
                    }
                };
                state = evolution_->run(begun(), snapshot, between, share * static_cast<double>(passed++), share);
            },
            [&](bool first) {
                if (!first) {
                    context_.comm.barrier();  // a neighbour may still read this field's cells, where it is shared
                }
                const Timed timed(context_.ledger, Phase::input, Step::convert, "fill");
                mpi::together(context_.comm, [&] { found = begin().fill(context_, fields()); });
                if (state_) {  // this start has not seen the input: what it was is known, and counted once
                    found =
                        context_.comm.rank() == 0 ? static_cast<std::int64_t>(checkpoints_->found()->facts.at(0)) : 0;
                }
            });
        for (std::size_t round = 0; round < samples.size(); ++round) {
            Sample& sample = outcome_.samples[round];
            sample.compute += samples[round].compute;
            sample.exchange += samples[round].exchange;
            sample.both += samples[round].both;
        }
        return state;
    }

    /// Keeps the state where it is time for one; `found` numbers of this rank's part of the input were not finite.
    void checkpoint(std::int64_t sweeps, int field, std::int64_t found) {
        const io::Checkpoints::Wish wish = checkpoints_->wish(context_);
        if (wish == io::Checkpoints::Wish::none) {
            return;
        }
        const Timed timed(context_.ledger, Phase::output, "checkpoint");
        const io::Region& slot = checkpoints_->slot(checkpoints_->next());
        Sink sink(context_, slot, Planes(slot, 1), of_states(options_.write), options_.hints);
        write_to(sink, 0, field);
        sink.finish(context_, false);
        const std::int64_t all = over_ranks({.non_finite = found}).non_finite;
        mpi::together(context_.comm, [&] {  // the numbers are staged in the other field, as they lie in the file
            checkpoints_->wrote(sweeps, layout_.block(context_.comm.rank()), fields()[1 - field]);
        });
        checkpoints_->complete(context_, sweeps, {static_cast<double>(all)});
        if (wish == io::Checkpoints::Wish::save_and_stop) {
            mpi::throw_agreed(context_.comm, io::stopped());
        }
    }

    Tally write_to(Sink& sink, std::int64_t plane, int field) {
        return sink.write(
            context_, plane, [&](int rank) { return layout_.block(rank); }, fields(), field,
            own_cells(layout_, context_.comm.rank()), staging_);
    }

    void write_snapshot(std::int64_t index, std::int64_t plane, int field) {
        const Timed timed(context_.ledger, Phase::output, "snapshot");
        Sink& snapshot = *snapshots_[static_cast<std::size_t>(index)];
        write_to(snapshot, plane, field);
        if (plane + 1 < planes_.count) {
            return;  // the planes behind it are still to come
        }
        snapshot.finish(context_, options_.sync);
        outcome_.snapshots.push_back((index + 1) * options_.snapshot_every);
        if (options_.snapshot_done && context_.comm.rank() == 0) {
            options_.snapshot_done(index);
        }
    }

    void book(const State& state) {
        outcome_.sweeps.push_back(state.sweeps);
        const auto points = static_cast<double>(planes_.points());
        outcome_.point_sweeps += points * static_cast<double>(state.sweeps - begun());
        outcome_.model_bytes += static_cast<double>(state.moved);
        if (state.change) {
            outcome_.last_change = std::max(outcome_.last_change.value_or(0), *state.change);
        }
    }

    void write_plane(std::int64_t plane, const State& state, Tally& written) {
        const Timed timed(context_.ledger, Phase::output, "output");
        // A plane that has come to rest stays as it is, while others go on: how far those behind it go, it does not
        // know.
        const std::int64_t shown =
            plane + 1 == planes_.count ? snapshots_within(most_sweeps()) : std::ssize(snapshots_);
        for (std::int64_t index = snapshots_within(state.sweeps); index < shown; ++index) {
            write_snapshot(index, plane, state.field);
        }
        written += write_to(*output_, plane, state.field);
    }

    void finish_files() {
        const Timed timed(context_.ledger, Phase::output, "output");
        output_->finish(context_, options_.sync);
    }

    std::int64_t most_sweeps() const { return *std::max_element(outcome_.sweeps.begin(), outcome_.sweeps.end()); }

    /// Snapshots that are due within so many sweeps.
    std::int64_t snapshots_within(std::int64_t sweeps) const {
        return options_.snapshot_every > 0 ? std::min(sweeps / options_.snapshot_every, std::ssize(snapshots_)) : 0;
    }

    Context& context_;
    const Options& options_;
    Planes planes_;
    Layout layout_;
    std::optional<Evolution> evolution_;
    std::optional<Source> source_, state_;
    std::optional<Sink> output_;
    std::vector<std::unique_ptr<Sink>> snapshots_;
    std::unique_ptr<io::Checkpoints> checkpoints_;
    Staging staging_;
    Outcome outcome_;
};

Outcome run(Context& context, const io::Region& from, const io::Region& to, const std::vector<io::Region>& snapshots,
            Dtype dtype, const Options& options) {
    const bool streamed = is_streamed(options);
    Outcome outcome = streamed ? stencil_streamed(context, from, to, snapshots, dtype, options)
                               : SweptInMemory(context, from, to, snapshots, dtype, options)();
    if (outcome.verification) {  // it did not settle, and nothing is to be kept
        return outcome;
    }
    io::corrupt_for_test(context, to);
    if (options.verify != Verify::off) {
        const Planes planes(from, options.planes);
        const Layout layout(planes.rows, planes.columns, options.grid, options.remainder, planes.transposed);
        const Seams seams =
            streamed ? seams_of_tiles(from, options, context.comm.size()) : Seams{layout.rows(), layout.columns()};
        outcome.verification = verify(context, from, to, dtype, options, outcome.sweeps, seams);
    }
    return outcome;
}

}  // namespace

bool has_corners(const kernel::Weights& weights) {
    const int side = 2 * weights.radius + 1;
    for (int row = 0; row < side; ++row) {
        for (int column = 0; column < side; ++column) {
            if (row != weights.radius && column != weights.radius &&
                weights.values[static_cast<std::size_t>(row * side + column)] != 0) {
                return true;
            }
        }
    }
    return false;
}

double plain_flops_per_point(const kernel::Weights& weights) {
    const int side = 2 * weights.radius + 1;
    return 2.0 * (has_corners(weights) ? side * side : 2 * side - 1) - 1;
}

kernel::Weights transposed(const kernel::Weights& weights) {
    const std::size_t side = 2 * static_cast<std::size_t>(weights.radius) + 1;
    kernel::Weights transposed = weights;
    for (std::size_t row = 0; row < side; ++row) {
        for (std::size_t column = 0; column < side; ++column) {
            transposed.values[column * side + row] = weights.values[row * side + column];
        }
    }
    return transposed;
}

void check_state(const io::Region& state, const Planes& planes, Dtype dtype) {
    const Planes plane(state, 1);
    if (state.dtype != dtype || plane.rows != planes.rows || plane.columns != planes.columns ||
        plane.transposed != planes.transposed || !state.is_one_file() || state.swap_bytes) {
        throw UsageError(state.name + ": the file for states has another shape, type or order than a plane");
    }
}

Outcome stencil(Context& context, const io::Region& from, const io::Region& to,
                const std::vector<io::Region>& snapshots, Dtype dtype, const Options& options) {
    mpi::together(context.comm, [&] {
        check_shapes(from, to, dtype, options);
        for (const io::Region& region : snapshots) {
            check_shapes(from, region, dtype, options);
        }
        check_options(context, options, snapshots.size());
        for (const io::Region& slot : options.checkpoints.slots) {
            check_state(slot, Planes(from, options.planes), dtype);
        }
        kernel::Sweeper(options.weights, options.boundary, dtype, options.plain);  // says what is wrong with weights
    });
    return mpi::no_return(context.comm, [&] { return run(context, from, to, snapshots, dtype, options); });
}

}  // namespace tilewise::stencil
