// What each reading is looked at for: residuals, what to multiply next, and when it is enough.
#include "tilewise/svd/randomized_finder.hpp"

#include <cmath>
#include <limits>

#include "tilewise/base/random.hpp"
#include "tilewise/base/threads.hpp"
#include "tilewise/kernel/factor/svd_local.hpp"
#include "tilewise/mpi/datatype.hpp"
#include "tilewise/mpi/together.hpp"
#include "tilewise/svd/energy.hpp"

namespace tilewise::svd {
namespace {

constexpr std::int64_t first_guess = 20;  // components, where a share of the matrix is wanted

std::size_t at(std::int64_t index) { return static_cast<std::size_t>(index); }

/// ‖Aᵀu − σv‖ out of what of AᵀA·v is outside V, which is σ times that. Where σ is less than rounding of σ₁, both are
/// rounding, and so would be their ratio.
double residual_of(double outside, double sigma, double rounding) {
    return outside > 0 ? outside / std::max({sigma, rounding, std::numeric_limits<double>::min()}) : 0;
}

}  // namespace

template <class T>
Finder<T>::Finder(Context& context, const io::Region& a, const Options& options)
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
    quality_.tolerance =
        options.tolerance > 0 ? options.tolerance : usual_tolerance(sizeof(T) == 4 ? Dtype::float32 : Dtype::float64);
}

/// The space has room for the least number of blocks, whatever the plan says.
template <class T> void Finder<T>::size_space() {
    const std::int64_t usual = usual_basis(columns_);
    most_ = std::max(least_basis_blocks * columns_, options_.basis > 0 ? std::min(options_.basis, usual) : usual);
}

/// How many components have the share that is wanted, as far as is known; whether they have it.
template <class T> bool Finder<T>::choose_count(const std::vector<double>& sigma) {
    if (options_.energy <= 0) {
        return true;
    }
    const double all = passes_.squares() / std::max(sigma.front() * sigma.front(), std::numeric_limits<double>::min());
    count_ = fewest_with(sigma, std::min(options_.energy, 1 - 2 * floor_) * all);
    const std::int64_t most = std::min(options_.components, columns_);
    const bool enough = count_ <= most;
    count_ = std::min(count_, most);
    return enough;
}

template <class T> LowRankFactors<T> Finder<T>::operator()() {
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
            std::transform(x_.numbers.begin(), x_.numbers.end(), w.numbers.begin(), x_.numbers.begin(), std::plus<>());
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

/// Makes X wider by random directions, which are all orthonormal then.
template <class T> void Finder<T>::append_random(std::int64_t columns) {
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
template <class T> void Finder<T>::set_q() {
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

template <class T> typename Finder<T>::Small Finder<T>::decompose(dist::TallQr<T>& tall) const {
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
template <class T>
bool Finder<T>::judge(const std::vector<double>& sigma, const std::vector<double>& residuals, double noise) {
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
template <class T> bool Finder<T>::look_at_block(Columns& w, const Small& small) {
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

/// Behind a reading that made V wider: X becomes what of AᵀA·X is outside, or the leading Ritz vectors, V gone, where
/// they are to be measured.
template <class T> void Finder<T>::look_at_space(Columns w, bool last_but_one) {
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

/// An orthonormal basis of w, which V has been taken out of, orthogonal to V to rounding; without what was in V but for
/// rounding. w = Q·r, r upper triangular, column by column.
template <class T> Columns Finder<T>::outside(Columns w, std::vector<double>& r) const {
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

template <class T> LowRankFactors<T> Finder<T>::finish(std::shared_ptr<dist::TallQr<T>> tall, const Small& small) {
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

template class Finder<float>;
template class Finder<double>;

}  // namespace tilewise::svd
