// `tall`: of a matrix that is much longer one way than the other, and larger than memory.
//
// A = U·diag(s)·Vᵀ in two readings of A, in float64 or complex128 whatever the files hold: the first one, forwards,
// makes R of A's QR, panel after panel, of which s and V follow; the second one U, backwards, by the reflections of
// each panel, which are made again out of its rows and the triangle before it. These triangles lie in a file without a
// name beside the output meanwhile, n²/2 numbers a panel and lane. U is orthonormal to rounding whatever A is. Where
// the files are float32 and singular values do not differ by more than that allows, U is A·V·diag(1/s), which float64
// makes as orthonormal, for less. Where A is tall, U is read and written once more, to get its signs. With
// `values_only` one reading is all. `panel_bytes`: of A in float64 in a node's memory at a time; `repeat` and `warmup`
// are not known.
//
// Memory of a rank, in numbers, with W m×n over the ranks, K components, c lanes (see TallSteps) and steps of h rows,
// max(h, c·n) if that is more: 2·h·n, and 4.5·c·n² + 2·c·n·K for its lanes. Between the readings, without the 2·h·n:
// 2·c·n² + 2·n² for what ranks combine, and on rank 0 10·n² for the decomposition of R.
//
// Design: docs/design/svd.md
#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tilewise/base/buffer.hpp"
#include "tilewise/base/threads.hpp"
#include "tilewise/dist/column_comm.hpp"
#include "tilewise/dist/tall_qr.hpp"
#include "tilewise/kernel/factor/gesdd.hpp"
#include "tilewise/kernel/factor/lapack.hpp"
#include "tilewise/kernel/factor/stacked_qr.hpp"
#include "tilewise/kernel/scalar.hpp"
#include "tilewise/kernel/transpose/transpose.hpp"
#include "tilewise/mpi/datatype.hpp"
#include "tilewise/mpi/repeat.hpp"
#include "tilewise/mpi/together.hpp"
#include "tilewise/svd/jacobi_ends.hpp"
#include "tilewise/svd/result.hpp"
#include "tilewise/svd/source.hpp"
#include "tilewise/svd/svd.hpp"
#include "tilewise/svd/tall_rows.hpp"

