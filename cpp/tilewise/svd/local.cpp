// LAPACK on one rank, in float64 whatever the files hold. What lies row by row is the transpose column by column, and
// so is what LAPACK finds:
//
//     A row by row = Aᵀ column by column = U'·S·V'ᵀ
//     U'  column by column (N×K) = Vᵀ row by row
//     V'ᵀ column by column (K×M) = U  row by row
//
// Of complex numbers V'ᴴ, which LAPACK gives, is U as well, and U' is Vᴴ: nothing is conjugated.
#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "tilewise/base/array.hpp"
#include "tilewise/kernel/svd_local.hpp"
#include "tilewise/kernel/transpose.hpp"
#include "tilewise/mpi/repeat.hpp"
#include "tilewise/mpi/together.hpp"
#include "tilewise/svd/energy.hpp"
#include "tilewise/svd/jacobi.hpp"
#include "tilewise/svd/not_finite.hpp"
#include "tilewise/svd/signs.hpp"
#include "tilewise/svd/writer.hpp"

namespace tilewise::svd {
namespace {

// gesdd errs in each singular value by rounding of the largest one: one smaller by more than this loses the thirteenth
// digit, which the algorithm jacobi keeps where rows or columns differ as much in scale.
constexpr double most_range = 1e3;

/// The largest of some magnitudes over the smallest that is not 0.
double range_of(const std::vector<double>& magnitudes) {
    double least = std::numeric_limits<double>::infinity(), most = 0;
    for (const double value : magnitudes) {
        least = value > 0 ? std::min(least, value) : least;
        most = std::max(most, value);
    }
    return most / least;
}

template <class T> class Local {
public:
    Local(Context& context, const io::Region& a, const Files& files, Dtype dtype, const Options& options)
        : context_(context),
          a_(a),
          options_(options),
          dtype_(dtype),
          m_(a.logical_rows()),
          n_(a.logical_columns()),
          all_(std::min(m_, n_)),
          kept_(options.components > 0 ? options.components : all_),
          input_(context, a, options.read, options.hints),
          writer_(reserve(files)) {}

    /// Nothing where small singular values would be lost that jacobi keeps, and that is wanted: then nothing is
    /// written.
    std::optional<Outcome> operator()() {
        read();
        outcome_.samples = mpi::repeat(context_, options_.warmup, options_.repeat, [&](bool last) {
            const Timed timed(context_.ledger, Phase::compute, "gesdd");
            mpi::together(context_.comm, [&] { run_once(last); });
        });
        if (loses_) {
            return std::nullopt;
        }
        describe();
        refuse_overflow(context_, a_, outcome_.diagnostics.sigma_max, dtype_);
        write();
        return std::move(outcome_);
    }

private:
    Writer reserve(const Files& files) {
        const Timed timed(context_.ledger, Phase::output, "reserve");
        return {context_, files, options_};
    }

    /// Row by row, whatever the file has.
    void read() {
        const Timed timed(context_.ledger, Phase::input, "input");
        mpi::together(context_.comm, [&] { matrix_ = Array<T>(m_ * n_); });
        input_.load(
            context_, kernel::is_complex_number<T> ? Dtype::complex128 : Dtype::float64,
            [this](int) { return grid::Share(grid::Block{{0, m_}, {0, n_}}); }, matrix_.raw());
        mpi::together(context_.comm, [&] {
            if (a_.stored_transposed()) {
                Array<T> by_rows(m_ * n_);
                kernel::transpose(matrix_.raw(), m_ * item, n_, m_, sizeof(T), by_rows.raw(), n_ * item,
                                  context_.threads);
                matrix_ = std::move(by_rows);
            }
            std::vector<double> of_rows(static_cast<std::size_t>(m_)), of_columns(static_cast<std::size_t>(n_));
            const T* data = matrix_.data();
            constexpr std::int64_t parts = kernel::parts_of<T>;
            for (std::int64_t i = 0; i < m_; ++i, data += n_) {
                const double* reals = kernel::reals_of(data);
                const bool finite =
                    std::all_of(reals, reals + parts * n_, [](double value) { return std::isfinite(value); });
                if (!finite) {
                    FirstNotFinite first;
                    for (std::int64_t j = 0; j < parts * n_; ++j) {
                        first.note(i * n_ + j / parts, reals[j]);
                    }
                    first.refuse(a_);
                }
                double& of_row = of_rows[static_cast<std::size_t>(i)];
                for (std::int64_t j = 0; j < n_; ++j) {
                    double& of_column = of_columns[static_cast<std::size_t>(j)];
                    of_row = std::max(of_row, std::abs(data[j]));
                    of_column = std::max(of_column, std::abs(data[j]));
                }
            }
            graded_ = std::max(range_of(of_rows), range_of(of_columns)) > most_range;
        });
    }

    void run_once(bool last) {
        if (loses_) {  // as the first round has found
            return;
        }
        Array<T> work;
        if (last) {
            work = std::move(matrix_);
        } else {
            work = Array<T>(m_ * n_);
            std::copy_n(matrix_.data(), m_ * n_, work.data());
        }
        s_.resize(static_cast<std::size_t>(all_));
        if (options_.values_only) {
            kernel::gesdd(n_, m_, work.data(), n_, s_.data(), nullptr, nullptr, context_.threads);
            choose();
            return;
        }
        vt_ = Array<T>(n_ * all_);
        u_ = Array<T>(m_ * all_);
        kernel::gesdd(n_, m_, work.data(), n_, s_.data(), vt_.data(), u_.data(), context_.threads);
        choose();
        point();
    }

    /// How many are kept: known once the values are, where they are to have a share of the matrix.
    void choose() {
        const std::vector<double> sigma(s_.begin(), s_.end());
        kept_ = options_.energy > 0 ? std::min(kept_, components_with(sigma, options_.energy)) : kept_;
        left_ = left_by(sigma, kept_);
        loses_ = options_.keep_small && graded_ && s_[0] > most_range * s_[static_cast<std::size_t>(kept_ - 1)];
    }

    /// Gives every pair of vectors its sign, and keeps the components that are wanted.
    void point() {
        T* u = u_.data();
        const std::vector<T> way = signs(Elements<T>{u, m_, all_, all_, 1});
        for (std::int64_t i = 0; i < m_; ++i) {
            for (std::int64_t j = 0; j < kept_; ++j) {  // never overtaking what is still to be read
                u[i * kept_ + j] = u[i * all_ + j] * way[static_cast<std::size_t>(j)];
            }
        }
        for (std::int64_t j = 0; j < kept_; ++j) {
            if (const T back = kernel::conjugate(way[static_cast<std::size_t>(j)]); back != 1.0) {
                T* row = vt_.data() + j * n_;
                std::transform(row, row + n_, row, [&](const T& value) { return back * value; });
            }
        }
    }

    void describe() {
        const auto m = static_cast<double>(std::max(m_, n_)), n = static_cast<double>(all_);
        outcome_.flops = (4 * m * n * n + 22 * n * n * n) * kernel::parts_of<T> * kernel::parts_of<T>;
        Diagnostics& diagnostics = outcome_.diagnostics;
        diagnostics.components = kept_;
        say_left(diagnostics, left_, all_);
        const double limit = s_[0] * m * std::numeric_limits<double>::epsilon();
        diagnostics.rank = std::count_if(s_.begin(), s_.end(), [&](double value) { return value > limit; });
        diagnostics.sigma_max = s_[0];
        diagnostics.sigma_min = s_[static_cast<std::size_t>(kept_ - 1)];
        diagnostics.start = "LAPACK gesdd";
        diagnostics.reads = 1;
    }

    void write() {
        const Timed timed(context_.ledger, Phase::output, "output");
        if (!options_.values_only) {
            narrow(u_.raw(), m_ * kept_, dtype_);
            narrow(vt_.raw(), kept_ * n_, dtype_);
        }
        Part part{{s_.begin(), s_.begin() + kept_},
                  u_.raw(),
                  grid::Block{{0, m_}, {0, kept_}},
                  vt_.raw(),
                  grid::Block{{0, kept_}, {0, n_}}};
        writer_.write(context_, part);
        writer_.finish(context_, options_.sync);
    }

    static constexpr auto item = static_cast<std::int64_t>(sizeof(T));

    Context& context_;
    const io::Region& a_;
    const Options& options_;
    Dtype dtype_;
    std::int64_t m_, n_, all_, kept_;
    io::Input input_;
    Writer writer_;
    Array<T> matrix_, u_, vt_;
    std::vector<double> s_;
    bool graded_ = false;  ///< whether rows or columns differ much in scale,
    bool loses_ = false;   ///< and small singular values get lost by that
    double left_ = 0;
    Outcome outcome_;
};

}  // namespace

Outcome local(Context& context, const io::Region& a, const Files& files, Dtype dtype, const Options& options) {
    if (std::optional<Outcome> done = is_complex(a.dtype) ? Local<kernel::Complex>(context, a, files, dtype, options)()
                                                          : Local<double>(context, a, files, dtype, options)()) {
        return std::move(*done);
    }
    Outcome outcome = jacobi(context, a, files, dtype, options);
    outcome.diagnostics.algorithm = "jacobi";
    outcome.diagnostics.fallback =
        "Rows or columns differ so much in scale that gesdd would lose small singular values.";
    outcome.diagnostics.reads += 1;
    return outcome;
}

}  // namespace tilewise::svd
