// Each rank adds up the rows that it reads; only sums of columns, and what is left of the rest, pass between ranks.
// Chunks that stay in the first-level cache: converted, made magnitudes, then added to everything at once.
#include "tilewise/norm/norm.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "tilewise/base/buffer.hpp"
#include "tilewise/base/threads.hpp"
#include "tilewise/dist/bands.hpp"
#include "tilewise/kernel/codec/convert.hpp"
#include "tilewise/kernel/isa/versions.hpp"
#include "tilewise/mpi/sum.hpp"
#include "tilewise/mpi/together.hpp"

namespace tilewise::norm {
namespace {

constexpr std::int64_t chunk = 1024;
// Between these no square overflows, not even 2⁶⁴ of them together, and none is lost that counts beside the largest.
constexpr double low = 0x1p-400, high = 0x1p400;
constexpr double scale = 0x1p600;

using Chunk = std::array<double, chunk>;
using Pairs = std::array<double, 2 * chunk>;  // real and imaginary parts

struct Totals {
    double sum = 0, square = 0, largest = 0;
};

/// Of real numbers `x`, which become magnitudes.
TILEWISE_INLINE Totals add_chunk(double* __restrict x, double* __restrict columns, std::int64_t count) {
    double sum = 0, square = 0, largest = 0;
#pragma omp simd reduction(+ : sum, square) reduction(max : largest)
    for (std::int64_t i = 0; i < count; ++i) {
        const double value = std::fabs(x[i]);
        x[i] = value;
        columns[i] += value;
        sum += value;
        square += value * value;
        largest = value > largest ? value : largest;
    }
    return {sum, square, largest};
}

/// Magnitudes of pairs `z` by the plain formula; returns the largest part.
TILEWISE_INLINE double plain_magnitudes(const double* __restrict z, double* __restrict x, std::int64_t count) {
    double largest = 0;
#pragma omp simd reduction(max : largest)
    for (std::int64_t i = 0; i < count; ++i) {
        const double real = std::fabs(z[2 * i]), imaginary = std::fabs(z[2 * i + 1]);
        largest = real > largest ? real : largest;
        largest = imaginary > largest ? imaginary : largest;
        x[i] = std::sqrt(real * real + imaginary * imaginary);
    }
    return largest;
}

void make_magnitudes(const Pairs& z, Chunk& x, std::int64_t count) {
    const double largest = kernel::in_versions<plain_magnitudes>(z.data(), x.data(), count);
    if (largest < low || largest > high) {
        for (std::size_t i = 0; i < static_cast<std::size_t>(count); ++i) {
            x[i] = std::hypot(z[2 * i], z[2 * i + 1]);
        }
    }
}

double square_sum(const Chunk& x, std::int64_t count, double factor) {
    double sum = 0;
    for (std::int64_t i = 0; i < count; ++i) {
        const double value = x[static_cast<std::size_t>(i)] * factor;
        sum += value * value;
    }
    return sum;
}

constexpr std::int64_t worth_threads = std::int64_t{1} << 16;  // numbers

/// Rows and columns are those of the file's own order here, until the end.
class NormPass {
public:
    NormPass(Context& context, const io::Region& a, const Options& options)
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
        Norms norms;
        norms.frobenius = sums.root();
        norms.one = largest(columns_, width_);
        norms.infinity = largest_row_;
        norms.max = sums.largest;
        norms.nans = sums.nans;
        norms.infinities = sums.infinities;
        norms.working = working_;
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

double Sums::add(const std::byte* row, std::int64_t count, Dtype dtype, bool swap_bytes, double* columns) {
    const bool pairs = is_complex(dtype);
    Chunk x;
    Pairs z;
    double sum = 0;
    for (std::int64_t begin = 0; begin < count; begin += chunk) {
        const std::int64_t here = std::min(chunk, count - begin);
        auto* const to = pairs ? reinterpret_cast<std::byte*>(z.data()) : reinterpret_cast<std::byte*>(x.data());
        kernel::convert(row + begin * static_cast<std::int64_t>(size_of(dtype)), dtype, swap_bytes, to,
                        pairs ? Dtype::complex128 : Dtype::float64, false, here);
        if (pairs) {
            make_magnitudes(z, x, here);
        }
        const Totals totals = kernel::in_versions<add_chunk>(x.data(), columns + begin, here);
        sum += totals.sum;
        largest = std::max(largest, totals.largest);
        if (totals.largest > high) {
            squares[1] += square_sum(x, here, 1 / scale);
        } else if (totals.largest < low) {
            squares[2] += square_sum(x, here, scale);
        } else {
            squares[0] += totals.square;
        }
        if (!std::isfinite(totals.sum)) {
            nans += std::count_if(x.begin(), x.begin() + here, [](double value) { return std::isnan(value); });
            infinities += std::count_if(x.begin(), x.begin() + here, [](double value) { return std::isinf(value); });
        }
    }
    return sum;
}

Sums& Sums::operator+=(const Sums& other) {
    for (std::size_t kind = 0; kind < squares.size(); ++kind) {
        squares[kind] += other.squares[kind];
    }
    largest = std::max(largest, other.largest);
    nans += other.nans;
    infinities += other.infinities;
    return *this;
}

double Sums::root() const {
    const auto [medium, large, small] = squares;
    if (large > 0) {
        return std::sqrt(large + medium / scale / scale) * scale;
    }
    return medium > 0 ? std::sqrt(medium + small / scale / scale) : std::sqrt(small) / scale;
}

Norms norms(Context& context, const io::Region& a, const Options& options) {
    return mpi::no_return(context.comm, [&] { return NormPass(context, a, options)(); });
}

}  // namespace tilewise::norm