namespace tilewise::svd {
namespace {

using kernel::lapack_int;

/// The upper triangle of n columns, column after column, and back.
template <class T> void pack(const T* r, std::int64_t n, T* to) {
    for (std::int64_t j = 0; j < n; ++j) {
        to = std::copy_n(r + j * n, j + 1, to);
    }
}
template <class T> void unpack(const T* from, std::int64_t n, T* r) {
    for (std::int64_t j = 0; j < n; from += ++j) {
        std::copy_n(from, j + 1, r + j * n);
    }
}

/// The rows that one thread meets, as a chain of QRs: forwards to the triangle of all of them, backwards to their rows
/// of Q.
///
///     head    Q₀·R₀            B₀ ─▶ Q₀·B₀                each step of the way back takes n×K numbers from the one
///     panel 1 [R₀; P₁] = Q₁R₁  Q₁·[B₁; 0] = [B₀; U₁]      that follows, and leaves as many to the one before
///     panel 2 [R₁; P₂] = Q₂R₂  Q₂·[B₂; 0] = [B₁; U₂]
///
/// What is kept of each panel is the triangle before it. Its reflections are made again from that and its rows.
/// Memory, in numbers: 3·n² and, after turn(), 2·n·K. Not collective; the BLAS's threads are the caller's affair.
template <class T> class RowChain {
public:
    explicit RowChain(std::int64_t columns)
        : n_(columns),
          head_(columns * columns),
          r_(columns * columns),
          t_(columns * columns),
          tau_(static_cast<std::size_t>(columns)) {}

    /// The first rows (n at most), column by column, `stride` apart. Forgets what was before.
    void begin(const T* rows, std::int64_t count, std::int64_t stride) {
        height_ = count;
        std::fill_n(r_.data(), n_ * n_, T{});
        if (count == 0) {
            return;
        }
        for (std::int64_t j = 0; j < n_; ++j) {
            std::copy_n(rows + j * stride, count, head_.data() + j * count);
        }
        std::vector<T> work(static_cast<std::size_t>(64 * n_));
        kernel::check_lapack(kernel::lapack::geqrf(lapack_int(count), lapack_int(n_), head_.data(), lapack_int(count),
                                                   tau_.data(), work.data(), lapack_int(std::ssize(work))),
                             "geqrf");
        for (std::int64_t j = 0; j < n_; ++j) {
            std::copy_n(head_.data() + j * count, std::min(j + 1, count), r_.data() + j * n_);
        }
    }

    /// A panel of further rows, which is destroyed; only after n rows. `before` gets the packed triangle of those
    /// before it.
    void add(T* panel, std::int64_t rows, std::int64_t stride, T* before) {
        pack(r_.data(), n_, before);
        kernel::stacked_qr(n_, r_.data(), rows, panel, stride, t_.data(), kernel::Reflectors::triangle);
    }

    /// The triangle of all rows so far, column by column, n apart, with zeros below; `height` rows of it are not 0.
    const T* r() const { return r_.data(); }
    std::int64_t height() const { return height_; }

    /// From here on backwards: `b` (height×K), row by row, is what all rows are to be multiplied with.
    void turn(const T* b, std::int64_t count) {
        count_ = count;
        b_ = Array<T>(n_ * count);
        c_ = Array<T>(n_ * count);
        for (std::int64_t i = 0; i < height_; ++i) {
            for (std::int64_t j = 0; j < count; ++j) {
                b_[j * height_ + i] = b[i * count + j];
            }
        }
    }

    /// The last panel that was not yet met on the way back: its rows of the product, in place of U, column by column
    /// `stride` apart, or row by row without gaps.
    void back(T* panel, std::int64_t rows, std::int64_t panel_stride, const T* before, T* u, std::int64_t u_stride,
              bool by_rows) {
        if (rows == 0) {
            return;
        }
        unpack(before, n_, r_.data());
        kernel::stacked_qr(n_, r_.data(), rows, panel, panel_stride, t_.data(), kernel::Reflectors::whole);
        kernel::stacked_top(n_, count_, t_.data(), b_.data(), c_.data());
        const int high = lapack_int(rows), n = lapack_int(n_), k = lapack_int(count_), ldv = lapack_int(panel_stride);
        if (by_rows) {  // the transpose, column by column
            kernel::lapack::gemm("T", "T", k, high, n, -1.0, c_.data(), n, panel, ldv, 0.0, u, k);
        } else {
            kernel::lapack::gemm("N", "N", high, k, n, -1.0, panel, ldv, c_.data(), n, 0.0, u, lapack_int(u_stride));
        }
    }

    /// At last the rows that begin() was given.
    void back_to_head(T* u, std::int64_t u_stride, bool by_rows) {
        if (height_ == 0 || count_ == 0) {
            return;
        }
        std::vector<T> work(static_cast<std::size_t>(32 * count_ + 65 * 64));
        kernel::check_lapack(
            kernel::lapack::ormqr(lapack_int(height_), lapack_int(count_), lapack_int(std::min(height_, n_)),
                                  head_.data(), lapack_int(height_), tau_.data(), b_.data(), lapack_int(height_),
                                  work.data(), lapack_int(std::ssize(work))),
            "ormqr");
        for (std::int64_t j = 0; j < count_; ++j) {
            for (std::int64_t i = 0; i < height_; ++i) {
                u[by_rows ? i * count_ + j : j * u_stride + i] = b_[j * height_ + i];
            }
        }
    }

private:
    std::int64_t n_, height_ = 0, count_ = 0;
    Array<T> head_, r_, t_, b_, c_;
    std::vector<T> tau_;
};

template <class T> struct TriangleSvd {
    std::vector<double> s;  ///< descending
    Array<T> u, vh;         ///< n×n, column by column; nothing where they are not wanted
};

template <class T> std::vector<double> norms_of_columns(std::int64_t n, const T* r) {
    std::vector<double> norms(static_cast<std::size_t>(n), 0.0);
    for (std::int64_t j = 0; j < n; ++j) {
        for (std::int64_t i = 0; i <= j; ++i) {
            double& norm = norms[static_cast<std::size_t>(j)];
            norm = std::hypot(norm, std::abs(r[j * n + i]));
        }
    }
    return norms;
}

bool by_rotations(TriangleSvd<double>& found, std::int64_t n, double* r, int threads) {
    Array<double> copy(n * n), v(n * n);
    std::copy_n(r, n * n, copy.data());
    const kernel::Columns u{found.u.data(), n, n, n};
    const JacobiFacts facts =
        jacobi_svd({copy.data(), n, n, n}, found.s.data(), u, {v.data(), n, n, n}, {.threads = threads});
    const auto line = n * static_cast<std::int64_t>(sizeof(double));
    kernel::transpose(v.raw(), line, n, n, sizeof(double), found.vh.raw(), line, threads);
    return facts.converged;
}

/// R = U·diag(s)·Vᴴ, R n×n, column by column, which is destroyed. By gesdd, or by rotations where real columns differ
/// so much in scale that gesdd would lose small singular values. Memory, in numbers: 9·n² beside R. Not collective.
template <class T> TriangleSvd<T> decompose_triangle(std::int64_t n, T* r, bool vectors, int threads) {
    TriangleSvd<T> found;
    found.s.resize(static_cast<std::size_t>(n));
    if constexpr (!kernel::is_complex_number<T>) {
        if (range_of(norms_of_columns(n, r)) > most_range) {
            found.u = Array<T>(n * n);
            found.vh = Array<T>(n * n);
            if (by_rotations(found, n, r, threads)) {
                return found;
            }
        }
    }
    if (vectors) {
        found.u = Array<T>(n * n);
        found.vh = Array<T>(n * n);
    }
    kernel::gesdd(n, n, r, n, found.s.data(), vectors ? found.u.data() : nullptr, vectors ? found.vh.data() : nullptr,
                  threads);
    return found;
}

/// The short one, row by row: Vᵀ (K×n), or, `across`, U (n×K), out of V of W, conjugated and transposed, n×n, column by
/// column. Of U the signs are in V already; those of Vᵀ are `ways`, K of them.
template <class T>
Array<T> short_factor(const Array<T>& vh, std::int64_t n, bool across, const std::vector<Sign<T>>& ways) {
    const auto count = std::ssize(ways);
    Array<T> factor(n * count);
    for (std::int64_t j = 0; j < count; ++j) {
        const T back = kernel::conjugate(ways[static_cast<std::size_t>(j)]);
        for (std::int64_t i = 0; i < n; ++i) {
            if (across) {
                factor[i * count + j] = vh[j + i * n];
            } else {
                factor[j * n + i] = back * vh[j + i * n];
            }
        }
    }
    return factor;
}

using mpi::check;

constexpr int tag = 5;

template <class T> void broadcast(Context& context, T* numbers, std::int64_t count) {
    if (context.comm.size() > 1 && count > 0) {
        const mpi::Span span(count * static_cast<std::int64_t>(sizeof(T) / sizeof(double)), MPI_DOUBLE);
        check(MPI_Bcast(numbers, span.count(), span.type(), 0, context.comm.get()), "MPI_Bcast");
    }
}

template <class T> class Tall {
public:
    Tall(Context& context, const io::Region& a, const Files& files, Dtype dtype, const Options& options)
        : context_(context),
          a_(a),
          files_(files),
          dtype_(dtype),
          options_(options),
          work_(a),
          root_task_(context),
          rows_(context, work_, a, options),
          kept_(options.components > 0 ? options.components : work_.n) {
        if (options.energy <= 0) {
            open();
        }
    }

    Outcome operator()() {
        const int lanes = rows_.steps().lanes();
        mpi::together(context_.comm, [&] {
            for (int lane = 0; lane < lanes; ++lane) {
                chains_.push_back(std::make_unique<RowChain<T>>(work_.n));
                triangles_.emplace_back(TriangleFile<T>::packed(work_.n));
            }
            if (!options_.values_only) {
                kept_triangles_.emplace(files_.s.path, work_.n, lanes);
            }
        });
        outcome_.samples = mpi::repeat(context_, 0, 1, [&](bool) {
            factor();
            decompose();
        });
        describe();
        refuse_overflow(context_, a_, outcome_.diagnostics.sigma_max, dtype_);
        if (options_.energy > 0) {
            open();
        }
        write();
        context_.comm.barrier();  // all files are whole on every rank from here on
        return std::move(outcome_);
    }

private:
    /// The outputs, whose disk space is had before anything is computed where their size is known.
    void open() {
        const Timed timed(context_.ledger, Phase::output, "reserve");
        files_ = cut_to(files_, kept_);
        Files small = files_;
        if (!options_.values_only) {
            long_.emplace(context_, work_.transposed ? *files_.vt : *files_.u, files_.us, work_.transposed, options_);
            (work_.transposed ? small.vt : small.u).reset();
            if (!work_.transposed) {
                small.us.reset();
            }
        }
        small_files_ = small;
        Options here = options_;
        here.energy = 0;
        small_options_ = here;
        small_.emplace(context_, *small_files_, *small_options_);
    }

    /// The first reading; another one where numbers are so large or small that products would leave their range.
    void factor() {
        read_forwards();
        if (rows_.needs_scaling(context_)) {
            read_forwards();
        }
    }

    void read_forwards() {
        const TallSteps& steps = rows_.steps();
        for (std::int64_t step = 0; step < steps.count(); ++step) {
            rows_.load(context_, step, step + 1);
            const Timed timed(context_.ledger, Phase::compute, "QR of a panel");
            const kernel::BlasThreads blas(rows_.threads_of_lane());
            mpi::together(context_.comm, [&] {
                if (!rows_.look()) {
                    return;  // what follows is only searched for numbers that are not finite
                }
                rows_.split();
                parallel(steps.lanes(), [&](int lane) {
                    const auto [panel, count, stride] = rows_.panel(lane);
                    RowChain<T>& chain = *chains_[static_cast<std::size_t>(lane)];
                    const Array<T>& triangle = triangles_[static_cast<std::size_t>(lane)];
                    if (step == 0) {
                        chain.begin(panel, count, stride);
                    } else if (rows_.here().size() > 0) {
                        chain.add(panel, count, stride, triangle.data());
                        if (kept_triangles_) {
                            kept_triangles_->keep(step, lane, triangle);
                        }
                    }
                });
            });
            report(step + 1);
        }
        rows_.refuse_not_finite(context_);
        flops_ += rows_.numbers() * static_cast<double>(work_.n) * 7 / 3;
        ++outcome_.diagnostics.reads;
    }

    /// R of all ranks, its decomposition, and what each lane's rows of Q are to be multiplied with.
    void decompose() {
        const std::int64_t n = work_.n;
        rows_.rest();
        std::int64_t height = 0;
        for (const auto& chain : chains_) {
            height += chain->height();
        }
        auto top = std::make_unique<dist::TallQr<T>>(height, n, std::max<std::int64_t>(1, chains_.front()->height()));
        for (std::int64_t lane = 0; lane < top->chunks(); ++lane) {
            const RowChain<T>& chain = *chains_[static_cast<std::size_t>(lane)];
            for (std::int64_t j = 0; j < n; ++j) {
                std::copy_n(chain.r() + j * n, chain.height(), top->chunk(lane) + j * chain.height());
            }
            top->factor(lane);
        }
        {
            const Timed timed(context_.ledger, Phase::exchange, "combine rows");
            top->combine(&context_.comm, context_.threads);
        }
        TriangleSvd<T> found;
        root_task_.run([&](int threads) {
            Array<T> r(n * n);
            std::copy_n(top->r().data(), n * n, r.data());
            found = decompose_triangle(n, r.data(), !options_.values_only, threads);
        });
        sigma_ = std::move(found.s);
        sigma_.resize(static_cast<std::size_t>(n));
        broadcast(context_, sigma_.data(), n);
        choose();
        if (options_.values_only) {
            return;
        }
        vh_ = std::move(found.vh);
        if (work_.transposed) {  // the signs hang on V, which is U of A
            point_by_v(found.u);
        }
        if (by_values_) {
            mpi::together(context_.comm, [&] { scale_v(); });
            broadcast(context_, over_sigma_.data(), n * kept_);
        } else {
            hand_down(*top, found.u);
        }
    }

    void choose() {
        for (double& value : sigma_) {
            value /= rows_.scale();
        }
        kept_ = options_.energy > 0 ? std::min(kept_, components_with(sigma_, options_.energy)) : kept_;
        // U = A·V·diag(1/s) is off by ε·σ₁/σ of float64, which is nothing where the files round a lot more.
        const double least = sigma_[static_cast<std::size_t>(kept_ - 1)];
        by_values_ = real_type(dtype_) == Dtype::float32 && least > 0 &&
                     sigma_[0] / least * std::numeric_limits<double>::epsilon() * static_cast<double>(work_.n) <=
                         std::numeric_limits<float>::epsilon() / 8;
    }

    /// Rank 0: signs by V of W, whose columns are A's left singular vectors; those of U of W take theirs along.
    void point_by_v(const Array<T>& u) {
        const std::int64_t n = work_.n;
        ways_.assign(static_cast<std::size_t>(kept_), 1.0);
        if (context_.comm.rank() == 0) {
            ways_ = signs(Elements<T>{vh_.data(), n, kept_, n, 1});
            for (std::int64_t j = 0; j < kept_; ++j) {
                const T way = ways_[static_cast<std::size_t>(j)], back = kernel::conjugate(way);
                for (std::int64_t i = 0; i < n; ++i) {
                    vh_[j + i * n] *= way;
                    u[j * n + i] *= back;
                }
            }
        }
    }

    /// V·diag(1/s), n×K, column by column; on rank 0. The rows are scaled as they were, so is what they are divided by.
    void scale_v() {
        const std::int64_t n = work_.n;
        over_sigma_ = Array<T>(n * kept_);
        for (std::int64_t j = 0; j < kept_ && context_.comm.rank() == 0; ++j) {
            const double factor = 1 / (sigma_[static_cast<std::size_t>(j)] * rows_.scale());
            for (std::int64_t i = 0; i < n; ++i) {
                over_sigma_[j * n + i] = kernel::conjugate(vh_[j + i * n]) * factor;
            }
        }
    }

    void hand_down(dist::TallQr<T>& top, const Array<T>& u) {
        const std::int64_t n = work_.n;
        const int rank = context_.comm.rank(), root = top.root();
        Array<T> given;
        const Timed timed(context_.ledger, Phase::exchange, "hand down U");
        if (root != 0) {
            const mpi::Span span(n * kept_ * kernel::parts_of<T>, MPI_DOUBLE);
            if (rank == 0) {
                check(MPI_Send(u.data(), span.count(), span.type(), root, tag, context_.comm.get()), "MPI_Send");
            } else if (rank == root) {
                given = Array<T>(n * kept_);
                check(MPI_Recv(given.data(), span.count(), span.type(), 0, tag, context_.comm.get(), MPI_STATUS_IGNORE),
                      "MPI_Recv");
            }
        }
        top.hand_down(root == 0 ? u.data() : given.data(), kept_, context_.threads);
        mpi::together(context_.comm, [&] {
            const T* rows = top.apply(context_.threads);
            for (const auto& chain : chains_) {
                chain->turn(rows, kept_);
                rows += chain->height() * kept_;
            }
        });
    }

    void describe() {
        const auto m = static_cast<double>(work_.m), n = static_cast<double>(work_.n), k = static_cast<double>(kept_);
        flops_ += 22 * n * n * n;
        if (!options_.values_only) {
            flops_ += 2 * m * n * k + (by_values_ ? 0 : 3 * m * n * n);
        }
        outcome_.flops = flops_ * kernel::parts_of<T> * kernel::parts_of<T>;
        outcome_.working = rows_.working();
        Diagnostics& diagnostics = outcome_.diagnostics;
        diagnostics.components = kept_;
        say_left(diagnostics, left_by(sigma_, kept_), work_.n);
        const double limit = sigma_[0] * m * std::numeric_limits<double>::epsilon();
        diagnostics.rank = std::count_if(sigma_.begin(), sigma_.end(), [&](double value) { return value > limit; });
        diagnostics.sigma_max = sigma_[0];
        diagnostics.sigma_min = sigma_[static_cast<std::size_t>(kept_ - 1)];
        diagnostics.start = "QR of panels of " + std::to_string(rows_.steps().most()) + " rows";
        if (!options_.values_only) {
            diagnostics.start += by_values_ ? ", U = A·V/s" : ", U by reflections";
            ++diagnostics.reads;
        }
    }

    /// The second reading, backwards, and all that is written.
    void write() {
        if (!options_.values_only) {
            read_backwards();
            kept_triangles_.reset();
            chains_.clear();
            if (!work_.transposed) {
                ways_ = passing_->signs(context_.comm);
                long_->point(context_, rows_, ways_, sigma_);
            }
        }
        const Timed timed(context_.ledger, Phase::output, "output");
        if (long_) {
            long_->finish(context_, options_.sync);
        }
        Part part;
        part.s.assign(sigma_.begin(), sigma_.begin() + kept_);
        Array<T> factor;
        if (!options_.values_only) {
            rows_.rest();
            mpi::together(context_.comm, [&] {
                if (context_.comm.rank() == 0) {
                    factor = short_factor(vh_, work_.n, work_.transposed, ways_);
                    narrow(factor.raw(), work_.n * kept_, dtype_);
                    (work_.transposed ? part.u : part.vt) = factor.raw();
                    (work_.transposed ? part.u_share : part.vt_share) = work_.transposed
                                                                            ? grid::Block{{0, work_.n}, {0, kept_}}
                                                                            : grid::Block{{0, kept_}, {0, work_.n}};
                }
            });
        }
        small_->write(context_, part);
        small_->finish(context_, options_.sync);
    }

    void read_backwards() {
        const TallSteps& steps = rows_.steps();
        if (!work_.transposed) {
            passing_.emplace(kept_);
        }
        for (std::int64_t step = steps.count(); step-- > 0;) {
            rows_.load(context_, step, step - 1);
            {
                const Timed timed(context_.ledger, Phase::compute, "U of a panel");
                const kernel::BlasThreads blas(rows_.threads_of_lane());
                mpi::together(context_.comm, [&] {
                    if (!by_values_) {
                        rows_.split();
                    }
                    parallel(steps.lanes(), [&](int lane) {
                        by_values_ ? rows_.multiply(lane, over_sigma_.data(), kept_, !work_.transposed)
                                   : turn_back(step, lane);
                    });
                    if (passing_) {
                        passing_->note(reinterpret_cast<const T*>(rows_.memory(by_values_)), rows_.here().size(),
                                       rows_.here().begin, context_.threads);
                    }
                });
            }
            long_->store(context_, rows_, step, by_values_);
            report(2 * steps.count() - step);
        }
    }

    void turn_back(std::int64_t step, int lane) {
        const auto [panel, count, stride] = rows_.panel(lane);
        RowChain<T>& chain = *chains_[static_cast<std::size_t>(lane)];
        const auto [u, u_count, u_stride] = rows_.place(rows_.of_lane(lane).begin, kept_, !work_.transposed, false);
        if (step == 0) {
            chain.back_to_head(u, u_stride, !work_.transposed);
        } else if (count > 0) {
            const Array<T>& triangle = triangles_[static_cast<std::size_t>(lane)];
            kept_triangles_->recall(step, lane, triangle);
            chain.back(panel, count, stride, triangle.data(), u, u_stride, !work_.transposed);
        }
    }

    void report(std::int64_t done) const {
        const std::int64_t all = rows_.steps().count() * (options_.values_only ? 1 : 2);
        context_.report(Phase::compute, static_cast<double>(done) / static_cast<double>(all));
    }

    Context& context_;
    const io::Region& a_;
    Files files_;
    Dtype dtype_;
    const Options& options_;
    Work work_;
    dist::RootTask root_task_;
    TallRows<T> rows_;
    std::int64_t kept_;
    std::optional<LongFactor<T>> long_;
    std::optional<Files> small_files_;
    std::optional<Options> small_options_;
    std::optional<Writer> small_;
    std::vector<std::unique_ptr<RowChain<T>>> chains_;
    std::vector<Array<T>> triangles_;  // a lane's, on the way to the file or back
    std::optional<TriangleFile<T>> kept_triangles_;
    std::vector<double> sigma_;
    std::vector<Sign<T>> ways_;
    std::optional<PassingSigns<T>> passing_;
    bool by_values_ = false;  // U is A·V·diag(1/s)
    Array<T> vh_, over_sigma_;
    double flops_ = 0;
    Outcome outcome_;
};

}  // namespace

Outcome tall(Context& context, const io::Region& a, const Files& files, Dtype dtype, const Options& options) {
    return is_complex(a.dtype) ? Tall<kernel::Complex>(context, a, files, dtype, options)()
                               : Tall<double>(context, a, files, dtype, options)();
}

}  // namespace tilewise::svd
