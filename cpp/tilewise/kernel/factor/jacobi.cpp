// The pair solver: cosines, then the cheapest inner solve that is accurate for them, then the products; wide pairs in
// one go or by narrower ones.
//
//      cosines ── all below tolerance ──────── nothing to do
//              ├─ angles small ───────────────── W = I + E + E²/2
//              ├─ large only within groups ───── eigenvectors of each group's Gram matrix,
//              │                                 then small angles between groups
//              ├─ at most 128 columns ────────── Cholesky factor, rotations on it
//              └─ else ───────────────────────── eigenvectors of each group, if angles in it are large;
//                                                one round robin of pairs of 64 + 64 columns, each beginning above
//
// Groups are of columns with similar norms. Columns of equal singular values need large angles however small their
// cosines are, and rounding alone keeps those of a wide group above any tolerance: what makes the end is that groups
// shrink to clusters as cosines do (see `norm_groups`).
#include "tilewise/kernel/factor/jacobi.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <optional>
#include <vector>

#include "tilewise/base/threads.hpp"
#include "tilewise/kernel/factor/lapack.hpp"

namespace tilewise::kernel {
namespace {

constexpr std::int64_t narrow_block = 64;

constexpr double infinity = std::numeric_limits<double>::infinity();

bool is_narrow(std::int64_t count) { return count <= 2 * narrow_block; }

/// Solves pairs in one go, on its own scratch memory.
template <class T> class OneGo {
public:
    /// False: the pair is wide, and columns of different norms still need rotations that are not small.
    bool solve(const ColumnPair<T>& x, const ColumnPair<T>& v, double tolerance, int threads, PairOutcome& outcome,
               PairTally& tally) {
        const std::int64_t count = x.count();
        cosines_.values = gram_.grow(count * count);
        // Cosines, angles and sums of squares of each two columns, some 30 operations; all else is BLAS's and LAPACK's.
        const auto squares = static_cast<double>(count * count);
        tell<T>({15 * squares, 2 * squares});
        // Where this solver has the BLAS to itself, which is where it uses several threads.
        std::optional<BlasThreads> blas;
        if (threads > 1) {
            blas.emplace(threads);
        }
        find_cosines(x, cosines_, threads);
        const double root = std::sqrt(static_cast<double>(count));
        Angles angles = find_angles(cosines_, tolerance, work_.square(0, count), threads);
        outcome = {angles.off, angles.cosines};
        sum_squares(x.left.count, outcome);
        if (angles.off < tolerance) {
            if (angles.cosines < root * tolerance) {
                ++tally.skipped;
                return true;
            }
            // None is too large, but all together are: smaller ones count then.
            tolerance /= root;
            angles = find_angles(cosines_, tolerance, work_.square(0, count), threads);
        }
        outcome.angles = angles.small ? angles.scaled : infinity;
        if (angles.small) {
            turn(x, v, small_rotation(work_, count, angles.scaled, threads), true, threads);
            ++tally.small_angles;
            return true;
        }
        const NormGroups groups = norm_groups(cosines_, tolerance);
        if (groups.small_across || !(is_narrow(count) || groups.small_within)) {
            turn(x, v, eigen_rotation(cosines_, groups, work_), false, threads);
            ++tally.eigen;
            if (groups.small_across && groups.begins.size() > 1) {
                turn_across(x, v, groups, tolerance, threads);
            }
            return groups.small_across;
        }
        if (is_narrow(count)) {
            turn(x, v, cholesky_rotation(cosines_, groups, work_), false, threads);
            ++tally.cholesky;
            return true;
        }
        return false;
    }

private:
    void sum_squares(std::int64_t left, PairOutcome& outcome) const {
        const auto norm = [&](std::int64_t c) { return cosines_.norms[static_cast<std::size_t>(c)]; };
        for (std::int64_t c = 1; c < cosines_.count; ++c) {
            double of_left = 0, of_right = 0;  // with columns of either block
            for (std::int64_t r = 0; r < c; ++r) {
                const double product = std::abs(cosines_.column(c)[r]) * norm(r) * norm(c);
                (r < left ? of_left : of_right) += 2 * product * product;
            }
            (c < left ? outcome.within : outcome.across) += of_left;
            outcome.within += of_right;
        }
    }

    /// Small rotations between columns of different groups, those within being done.
    void turn_across(const ColumnPair<T>& x, const ColumnPair<T>& v, const NormGroups& groups, double tolerance,
                     int threads) {
        find_cosines(x, cosines_, threads);
        const Angles angles = find_angles(cosines_, tolerance, work_.square(0, x.count()), threads, &groups);
        if (angles.small && angles.scaled > 0) {
            turn(x, v, small_rotation(work_, x.count(), angles.scaled, threads), true, threads);
        }
    }

    /// X ← X·W and V ← V·W, or W added to I.
    void turn(const ColumnPair<T>& x, const ColumnPair<T>& v, const Rotation<T>& rotation, bool add, int threads) {
        multiply_columns(x, rotation, add, panel_, threads);
        if (v.count() > 0) {
            multiply_columns(v, rotation, add, panel_, threads);
        }
    }

    Array<T> gram_, panel_;
    Cosines<T> cosines_;
    InnerWork<T> work_;
};

}  // namespace

template <class T>
MatrixOf<T>::MatrixOf(std::int64_t row_count, std::int64_t column_count)
    : rows(row_count),
      count(column_count),
      // Columns begin at cache lines, and not all at the same place in the cache.
      stride((row_count + 7) / 8 * 8 + ((row_count + 7) / 8 * 8 % 512 == 0 ? 8 : 0)),
      memory(static_cast<std::size_t>(stride * column_count) * sizeof(T)) {}

PairTally& PairTally::operator+=(const PairTally& other) {
    small_angles += other.small_angles;
    eigen += other.eigen;
    cholesky += other.cholesky;
    rotations += other.rotations;
    skipped += other.skipped;
    return *this;
}

PairOutcome& PairOutcome::operator+=(const PairOutcome& other) {
    off = std::max(off, other.off);
    cosines += other.cosines;
    angles += other.angles;
    across += other.across;
    within += other.within;
    return *this;
}

bool certainly_converged(const PairOutcome& sweep, double tolerance) {
    return sweep.angles == 0 || 4 * sweep.angles * sweep.cosines < tolerance;
}

bool is_done(const PairOutcome& sweep, double tolerance, double off_squares) {
    return certainly_converged(sweep, tolerance) || sweep.off_squares() < off_squares;
}

bool has_stalled(const std::vector<double>& off) {
    // Near the end each sweep squares `off`; before, it may stay where it is for some sweeps, the more the narrower
    // blocks are.
    constexpr double near = 1e-4;
    constexpr std::size_t patience = 12;
    const std::size_t count = off.size();
    return count >= 3 && off[count - 1] > off[count - 3] / 2 && (off[count - 1] < near || count >= patience);
}

double jacobi_tolerance(std::int64_t rows, Inner inner) {
    const double root = std::sqrt(static_cast<double>(std::max<std::int64_t>(1, rows)));
    if (inner == Inner::rotations) {
        return std::clamp(5e-14 / root, 1.5e-15, 1.5e-14);
    }
    // Below 1.5e-14, products of a hundred columns round more than that; above 5e-14, U would not be orthonormal to
    // 1e-13.
    return std::clamp(1e-15 * root, 1.5e-14, 5e-14);
}

template <class T> struct PairSolverOf<T>::State {
    Inner inner;
    double tolerance;
    int threads;
    OneGo<T> whole{};
    std::vector<OneGo<T>> narrow{};
    PairTally tally{};

    /// One round robin over narrow blocks of both sides: each meets each other once.
    PairOutcome sweep(const ColumnPair<T>& x, const ColumnPair<T>& v) {
        std::vector<ColumnsOf<T>> parts, v_parts;
        for (const bool right : {false, true}) {
            const ColumnsOf<T>&block = right ? x.right : x.left, &v_block = right ? v.right : v.left;
            const std::int64_t pieces = (block.count + narrow_block - 1) / narrow_block;
            for (std::int64_t k = 0; k < pieces; ++k) {
                const std::int64_t begin = block.count * k / pieces, end = block.count * (k + 1) / pieces;
                parts.push_back(block.part(begin, end - begin));
                v_parts.push_back(v_block.count > 0 ? v_block.part(begin, end - begin) : ColumnsOf<T>{});
            }
        }
        if (parts.size() % 2 != 0) {
            parts.emplace_back();
            v_parts.emplace_back();
        }
        narrow.resize(static_cast<std::size_t>(threads));
        std::vector<std::size_t> seats(
            parts.size());  // the lower half sits opposite to the upper; all but the first move on
        std::iota(seats.begin(), seats.end(), 0U);
        PairOutcome sum;
        const BlasThreads one(1);
        for (std::size_t round = 0; round + 1 < parts.size(); ++round) {
            const std::size_t pairs = parts.size() / 2;
            std::vector<PairOutcome> outcomes(pairs);
            std::vector<PairTally> tallies(pairs);
            parallel_tasks(threads, static_cast<std::int64_t>(pairs), [&](std::int64_t task, int thread) {
                const auto k = static_cast<std::size_t>(task);
                const auto [i, j] = std::minmax(seats[k], seats[parts.size() - 1 - k]);
                narrow[static_cast<std::size_t>(thread)].solve({parts[i], parts[j]}, {v_parts[i], v_parts[j]},
                                                               tolerance, 1, outcomes[k], tallies[k]);
            });
            for (std::size_t k = 0; k < pairs; ++k) {
                sum += outcomes[k];
                tally += tallies[k];
            }
            std::rotate(seats.begin() + 1, seats.end() - 1, seats.end());
        }
        return sum;
    }
};

template <class T>
PairSolverOf<T>::PairSolverOf(Inner inner, double tolerance, int threads)
    : state_(new State{inner, tolerance, threads}) {}
template <class T> PairSolverOf<T>::PairSolverOf(PairSolverOf&&) noexcept = default;
template <class T> PairSolverOf<T>& PairSolverOf<T>::operator=(PairSolverOf&&) noexcept = default;
template <class T> PairSolverOf<T>::~PairSolverOf() = default;

template <class T> const PairTally& PairSolverOf<T>::tally() const { return state_->tally; }
template <class T> void PairSolverOf<T>::use_rotations() { state_->inner = Inner::rotations; }

template <class T>
PairOutcome PairSolverOf<T>::operator()(ColumnsOf<T> x_left, ColumnsOf<T> x_right, ColumnsOf<T> v_left,
                                        ColumnsOf<T> v_right) {
    const ColumnPair<T> x{x_left, x_right}, v{v_left, v_right};
    if (x.count() < 2) {
        return {};
    }
    if (state_->inner == Inner::rotations || x.count() == 2) {
        return rotate_columns(x, v, state_->tolerance, state_->tally);
    }
    PairOutcome outcome;
    if (!state_->whole.solve(x, v, state_->tolerance, state_->threads, outcome, state_->tally)) {
        const PairOutcome before = outcome;
        outcome = state_->sweep(x, v);
        outcome.off = std::max(outcome.off, before.off);
        outcome.across = before.across;
        outcome.within = before.within;
        outcome.angles = infinity;  // the round began with angles that were not small
    }
    return outcome;
}

template struct MatrixOf<double>;
template struct MatrixOf<Complex>;
template class PairSolverOf<double>;
template class PairSolverOf<Complex>;

}  // namespace tilewise::kernel
