// `randomized`: the largest singular values of a matrix that need not fit into memory, out of a few passes over its
// file, by block Krylov iteration: the space that readings of the matrix span grows until the largest singular values
// and their vectors are in it.
//
//     reading      multiplies                                          and then
//     1            X random, l = K + P columns                         X ← AᵀA·X made orthonormal
//     2            X                                                   the same once more
//     3            X                                                   V = [X]
//     4, 5 …       what of AᵀA·X is outside V                          V = [V, X]
//     last         X = the leading l Ritz vectors                      A·X by TSQR = Q·R, R = S·Σ·Tᵀ: U = Q·S, V = X·T
//
// What is small beside σ₁² in the first product has its digits in the second. Where V is full, it becomes its leading
// Ritz vectors (a thick restart).
//
// Readings 1, 2, 3 and the last keep A·X, so that each of them may be the last: A·V = U·Σ holds by construction then,
// and ‖Aᵀu − σv‖ is what of AᵀA·v/σ is outside V. One reading gives A·X and AᵀA·X, so none is for the residuals alone.
// What has converged to rounding is locked: the rest is judged without it, or σ₁² would drown it.
//
// C. Musco, C. Musco, "Randomized block Krylov methods for stronger and faster approximate singular value
// decomposition", 2015; K. Wu, H. Simon, "Thick-restart Lanczos method for large symmetric eigenvalue problems", 2000.
//
// The `components` largest of A (M×N), with blocks of l = min(components + oversample, M, N) columns: readings of the
// file until every ‖Aᵀu − σv‖ is at most `tolerance`·σ, or rounding of σ₁; or, where `power` is not negative, power + 2
// of them (two more where squares of squares of the numbers leave their range). After `most_readings` it has failed:
// where `require_converged`, nothing is written then, and the verification says so. Else the files are written; proving
// them is left to the caller, and takes one more reading. `dtype` is the type of the arithmetic and of the files: sums
// over many rows, the space, and everything small, are in float64. `repeat` and `warmup` repeat the readings too, which
// count into the samples.
//
// Memory of a rank, with H×W the shape along and across the panels (see Panels), t = size of `dtype`, L = l rounded up
// to 64/t, B = `basis`, and c lanes with panels of p rows:
//     W·L·t + 12·W·B + the larger of  c·(p·W·t + (p + W)·L·t + W·l·8) + 1.25·(H/ranks)·l·t  and  4·W·l·8
// p·W·t is 0 where numbers are used as they are mapped, and p·W·(t + size in the file) where they are converted. Then,
// to write, 1.25·(H/ranks)·l·t + W·(L + K)·t + the rank's part of Vᵀ and of U·diag(s). A space that is not needed
// (12·W·B) is never made.
//
// Design: docs/design/svd.md
#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <sstream>
#include <vector>

#include "tilewise/base/buffer.hpp"
#include "tilewise/base/random.hpp"
#include "tilewise/base/threads.hpp"
#include "tilewise/dist/tall_qr.hpp"
#include "tilewise/kernel/factor/gesdd.hpp"
#include "tilewise/mpi/datatype.hpp"
#include "tilewise/mpi/repeat.hpp"
#include "tilewise/mpi/together.hpp"
#include "tilewise/svd/randomized_basis.hpp"
#include "tilewise/svd/randomized_pass.hpp"
#include "tilewise/svd/result.hpp"
#include "tilewise/svd/svd.hpp"

