// The steps of a sweep. With `overlap` the positions at the rank's ends come first, whose blocks then fly while those
// between are made orthogonal; a rank with one position, or two, has nothing between: its blocks leave when they are
// done.
// Memory of blocks is handed from one that leaves to one that arrives: all but an unusually wide one are of nearly the
// same size.
#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "tilewise/base/threads.hpp"
#include "tilewise/kernel/factor/jacobi.hpp"
#include "tilewise/kernel/factor/lapack.hpp"
#include "tilewise/svd/jacobi.hpp"

namespace tilewise::svd {
namespace {

using grid::Seat;
using grid::Side;
using mpi::check;

/// Multiplications below which another thread costs more than it saves.
constexpr double least_work = 4e6;

/// Digits of orthogonality that are reached after so many sweeps, of those that are wanted; the first sweeps reach none
/// and take as long.
double share_after(double sweeps) { return 1 - std::pow(0.7, sweeps); }

template <class T> class Sweeper {
public:
    Sweeper(Context& context, const grid::Ring& ring, ColumnBlocks<T>& blocks, mpi::Exchange& exchange,
            const SweepSetting& setting)
        : context_(context),
          ring_(ring),
          blocks_(blocks),
          exchange_(exchange),
          setting_(setting) {
        const double width = 2.0 * static_cast<double>(blocks.cut().count()) / ring.blocks();
        const double work = width * width * static_cast<double>(blocks.shape().height());
        const auto useful = [&](double amount) { return static_cast<int>(std::clamp(amount / least_work, 1.0, 1e6)); };
        const bool side_by_side = blocks.positions() >= context.threads;
        threads_ = side_by_side ? std::min(context.threads, useful(work * blocks.positions())) : 1;
        const int within = side_by_side ? 1 : std::min(context.threads, useful(work));
        for (int thread = 0; thread < threads_; ++thread) {
            solvers_.emplace_back(setting.inner, setting.tolerance, within);
        }
        tallies_.resize(static_cast<std::size_t>(blocks.positions()));
    }

    Swept operator()() {
        Swept swept;
        static_cast<Found&>(swept) = setting_.before;
        Found replayed;
        for (const double off : setting_.before.off_norm) {
            replayed.off_norm.push_back(off);
            rotate_if_stalled(replayed);
        }
        const int first = static_cast<int>(swept.off_norm.size());
        for (int done = first; done < setting_.most && !swept.converged; ++done) {
            const Counters before = context_.ledger.count();
            for (int step = 0; step < ring_.steps(); ++step) {
                take_step(step);
                const double part = static_cast<double>(step + 1) / ring_.steps();
                context_.report(Phase::compute, share_after(static_cast<double>(swept.off_norm.size()) + part));
            }
            if (done == first) {
                swept.sweep_bytes = context_.ledger.count().exchanged - before.exchanged;
                swept.sweep_messages = context_.ledger.count().messages - before.messages;
            }
            const kernel::PairOutcome tally = of_all_ranks();
            swept.off_norm.push_back(tally.off);
            swept.off_squares.push_back(tally.off_squares());
            swept.converged = is_done(tally, setting_.tolerance, setting_.off_squares);
            rotate_if_stalled(swept);
            if (setting_.between && !swept.converged && done + 1 < setting_.most) {
                setting_.between(swept);
            }
        }
        for (const kernel::PairSolverOf<T>& solver : solvers_) {
            swept.tally += solver.tally();
        }
        for (const Tally& tally : tallies_) {
            swept.flops += tally.flops;
        }
        return swept;
    }

private:
    void rotate_if_stalled(const Found& found) {
        if (kernel::has_stalled(found.off_norm)) {
            for (kernel::PairSolverOf<T>& solver : solvers_) {
                solver.use_rotations();
            }
        }
    }

    int first() const { return static_cast<int>(blocks_.first_position()); }
    int end() const { return first() + blocks_.positions(); }

    void take_step(int step) {
        first_step_ = step == 0;
        const bool overlaps = setting_.exchange == ExchangeKind::overlap && blocks_.positions() > 2;
        if (overlaps) {
            solve({first(), end() - 1}, false);
            begin(step);
            std::vector<int> inner;
            for (int position = first() + 1; position < end() - 1; ++position) {
                inner.push_back(position);
            }
            solve(inner, true);
        } else {
            std::vector<int> all;
            for (int position = first(); position < end(); ++position) {
                all.push_back(position);
            }
            solve(all, false);
            begin(step);
        }
        const Timed timed(context_.ledger, Phase::exchange, "blocks");
        exchange_.complete();
        settle();
    }

    void solve(const std::vector<int>& positions, bool flying) {
        const Timed timed(context_.ledger, Phase::compute, "pairs");
        parallel_tasks(threads_, std::ssize(positions), [&](std::int64_t task, int thread) {
            solve_pair(positions[static_cast<std::size_t>(task)], solvers_[static_cast<std::size_t>(thread)]);
            if (flying && thread == 0) {
                exchange_.progress();
            }
        });
    }

    void solve_pair(int position, kernel::PairSolverOf<T>& solver) {
        const ColumnBlock<T>* left = &blocks_.at({position, Side::top});
        const ColumnBlock<T>* right = &blocks_.at({position, Side::bottom});
        if (left->index > right->index) {
            std::swap(left, right);
        }
        const std::int64_t columns = left->columns.size() + right->columns.size();
        if (columns < 2) {
            return;
        }
        const Shape& shape = blocks_.shape();
        Tally& tally = tallies_[static_cast<std::size_t>(position - first())];
        kernel::PairOutcome outcome = solver(left->x(shape), right->x(shape), left->v(shape), right->v(shape));
        if (!first_step_) {
            outcome.within = 0;  // which the sweep has counted
        }
        tally.sum += outcome;
        const auto width = static_cast<double>(columns);
        const bool rotated = !(outcome.off < setting_.tolerance);
        tally.flops += kernel::parts_of<T> * kernel::parts_of<T> * width * width *
                       (static_cast<double>(shape.rows) + (rotated ? 2 * static_cast<double>(shape.height()) : 0));
    }

    /// A block on its way: the side where it arrives tells two blocks apart that come from one neighbour. One without
    /// columns is sent all the same.
    mpi::Message message(int peer, Side side, const ColumnBlock<T>& block) const {
        return {peer, side == Side::top ? 0 : 1, 1, kernel::parts_of<T> * block.numbers(blocks_.shape()),
                reinterpret_cast<std::byte*>(block.data())};
    }

    /// Sends what leaves the rank after a step.
    void begin(int step) {
        const Timed timed(context_.ledger, Phase::exchange, "blocks");
        mpi::MessageSet set;
        coming_.clear();
        const int me = context_.comm.rank();
        for (int position = first(); position < end(); ++position) {
            for (const Side side : {Side::top, Side::bottom}) {
                const Seat here{position, side};
                if (const Seat to = ring_.next(here); ring_.rank_of(to.position) != me) {
                    const ColumnBlock<T>& block = blocks_.at(here);
                    set.out.push_back(message(ring_.rank_of(to.position), to.side, block));
                }
                if (const Seat from = ring_.before(here); ring_.rank_of(from.position) != me) {
                    Arrival& arrival = coming_.emplace_back(here, blocks_.arriving(ring_.block_at(here, step + 1)));
                    set.in.push_back(message(ring_.rank_of(from.position), side, arrival.block));
                }
            }
        }
        exchange_.start(set);
    }

    /// Moves every block to its next place within the rank, and those that came to theirs.
    void settle() {
        std::vector<ColumnBlock<T>> moved(blocks_.all().size());
        const int me = context_.comm.rank();
        const auto slot = [&](Seat seat) {
            return static_cast<std::size_t>(2 * (seat.position - first()) + (seat.side == Side::bottom ? 1 : 0));
        };
        for (int position = first(); position < end(); ++position) {
            for (const Side side : {Side::top, Side::bottom}) {
                const Seat to = ring_.next({position, side});
                if (ring_.rank_of(to.position) == me) {
                    moved[slot(to)] = std::move(blocks_.at({position, side}));
                } else {
                    blocks_.left(std::move(blocks_.at({position, side})));
                }
            }
        }
        for (Arrival& arrival : coming_) {
            moved[slot(arrival.seat)] = std::move(arrival.block);
        }
        blocks_.all() = std::move(moved);
    }

    /// Added up in the same sequence on every rank, so that all decide alike.
    kernel::PairOutcome of_all_ranks() {
        const Timed timed(context_.ledger, Phase::exchange, "off");
        kernel::PairOutcome mine, all;
        for (Tally& tally : tallies_) {
            mine += std::exchange(tally.sum, {});
        }
        const std::array sent{mine.off, mine.cosines, mine.angles, mine.across, mine.within};
        constexpr auto count = static_cast<int>(sent.size());
        std::vector<std::array<double, sent.size()>> got(static_cast<std::size_t>(context_.comm.size()));
        check(MPI_Allgather(sent.data(), count, MPI_DOUBLE, got.data(), count, MPI_DOUBLE, context_.comm.get()),
              "MPI_Allgather");
        for (const auto& [off, cosines, angles, across, within] : got) {
            all += {off, cosines, angles, across, within};
        }
        return all;
    }

    /// What a position has met, in one sweep (`sum`) and in all.
    struct Tally {
        kernel::PairOutcome sum;
        double flops = 0;
    };

    struct Arrival {
        Seat seat;
        ColumnBlock<T> block;

        Arrival(Seat s, ColumnBlock<T>&& b) : seat(s), block(std::move(b)) {}
    };

    Context& context_;
    const grid::Ring& ring_;
    ColumnBlocks<T>& blocks_;
    mpi::Exchange& exchange_;
    const SweepSetting& setting_;
    int threads_ = 1;
    bool first_step_ = true;
    std::vector<kernel::PairSolverOf<T>> solvers_;
    std::vector<Tally> tallies_;  ///< by position, so that no thread's haste changes a sum
    std::vector<Arrival> coming_;
};

}  // namespace

template <class T>
ColumnBlocks<T>::ColumnBlocks(const grid::Ring& ring, const grid::Partition& cut, const Shape& shape, int rank)
    : cut_(cut),
      shape_(shape),
      positions_(ring.positions_of(rank)) {
    const grid::Range mine = ring.first_blocks_of(rank);
    for (std::int64_t index = mine.begin; index < mine.end; ++index) {
        blocks_.push_back(arriving(static_cast<int>(index)));
    }
}

template <class T> void ColumnBlocks<T>::fill(kernel::MatrixOf<T> x, kernel::MatrixOf<T> v) {
    const auto copy = [this](const kernel::MatrixOf<T>& from,
                             kernel::ColumnsOf<T> (ColumnBlock<T>::*part)(const Shape&) const) {
        std::int64_t next = 0;
        for (const ColumnBlock<T>& block : blocks_) {
            const kernel::ColumnsOf<T> to = (block.*part)(shape_);
            for (std::int64_t c = 0; c < to.count; ++c) {
                std::copy_n(from.column(next++), to.rows, to.column(c));
            }
        }
    };
    copy(x, &ColumnBlock<T>::x);
    x = {};
    if (v.rows > 0) {
        copy(v, &ColumnBlock<T>::v);
        return;
    }
    for (const ColumnBlock<T>& block : blocks_) {
        const kernel::ColumnsOf<T> identity = block.v(shape_);
        for (std::int64_t c = 0; c < identity.count; ++c) {
            std::fill_n(identity.column(c), identity.rows, T{});
            identity.column(c)[block.columns.begin + c] = 1.0;
        }
    }
}

template <class T> ColumnBlock<T> ColumnBlocks<T>::arriving(int index) {
    ColumnBlock<T> block{index, cut_[index], {}};
    const std::int64_t needed = block.columns.size() * shape_.height();
    const auto found =
        std::find_if(free_.begin(), free_.end(), [&](const Array<T>& memory) { return memory.holds(needed); });
    if (found != free_.end()) {
        block.memory = std::move(*found);
        free_.erase(found);
    } else {
        // A column more than the usual block has will do for all of those.
        block.memory = Array<T>(std::max(needed, (cut_.count() / cut_.parts() + 1) * shape_.height()));
    }
    return block;
}

template class ColumnBlocks<double>;
template class ColumnBlocks<kernel::Complex>;

std::unique_ptr<mpi::Exchange> make_exchange(ExchangeKind kind, const Context& context, std::int64_t largest) {
    return mpi::make_exchange(
        kind, {.comm = context.comm, .ledger = context.ledger, .dtype = Dtype::float64, .tags = 2, .largest = largest});
}

template <class T> Swept sweep(Context& context, const grid::Ring& ring, ColumnBlocks<T>& blocks,
                               mpi::Exchange& exchange, const SweepSetting& setting) {
    const kernel::BlasThreads one(1);
    return Sweeper<T>(context, ring, blocks, exchange, setting)();
}

template <class T>
Swept sweep_serially(const Context& context, ColumnBlocks<T>& blocks, const SweepSetting& setting) {
    const Shape& shape = blocks.shape();
    const ColumnBlock<T>&left = blocks.at({0, Side::top}), &right = blocks.at({0, Side::bottom});
    const kernel::ColumnPair<T> x{left.x(shape), right.x(shape)}, v{left.v(shape), right.v(shape)};
    const double each = kernel::parts_of<T> * kernel::parts_of<T> * static_cast<double>(x.count() * x.count());
    Swept swept;
    for (int done = 0; done < setting.most && !swept.converged; ++done) {
        const kernel::PairOutcome outcome = rotate_columns(x, v, setting.tolerance, swept.tally);
        swept.off_norm.push_back(outcome.off);
        context.report(Phase::compute, share_after(done + 1));
        swept.off_squares.push_back(outcome.off_squares());
        swept.converged = is_done(outcome, setting.tolerance, setting.off_squares);
        swept.flops += each * static_cast<double>(shape.rows + (outcome.angles > 0 ? 2 * shape.height() : 0));
    }
    return swept;
}

template Swept sweep_serially(const Context&, ColumnBlocks<double>&, const SweepSetting&);
template Swept sweep_serially(const Context&, ColumnBlocks<kernel::Complex>&, const SweepSetting&);
template Swept sweep(Context&, const grid::Ring&, ColumnBlocks<double>&, mpi::Exchange&, const SweepSetting&);
template Swept sweep(Context&, const grid::Ring&, ColumnBlocks<kernel::Complex>&, mpi::Exchange&, const SweepSetting&);

}  // namespace tilewise::svd
