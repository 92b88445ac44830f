// `local`: LAPACK's gesdd, and `two_stage`: see kernel/factor/two_stage.hpp. The whole matrix on rank 0, in float64
// whatever the files hold; with more ranks these leave it the cores of their node. What lies row by row is the
// transpose column by column, and so is what is found:
//
//     A row by row = Aᵀ column by column = U'·S·V'ᵀ
//     U'  column by column (N×K) = Vᵀ row by row
//     V'ᵀ column by column (K×M) = U  row by row
//
// Of complex numbers V'ᴴ, which LAPACK gives, is U as well, and U' is Vᴴ: nothing is conjugated.
//
// Memory: m·n for the matrix, n·m + n² for the vectors, 4·n² for LAPACK, in float64 numbers, m ≥ n. `flops` of `local`
// are those of the usual estimate, 4·m·n² + 22·n³. With `keep_small` it may be jacobi that does it, after another
// reading.
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <optional>
#include <string>

#include "tilewise/base/buffer.hpp"
#include "tilewise/dist/column_comm.hpp"
#include "tilewise/kernel/factor/gesdd.hpp"
#include "tilewise/kernel/factor/two_stage.hpp"
#include "tilewise/kernel/transpose/transpose.hpp"
#include "tilewise/mpi/repeat.hpp"
#include "tilewise/mpi/sum.hpp"
#include "tilewise/mpi/together.hpp"
#include "tilewise/svd/result.hpp"
#include "tilewise/svd/source.hpp"
#include "tilewise/svd/svd.hpp"

