// Checks what is asked, and takes plane after plane from the input's file through its sweeps to the output's.
#include "tilewise/stencil/stencil.hpp"

#include <algorithm>
#include <array>

#include "tilewise/io/spoil.hpp"
#include "tilewise/mpi/together.hpp"
#include "tilewise/stencil/evolution.hpp"
#include "tilewise/stencil/numbers.hpp"
#include "tilewise/stencil/proof.hpp"

namespace tilewise::stencil {
namespace {

void check_shapes(const io::Region& from, const io::Region& to, Dtype dtype, const Options& options) {
    if (from.wanted_rows() != to.wanted_rows() || from.wanted_columns() != to.wanted_columns()) {
        throw UsageError(from.name + " and " + to.name + " are of different shapes");
    }
    if (is_complex(from.dtype) || is_complex(to.dtype)) {
        throw UsageError(from.name + ": sweeps are for real numbers, not for " + std::string(name_of(from.dtype)));
    }
    if (dtype != Dtype::float32 && dtype != Dtype::float64) {
        throw UsageError("sweeps are computed in float32 or float64, not in " + std::string(name_of(dtype)));
    }
    if (options.planes < 1 || from.wanted_rows() % options.planes != 0) {
        throw UsageError(from.name + ": its " + std::to_string(from.wanted_rows()) + " rows are not " +
                         std::to_string(options.planes) + " planes of the same height");
    }
    if (options.steps < 0 || options.depth < 0 || options.snapshot_every < 0 || options.check_every < 1) {
        throw UsageError("steps, depth and snapshots count from 0, and checks from every sweep on");
    }
}

void check_options(const Context& context, const Options& options, std::size_t snapshots) {
    if (options.grid.size() != context.comm.size()) {
        throw UsageError("the grid has " + std::to_string(options.grid.size()) + " places for " +
                         std::to_string(context.comm.size()) + " ranks");
    }
    check_exchange(exchange_named(options.exchange), halo_named(options.halo), context.comm.size());
    if (options.repeat < 1 || options.warmup < 0) {
        throw UsageError("sweeps are repeated once or more, after no or more rounds to warm up, and not " +
                         std::to_string(options.repeat) + " times after " + std::to_string(options.warmup));
    }
    const std::int64_t due =
        options.snapshot_every > 0 ? std::max<std::int64_t>(0, options.steps - 1) / options.snapshot_every : 0;
    if (static_cast<std::int64_t>(snapshots) != due) {
        throw UsageError(std::to_string(due) + " snapshots are due and " + std::to_string(snapshots) +
                         " files were given for them");
    }
}

class Run {
public:
    Run(Context& context, const io::Region& from, const io::Region& to, const std::vector<io::Region>& snapshots,
        Dtype dtype, const Options& options)
        : context_(context),
          options_(options),
          planes_(from, options.planes),
          layout_(planes_.rows, planes_.columns, options.grid, options.remainder, planes_.transposed) {
        const Timed timed(context.ledger, Phase::exchange, "prepare");
        const kernel::Weights weights = planes_.transposed ? transposed(options.weights) : options.weights;
        evolution_.emplace(context, options, weights, layout_, dtype);
        const Timed opening(context.ledger, Phase::input, "open");
        fields().touch(context.threads);
        source_.emplace(context, from, layout_, planes_, options);
        const Timed reserving(context.ledger, Phase::output, "reserve");
        for (const io::Region& region : snapshots) {
            snapshots_.push_back(std::make_unique<Sink>(context, region, layout_, planes_, options));
        }
        output_.emplace(context, to, layout_, planes_, options);
    }

    Outcome operator()() {
        outcome_.depth = evolution_->depth();
        outcome_.working = layout_.block(context_.comm.rank()).size() > 0;
        outcome_.samples.resize(static_cast<std::size_t>(options_.repeat));
        outcome_.fields = evolution_->fields();
        std::int64_t non_finite = 0;
        for (std::int64_t plane = 0; plane < planes_.count; ++plane) {
            {
                const Timed timed(context_.ledger, Phase::input, "input");
                source_->read(context_, plane, fields());
            }
            State state;
            for (int round = -options_.warmup; round < options_.repeat; ++round) {
                const std::int64_t found = fill(round == -options_.warmup);
                non_finite += round == -options_.warmup ? found : 0;
                state = run_once(round, plane);
            }
            finish_plane(plane, state);
        }
        finish_files();
        mpi::check(MPI_Allreduce(&non_finite, &outcome_.non_finite, 1, MPI_INT64_T, MPI_SUM, context_.comm.get()),
                   "MPI_Allreduce");
        return std::move(outcome_);
    }

private:
    const Fields& fields() const { return *evolution_->fields(); }

