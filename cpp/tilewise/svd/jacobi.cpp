// The road of `jacobi`: read, start, sweep, finish, write; from start to finish as often as is asked for.
#include "tilewise/svd/jacobi.hpp"

#include <algorithm>
#include <array>
#include <sstream>

#include "tilewise/mpi/together.hpp"
#include "tilewise/svd/finish.hpp"
#include "tilewise/svd/rounds.hpp"
#include "tilewise/svd/sweeps.hpp"

namespace tilewise::svd {
namespace {

using mpi::check;

/// One pair a rank, as wide as can be; three where blocks are to fly while something is computed.
int usual_blocks(const Options& options, int ranks) {
    return (exchange_named(options.exchange) == ExchangeKind::overlap ? 6 : 2) * ranks;
}

/// The ring's blocks, and which columns each has.
struct Cut {
    Cut(const Work& work, const Options& options, int blocks, int ranks)
        : ring(blocks > 0 ? blocks : usual_blocks(options, ranks), ranks),
          columns(work.n, ring.blocks(), options.remainder) {}

    grid::Range columns_of(int rank) const {
        const grid::Range blocks = ring.first_blocks_of(rank);
        return {columns[static_cast<int>(blocks.begin)].begin, columns[static_cast<int>(blocks.end)].begin};
    }

    grid::Ring ring;
    grid::Partition columns;
};

class Jacobi {
public:
    Jacobi(Context& context, const io::Region& a, const Files& files, Dtype dtype, const Options& options)
        : context_(context),
          options_(options),
          dtype_(dtype),
          work_(a),
          of_eigen_(work_, options, options.blocks, context.comm.size()),
          of_qr_(work_, options, options.qr_blocks > 0 ? options.qr_blocks : options.blocks, context.comm.size()),
          components_(options.components > 0 ? options.components : work_.n),
          leader_(context),
          source_(context, work_, options.read, options.hints),
          writer_(reserve(files)) {}

    Outcome operator()(const io::Region& a) {
        {
            const Timed timed(context_.ledger, Phase::input, "input");
            source_.read(context_, by_rows_first(work_, context_.comm.size()) ? Dealt::rows : Dealt::stored, a);
        }
        Found found;
        outcome_.samples = run_rounds(context_, options_.warmup, options_.repeat, [&](bool last) {
            const Timed timed(context_.ledger, Phase::compute, "");
            found = {};
            found = run_once(last);
        });
        source_.release();
        describe(found);
        refuse_overflow(context_, a, outcome_.shown.sigma_max, dtype_);
        if (!outcome_.shown.converged) {
            say_not_converged();
        }
        if (outcome_.shown.converged || !options_.require_converged) {
            write(found);
        }
        return std::move(outcome_);
    }

private:
    Writer reserve(const Files& files) {
        const Timed timed(context_.ledger, Phase::output, "reserve");
        return {context_, files, options_};
    }

    const Cut& cut_after(bool eigen) const { return eigen ? of_eigen_ : of_qr_; }

    Found run_once(bool last) {
        const bool eigen = options_.start != "qr" && options_.inner != "rotations";
        Start begun = start(
            context_, leader_, source_, work_, eigen, !options_.values_only,
            [this](int rank, bool by_eigen) { return cut_after(by_eigen).columns_of(rank); }, !last);
        cut_ = &cut_after(begun.eigen);
        const auto columns = [this](int rank) { return cut_->columns_of(rank); };
        const Shape shape{begun.x_rows, begun.v_rows};
        std::optional<Blocks> blocks;
        std::unique_ptr<Exchange> exchange;
        mpi::together(context_.comm, [&] {
            blocks.emplace(cut_->ring, cut_->columns, shape, context_.comm.rank());
            blocks->fill(std::move(begun.x), std::move(begun.v));
        });
        {
            const Timed timed(context_.ledger, Phase::exchange, "prepare");
            exchange =
                make_exchange(exchange_named(options_.exchange), context_, cut_->columns.largest() * shape.height());
        }
        SweepSetting setting{exchange_named(options_.exchange),
                             options_.inner == "rotations" ? kernel::Inner::rotations : kernel::Inner::blocks,
                             options_.tolerance, options_.max_sweeps};
        if (setting.tolerance <= 0) {
            setting.tolerance = kernel::jacobi_tolerance(shape.rows, setting.inner);
        }
        tolerance_ = setting.tolerance;
        const Swept swept =
            mpi::no_return(context_.comm, [&] { return sweep(context_, cut_->ring, *blocks, *exchange, setting); });
        exchange.reset();
        if (last) {
            note(begun, swept);
        }
        return finish(context_, leader_, work_, *blocks, begun, columns, components_, options_.energy,
                      options_.values_only, source_.scale());
    }