namespace tilewise::svd {
namespace {

template <class T> class Local {
public:
    Local(Context& context, const io::Region& a, const Files& files, Dtype dtype, const Options& options)
        : context_(context),
          a_(a),
          options_(options),
          dtype_(dtype),
          two_stage_(options.algorithm == AlgorithmKind::two_stage),
          m_(a.logical_rows()),
          n_(a.logical_columns()),
          all_(std::min(m_, n_)),
          kept_(options.components > 0 ? options.components : all_),
          by_columns_(two_stage_ && m_ > n_),
          root_task_(context),
          input_(context, a, options.read, options.hints),
          writer_(reserve(files)) {}

    /// Nothing where small singular values would be lost that jacobi keeps, and that is wanted: then nothing is
    /// written.
    std::optional<Outcome> operator()() {
        read();
        outcome_.samples = mpi::repeat(context_, options_.warmup, options_.repeat, [&](bool last) {
            root_task_.run([&](int threads) { run_once(last, threads); });
        });
        tell();
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

    bool alone() const { return context_.comm.rank() == 0; }
    /// On rank 0 all of a result or of the input, elsewhere nothing.
    grid::Block share(int rank, std::int64_t rows, std::int64_t columns) const {
        return rank == 0 ? grid::Block{{0, rows}, {0, columns}} : grid::Block{};
    }

    /// Row by row, whatever the file has; column by column where that is what the algorithm takes.
    void read() {
        const Timed timed(context_.ledger, Phase::input, "input");
        mpi::together(context_.comm, [&] { matrix_ = Array<T>(alone() ? m_ * n_ : 0); });
        input_.load(
            context_, kernel::is_complex_number<T> ? Dtype::complex128 : Dtype::float64,
            [this](int rank) { return grid::Share(share(rank, m_, n_)); }, matrix_.raw());
        mpi::together(context_.comm, [&] {
            if (alone()) {
                lay_out();
                check_numbers();
            }
        });
    }

    void lay_out() {
        if (a_.stored_transposed() != by_columns_) {
            const std::int64_t lines = by_columns_ ? m_ : n_, length = by_columns_ ? n_ : m_;
            Array<T> turned(m_ * n_);
            kernel::transpose(matrix_.raw(), length * item, lines, length, sizeof(T), turned.raw(), lines * item,
                              context_.threads);
            matrix_ = std::move(turned);
        }
    }

    /// Refuses what is not finite, and notes whether rows or columns differ much in scale.
    void check_numbers() {
        const std::int64_t lines = by_columns_ ? n_ : m_, length = by_columns_ ? m_ : n_;
        std::vector<double> of_lines(static_cast<std::size_t>(lines)), across(static_cast<std::size_t>(length));
        const T* data = matrix_.data();
        constexpr std::int64_t parts = kernel::parts_of<T>;
        FirstNotFinite first;
        bool finite = true;
        for (std::int64_t i = 0; i < lines; ++i, data += length) {
            const double* reals = kernel::reals_of(data);
            if (!std::all_of(reals, reals + parts * length, [](double value) { return std::isfinite(value); })) {
                finite = false;
                for (std::int64_t j = 0; j < parts * length; ++j) {
                    first.note(by_columns_ ? j / parts * n_ + i : i * n_ + j / parts, reals[j]);
                }
            }
            double& of_line = of_lines[static_cast<std::size_t>(i)];
            for (std::int64_t j = 0; j < length; ++j) {
                double& of_other = across[static_cast<std::size_t>(j)];
                of_line = std::max(of_line, std::abs(data[j]));
                of_other = std::max(of_other, std::abs(data[j]));
            }
        }
        if (!finite) {
            first.refuse(a_);
        }
        range_ = std::max(range_of(of_lines), range_of(across));
    }

    void run_once(bool last, int threads) {
        if (loses_) {  // as the first round has found
            return;
        }
        // Norms of rows and columns differ by no less than their largest elements, but for the root of their length:
        // what takes long is not begun where all its values would be judged lost.
        if (two_stage_ && options_.keep_small && kept_ == all_ &&
            range_ > most_range * std::sqrt(static_cast<double>(std::max(m_, n_)))) {
            loses_ = true;
            return;
        }
        Array<T> work;
        if (last) {
            work = std::move(matrix_);
        } else {
            work = Array<T>(m_ * n_);
            std::copy_n(matrix_.data(), m_ * n_, work.data());
        }
        if (two_stage_) {
            if constexpr (!kernel::is_complex_number<T>) {
                in_two_stages(std::move(work), threads);
            }
        } else {
            by_gesdd(work, threads);
        }
    }

    void by_gesdd(const Array<T>& work, int threads) {
        s_.resize(static_cast<std::size_t>(all_));
        if (options_.values_only) {
            kernel::gesdd(n_, m_, work.data(), n_, s_.data(), nullptr, nullptr, threads);
            choose();
            return;
        }
        vt_ = Array<T>(n_ * all_);
        u_ = Array<T>(m_ * all_);
        kernel::gesdd(n_, m_, work.data(), n_, s_.data(), vt_.data(), u_.data(), threads);
        choose();
        point(all_);
    }

    /// A wide A lies row by row, which is its transpose column by column: U and V change places.
    void in_two_stages(Array<T> work, int threads) {
        kernel::TwoStageSvd svd(std::move(work), std::max(m_, n_), all_, !options_.values_only, threads, 0,
                                [this](double done) { context_.report(Phase::compute, done); });
        s_ = svd.sigma();
        choose();
        if (options_.values_only || loses_) {
            return;
        }
        u_ = by_columns_ ? svd.left(kept_, true) : svd.right(kept_, true);
        vt_ = by_columns_ ? svd.right(kept_, false) : svd.left(kept_, false);
        point(kept_);
    }

    /// How many are kept: known once the values are, where they are to have a share of the matrix.
    void choose() {
        const std::vector<double> sigma(s_.begin(), s_.end());
        kept_ = options_.energy > 0 ? std::min(kept_, components_with(sigma, options_.energy)) : kept_;
        left_ = left_by(sigma, kept_);
        loses_ =
            options_.keep_small && range_ > most_range && s_[0] > most_range * s_[static_cast<std::size_t>(kept_ - 1)];
    }

    /// Gives every pair of vectors its sign, and keeps of the `found` components those that are wanted.
    void point(std::int64_t found) {
        T* u = u_.data();
        const std::vector<T> way = signs(Elements<T>{u, m_, found, found, 1});
        for (std::int64_t i = 0; i < m_; ++i) {
            for (std::int64_t j = 0; j < kept_; ++j) {  // never overtaking what is still to be read
                u[i * kept_ + j] = u[i * found + j] * way[static_cast<std::size_t>(j)];
            }
        }
        for (std::int64_t j = 0; j < kept_; ++j) {
            if (const T back = kernel::conjugate(way[static_cast<std::size_t>(j)]); back != 1.0) {
                T* row = vt_.data() + j * n_;
                std::transform(row, row + n_, row, [&](const T& value) { return back * value; });
            }
        }
    }

    /// All ranks know what rank 0 found.
    void tell() {
        std::array<std::int64_t, 2> facts{kept_, loses_ ? 1 : 0};
        mpi::check(MPI_Bcast(facts.data(), 2, MPI_INT64_T, 0, context_.comm.get()), "MPI_Bcast");
        kept_ = facts[0];
        loses_ = facts[1] != 0;
        s_.resize(static_cast<std::size_t>(all_));
        mpi::check(MPI_Bcast(s_.data(), static_cast<int>(all_), MPI_DOUBLE, 0, context_.comm.get()), "MPI_Bcast");
        left_ = mpi::of_root(context_.comm, left_);
        outcome_.working = alone();
    }

    void describe() {
        const auto m = static_cast<double>(std::max(m_, n_)), n = static_cast<double>(all_);
        outcome_.flops = (4 * m * n * n + 22 * n * n * n) * kernel::parts_of<T> * kernel::parts_of<T>;
        if (two_stage_) {
            outcome_.flops =
                options_.values_only ? 4 * m * n * n - 4.0 / 3 * n * n * n : 8 * m * n * n + 16.0 / 3 * n * n * n;
        }
        Diagnostics& diagnostics = outcome_.diagnostics;
        diagnostics.components = kept_;
        say_left(diagnostics, left_, all_);
        const double limit = s_[0] * m * std::numeric_limits<double>::epsilon();
        diagnostics.rank = std::count_if(s_.begin(), s_.end(), [&](double value) { return value > limit; });
        diagnostics.sigma_max = s_[0];
        diagnostics.sigma_min = s_[static_cast<std::size_t>(kept_ - 1)];
        diagnostics.start = two_stage_ ? "full to band, band to bidiagonal, divide and conquer" : "LAPACK gesdd";
        diagnostics.reads = 1;
    }

    void write() {
        const Timed timed(context_.ledger, Phase::output, "output");
        const int rank = context_.comm.rank();
        if (!options_.values_only && alone()) {
            narrow(u_.raw(), m_ * kept_, dtype_);
            narrow(vt_.raw(), kept_ * n_, dtype_);
        }
        Part part{
            {s_.begin(), s_.begin() + kept_}, u_.raw(), share(rank, m_, kept_), vt_.raw(), share(rank, kept_, n_)};
        writer_.write(context_, part);
        writer_.finish(context_, options_.sync);
    }

    static constexpr auto item = static_cast<std::int64_t>(sizeof(T));

    Context& context_;
    const io::Region& a_;
    const Options& options_;
    Dtype dtype_;
    bool two_stage_;
    std::int64_t m_, n_, all_, kept_;
    bool by_columns_;  ///< how A lies in memory
    dist::RootTask root_task_;
    io::Input input_;
    Writer writer_;
    Array<T> matrix_, u_, vt_;
    std::vector<double> s_;
    double range_ = 1;    ///< by how much rows or columns differ in scale;
    bool loses_ = false;  ///< small singular values get lost by that
    double left_ = 0;
    Outcome outcome_;
};

}  // namespace

Outcome local(Context& context, const io::Region& a, const Files& files, Dtype dtype, const Options& options) {
    if (std::optional<Outcome> done = is_complex(a.dtype) ? Local<kernel::Complex>(context, a, files, dtype, options)()
                                                          : Local<double>(context, a, files, dtype, options)()) {
        return std::move(*done);
    }
    Options kept = options;
    if (context.comm.size() > 1) {
        kept.exchange = mpi::ExchangeKind::nonblocking;
    }
    Outcome outcome = jacobi(context, a, files, dtype, kept);
    outcome.diagnostics.algorithm = "jacobi";
    outcome.diagnostics.fallback = std::string("Rows or columns differ so much in scale that ") +
                                   (options.algorithm == AlgorithmKind::two_stage ? "two_stage" : "gesdd") +
                                   " would lose small singular values.";
    outcome.diagnostics.reads += 1;
    return outcome;
}

}  // namespace tilewise::svd
