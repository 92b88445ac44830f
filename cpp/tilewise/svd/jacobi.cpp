// The road of `jacobi`: read, start, sweep, finish, write; from start to finish as often as is asked for.
#include "tilewise/svd/jacobi.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <sstream>

#include "tilewise/mpi/repeat.hpp"
#include "tilewise/mpi/together.hpp"
#include "tilewise/svd/finish.hpp"
#include "tilewise/svd/kept.hpp"
#include "tilewise/svd/sweeps.hpp"

namespace tilewise::svd {
namespace {

using mpi::check;

/// One pair a rank, as wide as can be; three where blocks are to fly while something is computed.
int usual_blocks(const Options& options, int ranks) {
    return (options.exchange == ExchangeKind::overlap ? 6 : 2) * ranks;
}

/// The ring's blocks, and which columns each has.
struct RingCut {
    RingCut(const Work& work, const Options& options, int blocks, int ranks)
        : ring(blocks > 0 ? blocks : usual_blocks(options, ranks), ranks),
          columns(work.n, ring.blocks(), options.remainder) {}

    grid::Range columns_of(int rank) const {
        const grid::Range blocks = ring.first_blocks_of(rank);
        return {columns[static_cast<int>(blocks.begin)].begin, columns[static_cast<int>(blocks.end)].begin};
    }

