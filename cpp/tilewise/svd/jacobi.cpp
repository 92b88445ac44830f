// `jacobi`: one-sided block Jacobi over all ranks, of a matrix that fits in memory, as those of `serial`, `local` and
// `two_stage` do: read, precondition, sweep, transform back, write; from the second to the fourth as often as is asked
// for. `serial` is the same on one rank, by `sweep_serially`, from the columns of A.
//
// `flops` counts the products of the sweeps (see Swept); what precedes and follows them is not in it. Memory: see
// jacobi.hpp; the input is kept as well where repetitions follow.
#include "tilewise/svd/jacobi.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <sstream>
#include <utility>

#include "tilewise/io/file.hpp"
#include "tilewise/io/journal.hpp"
#include "tilewise/kernel/codec/checksum.hpp"
#include "tilewise/mpi/repeat.hpp"
#include "tilewise/mpi/sum.hpp"
#include "tilewise/mpi/together.hpp"
#include "tilewise/svd/result.hpp"

namespace tilewise::svd {
namespace {

/// The files hold as many numbers as there are, in rows that may have been planned longer.
io::CheckpointOptions of_height(io::CheckpointOptions options, std::int64_t columns, std::int64_t height) {
    for (io::Region& slot : options.slots) {
        if (slot.rows != columns || slot.columns < height) {
            throw UsageError(slot.name + ": has no room for " + std::to_string(columns) + " columns of " +
                             std::to_string(height) + " numbers");
        }
        slot.columns = height;
    }
    return options;
}

template <class T> std::size_t bytes_of(const ColumnBlock<T>& block, std::int64_t height) {
    return static_cast<std::size_t>(block.columns.size() * height) * sizeof(T);
}

template <class T> std::int64_t offset_of(const io::Region& slot, const ColumnBlock<T>& block, std::int64_t height) {
    return slot.offset + block.columns.begin * height * static_cast<std::int64_t>(sizeof(T));
}

constexpr int half = 32;  // bits of a checksum that a number holds exactly

// Blocks in the midst of the sweeps, kept in files for another start of the job.
//
//     a row of the file for each column      block   [ X: rows × width | V: v_rows × width ]
//                                                    as it lies in memory, at the rows of its columns
//
// Another start factors and rotates A as the first did, and then takes the blocks for those that it was to sweep. That
// holds only if it has got the same ones, bit by bit, as it does on the same ranks and threads: a checksum of them all
// is kept with the state.
template <class T> class SweepCheckpoint {
public:
    /// Of `columns` columns, each of `height` numbers. @note Collective; throws the same Error on every rank.
    SweepCheckpoint(Context& context, io::CheckpointOptions options, std::int64_t columns, std::int64_t height)
        : context_(context),
          height_(height),
          checkpoints_(context, of_height(std::move(options), columns, height)),
          restored_(checkpoints_.restored()) {}

    /// Makes `blocks`, which are about to be swept, what an earlier start has left; returns what its sweeps found.
    /// @note Collective.
    Found restore(ColumnBlocks<T>& blocks) {
        begun_ = fingerprint(blocks);
        const io::Saved* saved = checkpoints_.found();
        if (saved == nullptr) {
            return {};
        }
        const std::vector<double>& facts = saved->facts;
        const auto sweeps = static_cast<std::size_t>(saved->version);
        differs_ = facts.size() != 2 + 2 * sweeps ||
                   (static_cast<std::uint64_t>(facts[0]) << half | static_cast<std::uint64_t>(facts[1])) != begun_;
        if (differs_) {
            restored_.version.reset();
            return {};
        }
        mpi::together(context_.comm, [&] {
            const Timed timed(context_.ledger, Phase::input, Step::file, "checkpoint");
            const io::Region& slot = checkpoints_.slot(saved->slot);
            const io::PosixFile file(slot.path, slot.name, io::PosixFile::Mode::read);
            for (const ColumnBlock<T>& block : blocks.all()) {
                const auto bytes = static_cast<std::int64_t>(bytes_of(block, height_));
                context_.ledger.count().io_calls +=
                    file.read(reinterpret_cast<std::byte*>(block.data()), bytes, offset_of(slot, block, height_));
                context_.ledger.count().read += bytes;
            }
        });
        const auto first = facts.begin() + 2, second = first + saved->version;
        return {{first, second}, {second, facts.end()}};
    }
    /// Keeps the blocks after a sweep, where it is time for that; ends the job where somebody asks for it.
    /// @note Collective.
    void look(const Found& found, ColumnBlocks<T>& blocks) {
        const io::Checkpoints::Wish wish = checkpoints_.wish(context_);
        if (wish == io::Checkpoints::Wish::none) {
            return;
        }
        const Timed timed(context_.ledger, Phase::output, Step::file, "checkpoint");
        const std::int64_t sweeps = std::ssize(found.off_norm);
        mpi::together(context_.comm, [&] {
            const io::Region& slot = checkpoints_.slot(checkpoints_.next());
            io::PosixFile file(slot.path, slot.name, io::PosixFile::Mode::write);
            for (const ColumnBlock<T>& block : blocks.all()) {
                const auto* data = reinterpret_cast<const std::byte*>(block.data());
                const auto bytes = static_cast<std::int64_t>(bytes_of(block, height_));
                context_.ledger.count().io_calls += file.write(data, bytes, offset_of(slot, block, height_));
                context_.ledger.count().written += bytes;
                checkpoints_.wrote(sweeps, rows_of(block), data);
            }
            file.close();
        });
        std::vector<double> facts{static_cast<double>(begun_ >> half),
                                  static_cast<double>(begun_ & ((std::uint64_t{1} << half) - 1))};
        facts.insert(facts.end(), found.off_norm.begin(), found.off_norm.end());
        facts.insert(facts.end(), found.off_squares.begin(), found.off_squares.end());
        checkpoints_.complete(context_, sweeps, facts);
        if (wish == io::Checkpoints::Wish::save_and_stop) {
            mpi::throw_agreed(context_.comm, io::stopped());
        }
    }

    const io::Restored& restored() const { return restored_; }
    /// Whether there was a state, and it belongs to another start.
    bool differs() const { return differs_; }

private:
    grid::Block rows_of(const ColumnBlock<T>& block) const { return {block.columns, {0, height_}}; }
    /// Of all blocks of all ranks. @note Collective.
    std::uint64_t fingerprint(ColumnBlocks<T>& blocks) const {
        std::uint64_t sum = 0;
        for (const ColumnBlock<T>& block : blocks.all()) {
            sum += kernel::checksum(reinterpret_cast<const std::byte*>(block.data()), bytes_of(block, height_),
                                    static_cast<std::uint64_t>(block.columns.begin));
        }
        return mpi::sum_of(context_.comm, sum);
    }

    Context& context_;
    std::int64_t height_;
    io::Checkpoints checkpoints_;
    io::Restored restored_;
    std::uint64_t begun_ = 0;
    bool differs_ = false;
};

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
          comm_(context, root_task_),
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
        Preconditioned<T> begun = precondition(
            context_, comm_, source_, work_, kind(), options_.share_eigen, !options_.values_only,
            [this](int rank, bool by_eigen) { return cut_after(!by_eigen).columns_of(rank); }, !last);
        const bool by_qr = begun.used == StartKind::qr;
        cut_ = &cut_after(by_qr);
        const auto columns = [this](int rank) { return cut_->columns_of(rank); };
        const Shape shape{by_qr ? work_.n : begun.sweeps.factors.rows, options_.values_only ? 0 : work_.n};
        std::optional<ColumnBlocks<T>> blocks;
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
        std::optional<SweepCheckpoint<T>> checkpoint;
        if (!options_.checkpoints.folder.empty()) {
            checkpoint.emplace(context_, options_.checkpoints, work_.n, shape.height());
            setting.before = checkpoint->restore(*blocks);
            setting.between = [&](const Found& found) { checkpoint->look(found, *blocks); };
            outcome_.restored = checkpoint->restored();
            if (checkpoint->differs()) {
                outcome_.warnings.emplace_back(
                    "the sweeps restarted: on these ranks and threads their start is rounded otherwise");
            }
        }
        const Swept swept = serial ? sweep_serially(context_, *blocks, setting)
                                   : sweep(context_, cut_->ring, *blocks, *exchange, setting);
        exchange.reset();
        if (last) {
            note(begun, swept);
        }
        return back_transform(context_, comm_, work_, *blocks, begun, columns, components_, options_.energy,
                              options_.values_only, source_.scale());
    }

    /// off(AᵀA) over off(XᵀX).
    double squares_scale(const Preconditioned<T>& begun) const {
        return std::pow(begun.sweeps.factors.scale / source_.scale(), 4);
    }

    /// What the sweeps say, of all ranks.
    void note(const Preconditioned<T>& begun, const Swept& swept) {
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
        outcome_.flops = mpi::sum_of(context_.comm, swept.flops);
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
    dist::ColumnComm comm_;
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