    /// What the sweeps say, of all ranks.
    void note(const Start& begun, const Swept& swept) {
        Shown& shown = outcome_.shown;
        shown.sweeps = static_cast<int>(swept.off_norm.size());
        shown.off_norm = swept.off_norm;
        shown.converged = swept.converged;
        shown.start_used = begun.eigen ? "eigen" : "qr";
        shown.start = begun.steps;
        shown.fallback = begun.fallback;
        std::array<std::int64_t, 7> sums{swept.tally.small_angles, swept.tally.eigen,   swept.tally.cholesky,
                                         swept.tally.rotations,    swept.tally.skipped, swept.sweep_messages,
                                         swept.sweep_bytes};
        check(MPI_Allreduce(MPI_IN_PLACE, sums.data(), static_cast<int>(sums.size()), MPI_INT64_T, MPI_SUM,
                            context_.comm.get()),
              "MPI_Allreduce");
        shown.inner_solves = {sums[0], sums[1], sums[2], sums[3], sums[4]};
        shown.sweep_messages = sums[5];
        shown.sweep_bytes = sums[6];
        check(MPI_Allreduce(&swept.flops, &outcome_.flops, 1, MPI_DOUBLE, MPI_SUM, context_.comm.get()),
              "MPI_Allreduce");
        outcome_.working = cut_->columns_of(context_.comm.rank()).size() > 0;
    }

    void describe(const Found& found) {
        Shown& shown = outcome_.shown;
        shown.components = std::ssize(found.s);
        say_left(shown, found.left, work_.n);
        shown.rank = found.rank;
        shown.sigma_max = found.s.front();
        shown.sigma_min = found.s.back();
        const grid::Partition& cut = cut_->columns;
        shown.narrowest = shown.widest = cut[0].size();
        for (int block = 1; block < cut.parts(); ++block) {
            shown.narrowest = std::min(shown.narrowest, cut[block].size());
            shown.widest = std::max(shown.widest, cut[block].size());
        }
        shown.reads = 1;
    }

    void say_not_converged() {
        const double off = outcome_.shown.off_norm.empty() ? 1.0 : outcome_.shown.off_norm.back();
        if (options_.require_converged) {
            outcome_.verification =
                Verification{.method = "convergence", .passed = false, .error = off, .tolerance = tolerance_};
            return;
        }
        std::ostringstream warning;
        warning.precision(2);
        warning << "after " << outcome_.shown.sweeps << " sweeps columns still have a cosine of " << off
                << " to each other: singular values and vectors are not accurate";
        outcome_.warnings.push_back(warning.str());
    }

    void write(Found& found) {
        const Timed timed(context_.ledger, Phase::output, "output");
        narrow(found.u.data(), found.u_share.size(), dtype_);
        narrow(found.vt.data(), found.vt_share.size(), dtype_);
        Part part{found.s, found.u.data(), found.u_share, found.vt.data(), found.vt_share};
        writer_.write(context_, part);
        writer_.finish(context_, options_.sync);
    }

    Context& context_;
    const Options& options_;
    Dtype dtype_;
    Work work_;
    Cut of_eigen_, of_qr_;  ///< as the sweeps find it after either start
    const Cut* cut_ = &of_eigen_;
    std::int64_t components_;
    double tolerance_ = 0;
    Leader leader_;
    Source source_;
    Writer writer_;
    Outcome outcome_;
};

}  // namespace

Outcome jacobi(Context& context, const io::Region& a, const Files& files, Dtype dtype, const Options& options) {
    return Jacobi(context, a, files, dtype, options)(a);
}

}  // namespace tilewise::svd