    grid::Ring ring;
    grid::Partition columns;
};

template <class T> class Jacobi {
public:
    Jacobi(Context& context, const io::Region& a, const Files& files, Dtype dtype, const Options& options)
        : context_(context),
          options_(options),
          dtype_(dtype),
          work_(a),
          of_eigen_(work_, options, options.blocks, context.comm.size()),
          of_qr_(work_, options, options.qr_blocks > 0 ? options.qr_blocks : options.blocks, context.comm.size()),
          components_(options.components > 0 ? options.components : work_.n),
          root_task_(context),
          team_(context, root_task_),
          source_(context, work_, options.read, options.hints),
          writer_(reserve(files)) {}

    Outcome operator()(const io::Region& a) {
        {
            const Timed timed(context_.ledger, Phase::input, "input");
            const bool rows = by_rows_first(work_, context_.comm.size(), kind());
            source_.read(context_, rows ? ReadLayout::rows : ReadLayout::stored, a);
        }
        SvdFactors<T> factors;
        outcome_.samples = mpi::repeat(context_, options_.warmup, options_.repeat, [&](bool last) {
            {
                const Timed timed(context_.ledger, Phase::compute, "");
                factors = {};
                factors = run_once(last);
            }
            const Timed timed(context_.ledger, Phase::exchange, "");  // a round ends with its last rank
            context_.comm.barrier();
        });
        source_.release();
        describe(factors);
        refuse_overflow(context_, a, outcome_.diagnostics.sigma_max, dtype_);
        if (!outcome_.diagnostics.converged) {
            say_not_converged();
        }
        if (outcome_.diagnostics.converged || !options_.require_converged) {
            write(factors);
        }
        return std::move(outcome_);
    }

private:
    Writer reserve(const Files& files) {
        const Timed timed(context_.ledger, Phase::output, "reserve");
        return {context_, files, options_};
    }

    /// Rotations take so many sweeps that eigenvectors would hardly spare any.
    StartKind kind() const {
        if (options_.algorithm == AlgorithmKind::serial) {
            return StartKind::none;
        }
        const bool refused = options_.start == StartKind::eigen && options_.inner == kernel::Inner::rotations;
        return refused ? StartKind::qr : options_.start;
    }

    const RingCut& cut_after(bool qr) const { return qr ? of_qr_ : of_eigen_; }

    SvdFactors<T> run_once(bool last) {
        Start<T> begun = start(
            context_, team_, source_, work_, kind(), options_.share_eigen, !options_.values_only,
            [this](int rank, bool by_eigen) { return cut_after(!by_eigen).columns_of(rank); }, !last);
        const bool by_qr = begun.used == StartKind::qr;
        cut_ = &cut_after(by_qr);
        const auto columns = [this](int rank) { return cut_->columns_of(rank); };
        const Shape shape{by_qr ? work_.n : begun.sweeps.factors.rows, options_.values_only ? 0 : work_.n};
        std::optional<Blocks<T>> blocks;
        std::unique_ptr<mpi::Exchange> exchange;
        mpi::together(context_.comm, [&] {
            blocks.emplace(cut_->ring, cut_->columns, shape, context_.comm.rank());
            blocks->fill(std::move(begun.sweeps.x), std::move(begun.sweeps.v));
        });
        {
            const Timed timed(context_.ledger, Phase::exchange, "prepare");
            exchange = make_exchange(options_.exchange, context_,
                                     kernel::parts_of<T> * cut_->columns.largest() * shape.height());
        }
        const bool serial = options_.algorithm == AlgorithmKind::serial;
        SweepSetting setting{options_.exchange, serial ? kernel::Inner::rotations : options_.inner, options_.tolerance,
                             options_.off_squares / squares_scale(begun), options_.max_sweeps};
        if (setting.tolerance <= 0) {
            setting.tolerance = kernel::jacobi_tolerance(shape.rows, setting.inner);
        }
        tolerance_ = setting.tolerance;
        std::optional<Kept<T>> kept;
        if (!options_.checkpoints.folder.empty()) {
            kept.emplace(context_, options_.checkpoints, work_.n, shape.height());
            setting.before = kept->restore(*blocks);
            setting.between = [&](const Found& found) { kept->look(found, *blocks); };
            outcome_.restored = kept->restored();
            if (kept->differs()) {
                outcome_.warnings.emplace_back(
                    "the sweeps began anew: on these ranks and threads their start is rounded otherwise");
            }
        }
        const Swept swept =
            serial ? sweep_serially(*blocks, setting) : sweep(context_, cut_->ring, *blocks, *exchange, setting);
        exchange.reset();
        if (last) {
            note(begun, swept);
        }
        return finish(context_, team_, work_, *blocks, begun, columns, components_, options_.energy,
                      options_.values_only, source_.scale());
    }

    /// off(AᵀA) over off(XᵀX).
    double squares_scale(const Start<T>& begun) const {
        return std::pow(begun.sweeps.factors.scale / source_.scale(), 4);
    }

    /// What the sweeps say, of all ranks.
    void note(const Start<T>& begun, const Swept& swept) {
        Diagnostics& diagnostics = outcome_.diagnostics;
        diagnostics.sweeps = static_cast<int>(swept.off_norm.size());
        diagnostics.off_norm = swept.off_norm;
        diagnostics.off_squares = swept.off_squares;
        for (double& squares : diagnostics.off_squares) {
            squares *= squares_scale(begun);
        }
        diagnostics.converged = swept.converged;
        diagnostics.start_used = start_names.at(static_cast<std::size_t>(begun.used));
        diagnostics.start = begun.sweeps.steps;
        diagnostics.fallback = begun.sweeps.fallback;
        std::array<std::int64_t, 7> sums{swept.tally.small_angles, swept.tally.eigen,   swept.tally.cholesky,
                                         swept.tally.rotations,    swept.tally.skipped, swept.sweep_messages,
                                         swept.sweep_bytes};
        check(MPI_Allreduce(MPI_IN_PLACE, sums.data(), static_cast<int>(sums.size()), MPI_INT64_T, MPI_SUM,
                            context_.comm.get()),
              "MPI_Allreduce");
        diagnostics.inner_solves = {sums[0], sums[1], sums[2], sums[3], sums[4]};
        diagnostics.sweep_messages = sums[5];
        diagnostics.sweep_bytes = sums[6];
        check(MPI_Allreduce(&swept.flops, &outcome_.flops, 1, MPI_DOUBLE, MPI_SUM, context_.comm.get()),
              "MPI_Allreduce");
        outcome_.working = cut_->columns_of(context_.comm.rank()).size() > 0;
    }

    void describe(const SvdFactors<T>& factors) {
        Diagnostics& diagnostics = outcome_.diagnostics;
        diagnostics.components = std::ssize(factors.s);
        say_left(diagnostics, factors.left, work_.n);
        diagnostics.rank = factors.rank;
        diagnostics.sigma_max = factors.s.front();
        diagnostics.sigma_min = factors.s.back();
        const grid::Partition& cut = cut_->columns;
        diagnostics.narrowest = diagnostics.widest = cut[0].size();
        for (int block = 1; block < cut.parts(); ++block) {
            diagnostics.narrowest = std::min(diagnostics.narrowest, cut[block].size());
            diagnostics.widest = std::max(diagnostics.widest, cut[block].size());
        }
        diagnostics.reads = 1;
    }

    void say_not_converged() {
        const double off = outcome_.diagnostics.off_norm.empty() ? 1.0 : outcome_.diagnostics.off_norm.back();
        if (options_.require_converged) {
            outcome_.verification =
                Verification{.method = "convergence", .passed = false, .error = off, .tolerance = tolerance_};
            return;
        }
        std::ostringstream warning;
        warning.precision(2);
        warning << "after " << outcome_.diagnostics.sweeps << " sweeps two columns still have a cosine of " << off
                << ": singular values and vectors are not accurate";
        outcome_.warnings.push_back(warning.str());
    }

    void write(SvdFactors<T>& factors) {
        const Timed timed(context_.ledger, Phase::output, "output");
        narrow(factors.u.raw(), factors.u_share.size(), dtype_);
        narrow(factors.vt.raw(), factors.vt_share.size(), dtype_);
        Part part{factors.s, factors.u.raw(), factors.u_share, factors.vt.raw(), factors.vt_share};
        writer_.write(context_, part);
        writer_.finish(context_, options_.sync);
    }

    Context& context_;
    const Options& options_;
    Dtype dtype_;
    Work work_;
    RingCut of_eigen_, of_qr_;  ///< as the sweeps find it after either start
    const RingCut* cut_ = &of_eigen_;
    std::int64_t components_;
    double tolerance_ = 0;
    dist::RootTask root_task_;
    dist::RankTeam team_;
    Source<T> source_;
    Writer writer_;
    Outcome outcome_;
};

}  // namespace

Outcome jacobi(Context& context, const io::Region& a, const Files& files, Dtype dtype, const Options& options) {
    return is_complex(a.dtype) ? Jacobi<kernel::Complex>(context, a, files, dtype, options)(a)
                               : Jacobi<double>(context, a, files, dtype, options)(a);
}

}  // namespace tilewise::svd