    /// Brings the input's state into the first field; again for every repetition, which the books then know nothing of.
    std::int64_t fill(bool first) {
        if (!first) {
            context_.comm.barrier();  // a neighbour may still read this field's cells, where it is shared
        }
        const double before = context_.ledger.settled(Phase::input);
        std::int64_t found = 0;
        {
            const Timed timed(context_.ledger, Phase::input, first ? Step::convert : Step::none, "fill");
            mpi::together(context_.comm, [&] { found = source_->fill(context_, fields()); });
        }
        if (!first) {
            context_.ledger.forget(Phase::input, context_.ledger.settled(Phase::input) - before);
        }
        return found;
    }

    State run_once(int round, std::int64_t plane) {
        Ledger& ledger = context_.ledger;
        const bool last = round + 1 == options_.repeat;
        context_.comm.barrier();
        const Counters counted = ledger.count();
        const std::array before{ledger.settled(Phase::compute), ledger.settled(Phase::exchange)};
        const std::int64_t rounds = options_.warmup + options_.repeat,
                           passed = plane * rounds + options_.warmup + round;
        const double share = 1.0 / static_cast<double>(planes_.count * rounds);
        const auto snapshot = [&](std::int64_t sweeps, int which) {
            if (last) {
                write_snapshot(sweeps / options_.snapshot_every - 1, plane, which);
            }
        };
        const State state = evolution_->run(snapshot, share * static_cast<double>(passed), share);
        std::array took{ledger.settled(Phase::compute) - before[0], ledger.settled(Phase::exchange) - before[1], 0.0};
        took[2] = took[0] + took[1];
        if (!last) {
            ledger.forget(Phase::compute, took[0]);
            ledger.forget(Phase::exchange, took[1]);
            ledger.count() = counted;
        }
        if (round >= 0) {
            std::array<double, 3> most{};
            mpi::check(MPI_Allreduce(took.data(), most.data(), 3, MPI_DOUBLE, MPI_MAX, context_.comm.get()),
                       "MPI_Allreduce");
            Sample& sample = outcome_.samples[static_cast<std::size_t>(round)];
            sample.compute += most[0];
            sample.exchange += most[1];
            sample.both += most[2];
        }
        return state;
    }

    void write_snapshot(std::int64_t index, std::int64_t plane, int which) {
        const Timed timed(context_.ledger, Phase::output, "snapshot");
        snapshots_[static_cast<std::size_t>(index)]->write(context_, plane, fields(), which, staging_);
    }

    void finish_plane(std::int64_t plane, const State& state) {
        const Timed timed(context_.ledger, Phase::output, "output");
        outcome_.sweeps.push_back(state.sweeps);
        // A plane that has come to rest stays as it is, while others go on: how far those behind it go, it does not know.
        const std::int64_t shown =
            plane + 1 == planes_.count ? snapshots_within(most_sweeps()) : std::ssize(snapshots_);
        for (std::int64_t index = snapshots_within(state.sweeps); index < shown; ++index) {
            write_snapshot(index, plane, state.which);
        }
        output_->write(context_, plane, fields(), state.which, staging_);
        const auto points = static_cast<double>(planes_.points());
        outcome_.point_sweeps += points * static_cast<double>(state.sweeps);
        outcome_.model_bytes += 2 * points * static_cast<double>(fields().item() * state.passes);
        if (state.change) {
            outcome_.last_change = std::max(outcome_.last_change.value_or(0), *state.change);
        }
    }

    void finish_files() {
        const Timed timed(context_.ledger, Phase::output, "output");
        output_->finish(context_, options_.sync);
        for (std::int64_t index = 0; index < snapshots_within(most_sweeps());
             ++index) {  // the others are not all there
            snapshots_[static_cast<std::size_t>(index)]->finish(context_, options_.sync);
            outcome_.snapshots.push_back((index + 1) * options_.snapshot_every);
        }
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
    std::optional<Source> source_;
    std::optional<Sink> output_;
    std::vector<std::unique_ptr<Sink>> snapshots_;
    Staging staging_;
    Outcome outcome_;
};

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
    kernel::Weights turned = weights;
    for (std::size_t row = 0; row < side; ++row) {
        for (std::size_t column = 0; column < side; ++column) {
            turned.values[column * side + row] = weights.values[row * side + column];
        }
    }
    return turned;
}

Outcome stencil(Context& context, const io::Region& from, const io::Region& to,
                const std::vector<io::Region>& snapshots, Dtype dtype, const Options& options) {
    mpi::together(context.comm, [&] {
        check_shapes(from, to, dtype, options);
        for (const io::Region& region : snapshots) {
            check_shapes(from, region, dtype, options);
        }
        check_options(context, options, snapshots.size());
        kernel::Sweeper(options.weights, options.boundary, dtype, options.plain);  // says what is wrong with weights
    });
    Outcome outcome = Run(context, from, to, snapshots, dtype, options)();
    if (options.tamper) {
        io::spoil_last_number(context, to);
    }
    if (options.verify != Verify::off) {
        outcome.verification = verify(context, from, to, dtype, options, outcome.sweeps);
    }
    return outcome;
}

}  // namespace tilewise::stencil
