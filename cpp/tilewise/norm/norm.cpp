// Each rank adds up the rows that it reads; only sums of columns, and what is left of the rest, pass between ranks.
#include "tilewise/norm/norm.hpp"

#include <algorithm>
#include <limits>
#include <vector>

#include "tilewise/base/array.hpp"
#include "tilewise/base/threads.hpp"
#include "tilewise/dist/bands.hpp"
#include "tilewise/mpi/sum.hpp"
#include "tilewise/mpi/together.hpp"
#include "tilewise/norm/sums.hpp"

namespace tilewise::norm {
namespace {

constexpr std::int64_t worth_threads = std::int64_t{1} << 16;  // numbers

/// Rows and columns are those of the file's own order here, until the end.
class Run {
public:
    Run(Context& context, const io::Region& a, const Options& options)
        : context_(context),
          a_(a),
          options_(options),
          item_(static_cast<std::int64_t>(size_of(a.dtype))),
          width_(a.stored_columns()),
          bands_(a, {context.comm.size(), 1}, std::max<std::int64_t>(1, options.band_bytes / item_), false) {}

    Norms operator()() {
        const io::Input input = [&] {
            const Timed timed(context_.ledger, Phase::input, "open");
            return io::Input(context_, a_, options_.read, options_.hints);
        }();
        const auto threads = static_cast<std::size_t>(context_.threads);
        mpi::together(context_.comm, [&] {
            sums_.resize(threads);
            columns_ = Array<double>(width_ * context_.threads);
        });
        for (std::int64_t band = 0; band < bands_.count(); ++band) {
            const grid::Block mine = bands_(band, context_.comm.rank());
            read(input, band, mine.size());
            add(mine);
            context_.report(Phase::input, static_cast<double>(band + 1) / static_cast<double>(bands_.count()));
        }
        for (std::size_t thread = 1; thread < threads; ++thread) {
            sums_[0] += sums_[thread];
            const double* const from = columns_.data() + static_cast<std::int64_t>(thread) * width_;
            std::transform(from, from + width_, columns_.data(), columns_.data(), std::plus<>());
        }
        if (context_.comm.size() > 1) {
            join();
        }
        return norms();
    }

private:
    void read(const io::Input& input, std::int64_t band, std::int64_t size) {
        const Timed timed(context_.ledger, Phase::input, "input");
        mpi::together(context_.comm, [&] { raw_.grow(size * item_); });
        input.load_raw(
            context_,
            [&](int rank) {
                const grid::Share stored = bands_(band, rank);
                return a_.stored_transposed() ? stored.transposed() : stored;
            },
            raw_.data());
    }

    void add(const grid::Block& block) {
        const Timed timed(context_.ledger, Phase::compute, "add");
        working_ = working_ || block.size() > 0;
        mpi::together(context_.comm, [&] {
            if (block.columns.begin == 0) {  // rows go on from band to band where they are longer than one
                std::fill_n(rows_.grow(block.rows.size()), block.rows.size(), 0.0);
            }
            parallel_ranges(block.size() < worth_threads ? 1 : context_.threads, block.rows.size(),
                            [&](std::int64_t begin, std::int64_t end, int thread) {
                                double* const columns = columns_.data() + thread * width_ + block.columns.begin;
                                for (std::int64_t row = begin; row < end; ++row) {
                                    rows_[row] += sums_[static_cast<std::size_t>(thread)].add(
                                        raw_.data() + row * block.columns.size() * item_, block.columns.size(),
                                        a_.dtype, a_.swap_bytes, columns);
                                }
                            });
            largest_row_ = std::max(largest_row_, largest(rows_, block.rows.size()));
        });
    }

    /// Over the ranks; of the rest only what is left after the last band.
    void join() {
        const Timed timed(context_.ledger, Phase::exchange, "sum over ranks");
        const mpi::Communicator& comm = context_.comm;
        Sums& sums = sums_[0];
        std::array<double, 2> most{largest_row_, sums.largest};
        std::array<std::int64_t, 2> counts{sums.nans, sums.infinities};
        mpi::sum_over_ranks(comm, sums.squares.data(), std::ssize(sums.squares));
        mpi::sum_over_ranks(comm, counts.data(), std::ssize(counts));
        mpi::join_over_ranks(comm, most.data(), std::ssize(most), MPI_MAX);
        context_.ledger.count().messages += mpi::sum_over_ranks(comm, columns_.data(), width_);
        context_.ledger.count().exchanged += width_ * static_cast<std::int64_t>(sizeof(double));
        largest_row_ = most[0];
        sums.largest = most[1];
        sums.nans = counts[0];
        sums.infinities = counts[1];
    }

    Norms norms() const {
        const Sums& sums = sums_[0];
        Norms norms{.frobenius = sums.root(),
                    .one = largest(columns_, width_),
                    .infinity = largest_row_,
                    .max = sums.largest,
                    .nans = sums.nans,
                    .infinities = sums.infinities,
                    .working = working_};
        if (a_.stored_transposed()) {
            std::swap(norms.one, norms.infinity);
        }
        if (norms.nans + norms.infinities > 0) {
            using Limits = std::numeric_limits<double>;
            const double all = norms.nans > 0 ? Limits::quiet_NaN() : Limits::infinity();
            norms.frobenius = norms.one = norms.infinity = norms.max = all;
        }
        return norms;
    }

    static double largest(const Array<double>& values, std::int64_t count) {
        return count > 0 ? *std::max_element(values.data(), values.data() + count) : 0.0;
    }

    Context& context_;
    const io::Region& a_;
    const Options& options_;
    std::int64_t item_, width_;
    dist::Bands bands_;
    Array<std::byte> raw_;
    Array<double> rows_, columns_;  // sums: of the rows of a band, and on each thread of all columns
    std::vector<Sums> sums_;        // of each thread
    double largest_row_ = 0;
    bool working_ = false;
};

}  // namespace

Norms norms(Context& context, const io::Region& a, const Options& options) {
    return mpi::no_return(context.comm, [&] { return Run(context, a, options)(); });
}

}  // namespace tilewise::norm