namespace tilewise::svd {
namespace {

constexpr std::int64_t first_guess = 20;  // components, where a share of the matrix is wanted

std::size_t at(std::int64_t index) { return static_cast<std::size_t>(index); }

/// ‖Aᵀu − σv‖ out of what of AᵀA·v is outside V, which is σ times that. Where σ is less than rounding of σ₁, both are
/// rounding, and so would be their ratio.
double residual_of(double outside, double sigma, double rounding) {
    return outside > 0 ? outside / std::max({sigma, rounding, std::numeric_limits<double>::min()}) : 0;
}

/// Readings after which the iteration gives up.
constexpr std::int64_t most_readings = 200;
/// Of a residual ‖Aᵀu − σv‖, relative to σ, where none is asked for.
double usual_tolerance(Dtype dtype) { return dtype == Dtype::float32 ? 1e-4 : 1e-6; }

/// What is known of the K components that were found; the same on all ranks.
struct Quality {
    std::vector<double> residuals;  ///< ‖Aᵀu − σv‖ of each
    double tolerance = 0;           ///< that was to be reached, relative to each σ
    double rounding = 0;            ///< and what no residual has to be below: rounding of σ₁
    bool converged = true;
    double norm = 0;     ///< ‖A‖_F
    bool enough = true;  ///< whether they have the share of the matrix that was asked for
};

/// The K largest singular values with their vectors, row by row; without vectors where only values were wanted.
template <class T> struct LowRankFactors {
    std::vector<double> sigma;
    grid::Range high;                         ///< the rows of the view that this rank has
    std::int64_t width = 0;                   ///< columns of the view
    bool transposed = false;                  ///< the view is Aᵀ: `tall` is of V then, `across` of U
    T* tall = nullptr;                        ///< high × K
    Array<T> across;                          ///< width × K, the same on all ranks
    std::shared_ptr<dist::TallQr<T>> memory;  ///< of `tall`; null where there are no vectors
};

template <class T> class Finder {
public:
    /// `options.components` is known. @note Collective.
    Finder(Context& context, const io::Region& a, const Options& options)
        : context_(context),
          options_(options),
          least_(std::min(a.logical_rows(), a.logical_columns())),
          count_(options.energy > 0 ? std::min(first_guess, options.components) : options.components),
          columns_(std::min(count_ + options.oversample, least_)),
          passes_(context, a, options, columns_),
          width_(passes_.panels().width()),
          floor_(2 * static_cast<double>(std::numeric_limits<T>::epsilon()) *
                 std::sqrt(static_cast<double>(std::max(a.logical_rows(), a.logical_columns())))),
          basis_(context.threads) {
        quality_.tolerance = options.tolerance > 0 ? options.tolerance
                                                   : usual_tolerance(sizeof(T) == 4 ? Dtype::float32 : Dtype::float64);
    }

    LowRankFactors<T> operator()() {
        const Timed timed(context_.ledger, Phase::compute, "randomized");
        passes_.start_counting();
        basis_.clear();
        x_ = Columns(width_, 0);
        append_random(columns_);
        size_space();
        for (std::int64_t pass = 1, since = 0;; ++pass) {
            const bool alone = basis_.size() == 0, last_but_one = pass + 1 == limit();
            set_q();

            const double expected = fixed() ? static_cast<double>(limit()) : 0;
            Reading<T> reading = passes_.read(context_, q(), x_.columns, pass == 1, alone, expected);
            Columns w;
            w.rows = width_;
            w.columns = x_.columns;
            w.numbers = std::move(reading.product);
            if (!alone) {
                look_at_space(std::move(w), last_but_one);
                continue;
            }
            const Small small = decompose(*reading.tall);
            quality_.enough = choose_count(small.sigma);
            const std::int64_t widest = std::min(options_.components + options_.oversample, least_);
            const bool narrow = !quality_.enough && columns_ < widest, converged = look_at_block(w, small);
            if (pass >= limit() || (converged && !narrow && !fixed())) {
                return finish(std::move(reading.tall), small);
            }
            reading.tall.reset();
            if (pass - since <= warm_readings || narrow || last_but_one) {
                x_ = basis_.combine(inside_.data(), w.columns, w.columns);
                std::transform(x_.numbers.begin(), x_.numbers.end(), w.numbers.begin(), x_.numbers.begin(),
                               std::plus<>());
                orthonormalize(context_, x_);
                basis_.clear();
                if (narrow && pass - since >= warm_readings) {
                    const std::int64_t more = std::min(columns_, widest - columns_);
                    columns_ += more;
                    append_random(more);
                    passes_.widen(context_, columns_);
                    size_space();
                    since = pass;
                }
                continue;
            }
            std::vector<double> r;
            x_ = outside(std::move(w), r);
            if (x_.columns == 0) {  // V has all that there is, but not to all digits
                x_ = basis_.front();
                basis_.clear();
            }
        }
    }

    const Quality& quality() const { return quality_; }
    std::int64_t reads() const { return passes_.reads(); }
    double flops() const { return passes_.flops(); }
    bool working() const { return passes_.panels().mine().size() > 0; }

private:
    /// R of A·X as rank 0 decomposed it: S and T, σ.
    struct Small {
        std::vector<double> left, right, sigma;
    };

    T* q() const { return q_.data(); }
    bool fixed() const { return options_.power >= 0; }
    std::int64_t limit() const { return fixed() ? options_.power + 2 : most_readings; }

    /// The space has room for the least number of blocks, whatever the plan says.
    void size_space() {
        const std::int64_t usual = usual_basis(columns_);
        most_ = std::max(least_basis_blocks * columns_, options_.basis > 0 ? std::min(options_.basis, usual) : usual);
    }

    /// How many components have the share that is wanted, as far as is known; whether they have it.
    bool choose_count(const std::vector<double>& sigma) {
        if (options_.energy <= 0) {
            return true;
        }
        const double all =
            passes_.squares() / std::max(sigma.front() * sigma.front(), std::numeric_limits<double>::min());
        count_ = fewest_with(sigma, std::min(options_.energy, 1 - 2 * floor_) * all);
        const std::int64_t most = std::min(options_.components, columns_);
        const bool enough = count_ <= most;
        count_ = std::min(count_, most);
        return enough;
    }

    /// Makes X wider by random directions, which are all orthonormal then.
    void append_random(std::int64_t columns) {
        mpi::together(context_.comm, [&] {
            Columns wider(width_, x_.columns + columns);
            parallel_ranges(context_.threads, width_, [&](std::int64_t begin, std::int64_t end, int) {
                for (std::int64_t i = begin; i < end; ++i) {
                    const std::uint64_t key = row_key(options_.seed, static_cast<std::uint64_t>(i));
                    double* row = wider.numbers.data() + i * wider.columns;
                    std::copy_n(x_.numbers.data() + i * x_.columns, x_.columns, row);
                    for (std::int64_t j = x_.columns; j < wider.columns; ++j) {
                        row[j] = normal(random_bits(key, static_cast<std::uint64_t>(j)));
                    }
                }
            });
            x_ = std::move(wider);
        });
        orthonormalize(context_, x_);
    }

    /// What is multiplied is X rounded to T, and so X is that.
    void set_q() {
        mpi::together(context_.comm, [&] {
            const std::int64_t stride = passes_.stride(), columns = x_.columns;
            q_.grow(width_ * stride);
            parallel_ranges(context_.threads, width_, [&](std::int64_t begin, std::int64_t end, int) {
                for (std::int64_t i = begin; i < end; ++i) {
                    T* row = q() + i * stride;
                    for (std::int64_t j = 0; j < columns; ++j) {
                        row[j] = static_cast<T>(x_.numbers[at(i * columns + j)]);
                        x_.numbers[at(i * columns + j)] = static_cast<double>(row[j]);
                    }
                    std::fill(row + columns, row + stride, T{});
                }
            });
        });
    }

    Small decompose(dist::TallQr<T>& tall) const {
        {
            const Timed timed(context_.ledger, Phase::exchange, "combine rows");
            tall.combine(&context_.comm, context_.threads);
        }
        const std::int64_t l = x_.columns;
        std::vector<double> small(at(2 * l * l + l));  // S column by column, T row by row, and σ
        mpi::together(context_.comm, [&] {
            if (context_.comm.rank() == 0) {
                std::vector<double> r(tall.r().begin(), tall.r().end());
                kernel::gesdd(l, l, r.data(), l, small.data() + 2 * l * l, small.data(), small.data() + l * l, 1);
            }
        });
        from_rank_0(context_, small);
        return {{small.begin(), small.begin() + l * l},
                {small.begin() + l * l, small.begin() + 2 * l * l},
                {small.begin() + 2 * l * l, small.end()}};
    }

    /// Whether all residuals are small enough; `noise`: what those that were not measured may be off.
    bool judge(const std::vector<double>& sigma, const std::vector<double>& residuals, double noise) {
        const double rounding = floor_ * sigma.front();
        for (std::int64_t j = 0; j < count_; ++j) {
            const double unsure = noise / std::max(sigma[at(j)], std::numeric_limits<double>::min());
            if (!(residuals[at(j)] <= std::max({quality_.tolerance * sigma[at(j)], rounding, unsure}))) {
                return false;
            }
        }
        return true;
    }

    /// Behind a reading of X alone: V = X·T, and w becomes what of AᵀA·V is outside V. Whether that is enough.
    bool look_at_block(Columns& w, const Small& small) {
        const std::int64_t l = x_.columns;
        basis_.add(times(x_, small.right.data(), l, l, context_.threads));
        w = times(w, small.right.data(), l, l, context_.threads);
        inside_ = basis_.project(w);
        basis_.tell(inside_);
        std::vector<double> residuals = w.lengths();
        for (std::int64_t j = 0; j < l; ++j) {
            residuals[at(j)] = residual_of(residuals[at(j)], small.sigma[at(j)], floor_ * small.sigma.front());
        }
        from_rank_0(context_, residuals);
        locked_ = 0;
        while (locked_ < count_ && residuals[at(locked_)] <= floor_ * small.sigma.front()) {
            ++locked_;
        }
        const double factor = passes_.factor();
        quality_.converged = judge(small.sigma, residuals, 0);
        quality_.residuals.assign(residuals.begin(), residuals.begin() + count_);
        for (double& residual : quality_.residuals) {
            residual /= factor;
        }
        quality_.rounding = floor_ * small.sigma.front() / factor;
        quality_.norm = std::sqrt(passes_.squares()) / factor;
        return quality_.converged;
    }

    /// Behind a reading that made V wider: X becomes what of AᵀA·X is outside, or the leading Ritz vectors, V gone,
    /// where they are to be measured.
    void look_at_space(Columns w, bool last_but_one) {
        const std::int64_t b = x_.columns;
        basis_.add(std::move(x_));
        basis_.tell(basis_.project(w));
        std::vector<double> r;
        Columns next = outside(std::move(w), r);
        const std::int64_t k = basis_.size();
        const Ritz ritz = basis_.ritz(context_, locked_);
        std::vector<double> sigma, residuals;
        for (std::int64_t j = 0; j < count_; ++j) {
            double sum = 0;
            for (std::int64_t i = 0; i < b; ++i) {
                double row = 0;
                for (std::int64_t p = i; p < b; ++p) {
                    row += r[at(p * b + i)] * ritz.s[at((k - b + p) * k + j)];
                }
                sum += row * row;
            }
            sigma.push_back(std::sqrt(std::max(0.0, ritz.theta[at(j)])));
            residuals.push_back(residual_of(std::sqrt(sum), sigma.back(), floor_ * sigma.front()));
        }
        from_rank_0(context_, residuals);
        const double first = sigma[at(std::min(locked_, count_ - 1))];
        const double noise = 4 * std::numeric_limits<double>::epsilon() * first * first;
        if (last_but_one || next.columns == 0 || judge(sigma, residuals, noise)) {
            x_ = basis_.combine(ritz.s.data(), std::min(columns_, k), k);
            basis_.clear();
            return;
        }
        if (k + next.columns > most_) {
            basis_.restart(ritz, std::min(std::max(columns_, most_ / 2), most_ - next.columns));
        }
        x_ = std::move(next);
    }

    /// An orthonormal basis of w, which V has been taken out of, orthogonal to V to rounding; without what was in V but
    /// for rounding. w = Q·r, r upper triangular, column by column.
    Columns outside(Columns w, std::vector<double>& r) const {
        std::vector<double> lengths = w.lengths(), inverse(lengths);
        for (std::size_t j = 0; j < lengths.size(); ++j) {
            inverse[j] = lengths[j] > 0 ? 1 / lengths[j] : 0;
        }
        w.scale(inverse);
        r = orthonormalize(context_, w).r;
        for (std::size_t j = 0; j < r.size(); ++j) {
            r[j] *= lengths[j / lengths.size()];
        }
        basis_.project(w);
        const Triangle left = orthonormalize(context_, w);
        const auto kept = std::count_if(left.sigma.begin(), left.sigma.end(), [](double part) { return part >= 0.5; });
        std::vector<double> chosen(at(w.columns * kept));
        for (std::int64_t j = 0; j < kept; ++j) {
            chosen[at(j * kept + j)] = 1;
        }
        return times(w, chosen.data(), kept, kept, context_.threads);
    }

    LowRankFactors<T> finish(std::shared_ptr<dist::TallQr<T>> tall, const Small& small) {
        const Columns& v = basis_.front();
        LowRankFactors<T> factors;
        factors.high = passes_.panels().mine();
        factors.width = width_;
        factors.transposed = passes_.panels().transposed();
        for (std::int64_t j = 0; j < count_; ++j) {
            factors.sigma.push_back(small.sigma[at(j)] / passes_.factor());
        }
        if (options_.values_only) {
            return factors;
        }
        {
            const Timed timed(context_.ledger, Phase::exchange, "hand down U");
            const std::vector<T> left(small.left.begin(), small.left.end());
            tall->hand_down(left.data(), count_, context_.threads);
        }
        mpi::together(context_.comm, [&] {
            factors.tall = tall->apply(context_.threads);
            factors.memory = std::move(tall);  // which holds those rows
            factors.across = Array<T>(width_ * count_);
            T* to = factors.across.data();
            for (std::int64_t i = 0; i < width_; ++i) {
                for (std::int64_t j = 0; j < count_; ++j) {
                    to[i * count_ + j] = static_cast<T>(v.numbers[at(i * v.columns + j)]);
                }
            }
        });
        return factors;
    }

    Context& context_;
    const Options& options_;
    std::int64_t least_, count_, columns_;  ///< min(M, N), K, and columns of a block
    Passes<T> passes_;
    std::int64_t width_, most_ = 0;  ///< columns of the space at most
    double floor_;                   ///< residuals that are rounding, relative to σ₁
    Array<T> q_;                     ///< what is multiplied next, padded
    Columns x_;                      ///< the same
    Basis basis_;
    std::int64_t locked_ = 0;     ///< columns of V that have converged to rounding
    std::vector<double> inside_;  ///< what of AᵀA·V is in V
    Quality quality_;
};

/// What was found, and how exactly.
template <class T>
void describe(const Finder<T>& finder, const LowRankFactors<T>& factors, const io::Region& a, Outcome& outcome) {
    const Quality& quality = finder.quality();
    Diagnostics& diagnostics = outcome.diagnostics;
    diagnostics.components = std::ssize(factors.sigma);
    diagnostics.sigma_max = factors.sigma.front();
    diagnostics.sigma_min = factors.sigma.back();
    const double smallest = diagnostics.sigma_max * std::numeric_limits<T>::epsilon() *
                            static_cast<double>(std::max(a.logical_rows(), a.logical_columns()));
    diagnostics.rank =
        std::count_if(factors.sigma.begin(), factors.sigma.end(), [&](double s) { return s > smallest; });
    diagnostics.reads = finder.reads();
    diagnostics.start = "block Krylov iteration, " + std::to_string(diagnostics.reads) + " readings, TSQR";
    diagnostics.converged = quality.converged;
    diagnostics.norm = quality.norm;
    diagnostics.tolerance = quality.tolerance;
    diagnostics.residuals = quality.residuals;
    for (std::size_t j = 0; j < factors.sigma.size(); ++j) {
        diagnostics.within +=
            quality.residuals[j] <= std::max(quality.tolerance * factors.sigma[j], quality.rounding) ? 1 : 0;
    }
    // ‖A − UΣVᵀ‖² = ‖A‖² − Σσ², of which rounding of ‖A‖² and of the larger σ hides what is small.
    const double least = static_cast<double>(std::min(a.logical_rows(), a.logical_columns()));
    if (static_cast<double>(diagnostics.components) < least) {
        double left = 1, unsure = 16 * std::numeric_limits<double>::epsilon();
        for (const double sigma : factors.sigma) {
            const double part = quality.norm > 0 ? sigma / quality.norm : 0;
            left -= part * part;
            unsure += quality.norm > 0 ? 2 * part * quality.rounding / quality.norm : 0;
        }
        left = quality.norm > 0 ? left : 0;
        const double bound = std::sqrt(std::max(left, 0.0) + unsure);
        const bool hidden = left < 4 * unsure;
        diagnostics.error_estimate = quality.norm > 0 ? hidden ? bound : std::sqrt(left) : 0;
        diagnostics.error_rounding = quality.norm > 0 ? hidden ? bound : bound - std::sqrt(left) : 0;
    }
    double most = 0;
    for (std::int64_t j = 0; j < diagnostics.rank; ++j) {
        const auto index = static_cast<std::size_t>(j);
        most = std::max(most, quality.residuals[index] / factors.sigma[index]);
    }
    diagnostics.sigma_error = most;
    if (!diagnostics.converged) {
        std::ostringstream warning;
        warning.precision(2);
        warning << "after " << diagnostics.reads << " readings singular values may have a relative error of up to "
                << most << " (requested: " << diagnostics.tolerance << "); the vectors are less accurate";
        outcome.warnings.push_back(warning.str());
    }
    outcome.flops = finder.flops();
    outcome.working = finder.working();
}

/// Some rows of a matrix, row by row.
template <class T> struct Rows {
    T* data = nullptr;
    grid::Range range;
    std::int64_t columns = 0;

    Rows part(grid::Range some) const { return {data + (some.begin - range.begin) * columns, some, columns}; }
    void scale(const std::vector<double>& factors) const {
        for (std::int64_t i = 0; i < range.size(); ++i) {
            for (std::int64_t j = 0; j < columns; ++j) {
                data[i * columns + j] = static_cast<T>(data[i * columns + j] * factors[static_cast<std::size_t>(j)]);
            }
        }
    }
};

template <class T> Array<T> transposed(const Rows<T>& rows) {
    const std::int64_t count = rows.range.size();
    Array<T> to(count * rows.columns);
    for (std::int64_t i = 0; i < count; ++i) {
        for (std::int64_t j = 0; j < rows.columns; ++j) {
            to[j * count + i] = rows.data[i * rows.columns + j];
        }
    }
    return to;
}

/// Each rank writes the rows of U and the part of Vᵀ that it has, and an equal part of what all have. Memory beside
/// `factors`: the part of Vᵀ, transposed, and what Writer needs. @note Collective.
template <class T> void write(Context& context, LowRankFactors<T>& factors, Writer& writer, bool sync) {
    const Timed timed(context.ledger, Phase::output, "output");
    const std::int64_t count = std::ssize(factors.sigma);
    Part part;
    part.s = factors.sigma;
    Array<T> vt;
    if (factors.memory != nullptr) {  // also where this rank has no rows of it
        const Rows<T> tall{factors.tall, factors.high, count},
            across = Rows<T>{factors.across.data(), {0, factors.width}, count}.part(
                grid::Partition(factors.width, context.comm.size())[context.comm.rank()]);
        const Rows<T>&u = factors.transposed ? across : tall, &v = factors.transposed ? tall : across;
        const std::vector<double> flips =
            signs(context.comm, Elements<T>{u.data, u.range.size(), count, count, 1}, u.range.begin);
        u.scale(flips);
        v.scale(flips);
        mpi::together(context.comm, [&] { vt = transposed(v); });
        part.u = reinterpret_cast<std::byte*>(u.data);
        part.u_share = grid::Block{u.range, {0, u.range.size() > 0 ? count : 0}};
        part.vt = vt.raw();
        part.vt_share = grid::Block{{0, v.range.size() > 0 ? count : 0}, v.range};
    }
    writer.write(context, part);
    writer.finish(context, sync);
}

template <class T>
Outcome run(Context& context, const io::Region& a, const Files& files, const Options& options) {
    Ledger& ledger = context.ledger;
    Writer writer = [&] {
        const Timed timed(ledger, Phase::output, "reserve");
        return Writer(context, files, options);
    }();
    Finder<T> finder(context, a, options);
    Outcome outcome;
    LowRankFactors<T> factors;
    outcome.samples = mpi::repeat(context, options.warmup, options.repeat, [&](bool) {
        factors = LowRankFactors<T>{};
        factors = finder();
    });
    describe(finder, factors, a, outcome);
    refuse_overflow(context, a, outcome.diagnostics.sigma_max, files.s.dtype);
    if (!finder.quality().enough) {
        mpi::together(context.comm, [&] {
            std::ostringstream text;
            const double left = outcome.diagnostics.error_estimate.value_or(0);
            text << a.name << ": " << outcome.diagnostics.components << " components leave " << left * left
                 << " of the sum of squares, but --energy leaves " << 1 - options.energy
                 << " at most; use a smaller --energy or more --memory";
            throw UsageError(text.str());
        });
    }
    if (!outcome.diagnostics.converged && options.power < 0 && options.require_converged) {
        outcome.verification = Verification{.method = "convergence",
                                            .passed = false,
                                            .error = outcome.diagnostics.sigma_error.value_or(0),
                                            .tolerance = outcome.diagnostics.tolerance};
        return outcome;
    }
    write(context, factors, writer, options.sync);
    return outcome;
}

}  // namespace

Outcome randomized(Context& context, const io::Region& a, const Files& files, Dtype dtype, const Options& wanted) {
    const std::int64_t most = std::min(a.logical_rows(), a.logical_columns());
    Options options = wanted;
    options.components = wanted.components > 0 ? wanted.components : most;
    mpi::together(context.comm, [&] {
        if (options.components < 1 || options.components > most) {
            throw UsageError(a.name + ": has " + std::to_string(most) + " singular values, not " +
                             std::to_string(options.components));
        }
        if (options.oversample < 0 || options.repeat < 1 || options.warmup < 0) {
            throw UsageError("oversampling must not be negative, and at least one repetition is needed");
        }
        if (dtype != Dtype::float32 && dtype != Dtype::float64) {
            throw UsageError("a decomposition is computed in float32 or float64, not in " +
                             std::string(name_of(dtype)));
        }
    });
    return dtype == Dtype::float32 ? run<float>(context, a, files, options) : run<double>(context, a, files, options);
}

}  // namespace tilewise::svd
