// LAPACK on one rank, in float64 whatever the files hold. What lies row by row is the transpose column by column, and so is what LAPACK finds:
//
//     A row by row = Aᵀ column by column = U'·S·V'ᵀ        U' column by column (N×K) = Vᵀ row by row,   V'ᵀ column by column (K×M) = U row by row
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <optional>

#include "tilewise/kernel/svd_local.hpp"
#include "tilewise/kernel/transpose.hpp"
#include "tilewise/mpi/together.hpp"
#include "tilewise/svd/energy.hpp"
#include "tilewise/svd/jacobi.hpp"
#include "tilewise/svd/rounds.hpp"
#include "tilewise/svd/signs.hpp"
#include "tilewise/svd/writer.hpp"

namespace tilewise::svd {
namespace {

void check_finite(const io::Region& a, const std::vector<double>& row, std::int64_t index) {
    for (std::size_t column = 0; column < row.size(); ++column) {
        if (!std::isfinite(row[column])) {
            refuse_number(a, index, static_cast<std::int64_t>(column), row[column]);
        }
    }
}

// gesdd errs in each singular value by rounding of the largest one: one smaller by more than this loses the thirteenth digit, which the algorithm jacobi
// keeps where rows or columns differ as much in scale.
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

class Local {
public:
    Local(Context& context, const io::Region& a, const Files& files, Dtype dtype, const Options& options)
        : context_(context),
          a_(a),
          options_(options),
          dtype_(dtype),
          m_(a.wanted_rows()),
          n_(a.wanted_columns()),
          all_(std::min(m_, n_)),
          kept_(options.components > 0 ? options.components : all_),
          input_(context, a, options.read, options.hints),
          writer_(reserve(files)) {}

    /// Nothing where small singular values would be lost that jacobi keeps, and that is wanted: then nothing is written.
    std::optional<Outcome> operator()() {
        read();
        outcome_.samples = run_rounds(context_, options_.warmup, options_.repeat, [&](bool last) {
            const Timed timed(context_.ledger, Phase::compute, "gesdd");
            mpi::together(context_.comm, [&] { run_once(last); });
        });
        if (loses_) {
            return std::nullopt;
        }
        describe();
        refuse_overflow(context_, a_, outcome_.shown.sigma_max, dtype_);
        write();
        return std::move(outcome_);
    }

private:
    Writer reserve(const Files& files) {
        const Timed timed(context_.ledger, Phase::output, "reserve");
        return {context_, files, options_};
    }

    static double* numbers(const Buffer& buffer) { return reinterpret_cast<double*>(buffer.data()); }
    static Buffer memory(std::int64_t count) {
        return Buffer(static_cast<std::size_t>(std::max<std::int64_t>(1, count)) * sizeof(double));
    }

    /// Row by row, whatever the file has.
    void read() {
        const Timed timed(context_.ledger, Phase::input, "input");
        mpi::together(context_.comm, [&] { matrix_ = memory(m_ * n_); });
        input_.load(
            context_, Dtype::float64, [this](int) { return grid::Share(grid::Block{{0, m_}, {0, n_}}); },
            matrix_.data());
        mpi::together(context_.comm, [&] {
            if (a_.stored_transposed()) {
                Buffer by_rows = memory(m_ * n_);
                kernel::transpose(matrix_.data(), m_ * item, n_, m_, sizeof(double), by_rows.data(), n_ * item,
                                  context_.threads);
                matrix_ = std::move(by_rows);
            }
            std::vector<double> of_rows(static_cast<std::size_t>(m_)), of_columns(static_cast<std::size_t>(n_));
            const double* data = numbers(matrix_);
            for (std::int64_t i = 0; i < m_; ++i, data += n_) {
                const bool finite = std::all_of(data, data + n_, [](double value) { return std::isfinite(value); });
                if (!finite) {
                    check_finite(a_, {data, data + n_}, i);
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
        Buffer work;
        if (last) {
            work = std::move(matrix_);
        } else {
            work = memory(m_ * n_);
            std::memcpy(work.data(), matrix_.data(), static_cast<std::size_t>(m_ * n_ * item));
        }
        s_.resize(static_cast<std::size_t>(all_));
        if (options_.values_only) {
            kernel::gesdd(n_, m_, numbers(work), n_, s_.data(), nullptr, nullptr, context_.threads);
            choose();
            return;
        }
        vt_ = memory(n_ * all_);
        u_ = memory(m_ * all_);
        kernel::gesdd(n_, m_, numbers(work), n_, s_.data(), numbers(vt_), numbers(u_), context_.threads);
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
        double* u = numbers(u_);
        const std::vector<double> way = signs(Elements<double>{u, m_, all_, all_, 1});
        for (std::int64_t i = 0; i < m_; ++i) {
            for (std::int64_t j = 0; j < kept_; ++j) {  // never overtaking what is still to be read
                u[i * kept_ + j] = u[i * all_ + j] * way[static_cast<std::size_t>(j)];
            }
        }
        for (std::int64_t j = 0; j < kept_; ++j) {
            if (way[static_cast<std::size_t>(j)] < 0) {
                double* row = numbers(vt_) + j * n_;
                std::transform(row, row + n_, row, [](double value) { return -value; });
            }
        }
    }

    void describe() {
        const auto m = static_cast<double>(std::max(m_, n_)), n = static_cast<double>(all_);
        outcome_.flops = 4 * m * n * n + 22 * n * n * n;
        Shown& shown = outcome_.shown;
        shown.components = kept_;
        say_left(shown, left_, all_);
        const double limit = s_[0] * m * std::numeric_limits<double>::epsilon();
        shown.rank = std::count_if(s_.begin(), s_.end(), [&](double value) { return value > limit; });
        shown.sigma_max = s_[0];
        shown.sigma_min = s_[static_cast<std::size_t>(kept_ - 1)];
        shown.start = "LAPACK gesdd";
        shown.reads = 1;
    }

    void write() {
        const Timed timed(context_.ledger, Phase::output, "output");
        if (!options_.values_only) {
            narrow(u_.data(), m_ * kept_, dtype_);
            narrow(vt_.data(), kept_ * n_, dtype_);
        }
        Part part{{s_.begin(), s_.begin() + kept_},
                  u_.data(),
                  grid::Block{{0, m_}, {0, kept_}},
                  vt_.data(),
                  grid::Block{{0, kept_}, {0, n_}}};
        writer_.write(context_, part);
        writer_.finish(context_, options_.sync);
    }

    static constexpr auto item = static_cast<std::int64_t>(sizeof(double));

    Context& context_;
    const io::Region& a_;
    const Options& options_;
    Dtype dtype_;
    std::int64_t m_, n_, all_, kept_;
    io::Input input_;
    Writer writer_;
    Buffer matrix_, u_, vt_;
    std::vector<double> s_;
    bool graded_ = false;  ///< whether rows or columns differ much in scale,
    bool loses_ = false;   ///< and small singular values get lost by that
    double left_ = 0;
    Outcome outcome_;
};

}  // namespace

Outcome local(Context& context, const io::Region& a, const Files& files, Dtype dtype, const Options& options) {
    if (std::optional<Outcome> done = Local(context, a, files, dtype, options)()) {
        return std::move(*done);
    }
    Outcome outcome = jacobi(context, a, files, dtype, options);
    outcome.shown.algorithm = "jacobi";
    outcome.shown.fallback = "Rows or columns differ so much in scale that gesdd would lose small singular values.";
    outcome.shown.reads += 1;
    return outcome;
}

}  // namespace tilewise::svd
