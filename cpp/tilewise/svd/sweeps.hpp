// Sweeps over all pairs of column blocks until all columns are orthogonal to each other.
#pragma once

#include <functional>

#include "tilewise/mpi/exchange/exchange.hpp"
#include "tilewise/svd/blocks.hpp"

namespace tilewise::svd {

using mpi::ExchangeKind;

/// The exchanges that blocks may travel by.
inline constexpr auto exchange_names =
    mpi::exchange_names_without(mpi::DescribedOnce{}, ExchangeKind::synchronous, ExchangeKind::collective,
                                ExchangeKind::one_sided_fence, ExchangeKind::one_sided_pscw, ExchangeKind::shared);
/// Throws UsageError for an unknown name.
inline ExchangeKind exchange_named(std::string_view name) { return mpi::exchange_named(name, exchange_names); }

/// For blocks of at most `largest` reals. @note Collective; throws the same Error on every rank.
std::unique_ptr<mpi::Exchange> make_exchange(ExchangeKind kind, const Context& context, std::int64_t largest);

/// What sweeps have found, and when they are done.
struct Found {
    std::vector<double> off_norm;     ///< the largest cosine that each sweep found, over all ranks
    std::vector<double> off_squares;  ///< and off(XᵀX), of each two columns as they met first in it
};

struct SweepSetting {
    ExchangeKind exchange = ExchangeKind::none;
    kernel::Inner inner = kernel::Inner::blocks;
    double tolerance = 0;    ///< the largest cosine that counts as orthogonal
    double off_squares = 0;  ///< off(XᵀX) below which no sweep is made either; 0: as the tolerance says
    int most = 30;           ///< sweeps
    Found before = {};       ///< in sweeps that were made already, which count
    /// Called after each sweep but the last, when all blocks are at their first places.
    std::function<void(const Found& found)> between = {};
};

struct Swept : Found {
    bool converged = false;
    kernel::PairTally tally;  ///< of this rank
    double flops =
        /// of this rank: for a pair of w columns w²·rows for its Gram matrix and, where it was rotated, 2·w²·(rows +
        /// v_rows); complex numbers take four times as many
        0;
    std::int64_t sweep_bytes = 0, sweep_messages = 0;  ///< that this rank received in one sweep
};

/// Sweeps over the rank's `blocks`, which are again at their first places when it returns. A sweep meets every pair of
/// blocks once, in blocks − 1 steps. At its end all ranks learn in one step what each of them found: they are done when
/// the largest cosine is below the tolerance, or when the angles were so small that it certainly is now. The numbers
/// are the same for every exchange; other cuts, ranks or threads give others, by rounding. A rank with fewer positions
/// than threads has all its threads in one pair after the other, else each thread has its own pairs. Cost of a sweep:
/// up to 2·n²·(3·rows + 2·v_rows) over all ranks (half of it with two blocks), and per rank 2·(blocks − 1) blocks
/// received. @note Collective. A rank that throws leaves others waiting: call it where that aborts the job.
template <class T> Swept sweep(Context& context, const grid::Ring& ring, Blocks<T>& blocks, mpi::Exchange& exchange,
                               const SweepSetting& setting);

/// The same of all columns on one rank, by one thread in two loops over all pairs of them: what a program does that
/// knows of no ranks.
template <class T> Swept sweep_serially(Blocks<T>& blocks, const SweepSetting& setting);

extern template Swept sweep(Context&, const grid::Ring&, Blocks<double>&, mpi::Exchange&, const SweepSetting&);
extern template Swept sweep(Context&, const grid::Ring&, Blocks<kernel::Complex>&, mpi::Exchange&, const SweepSetting&);

extern template Swept sweep_serially(Blocks<double>&, const SweepSetting&);
extern template Swept sweep_serially(Blocks<kernel::Complex>&, const SweepSetting&);

}  // namespace tilewise::svd
