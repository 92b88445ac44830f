// The triangle by LAPACK's way or that of `jacobi`, as the columns' norms say; the long factor is rounded on the way to
// the file, and turned where it lies.
#include "tilewise/svd/tall_factor.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "tilewise/base/threads.hpp"
#include "tilewise/kernel/codec/convert.hpp"
#include "tilewise/kernel/factor/svd_local.hpp"
#include "tilewise/kernel/transpose/transpose.hpp"
#include "tilewise/mpi/together.hpp"

namespace tilewise::svd {
namespace {

constexpr double most_range = 1e3;  // by which columns differ where gesdd would lose the thirteenth digit

/// The largest norm of a column over the smallest that is not 0.
template <class T> double range_of_columns(std::int64_t n, const T* r) {
    double least = std::numeric_limits<double>::infinity(), most = 0;
    for (std::int64_t j = 0; j < n; ++j) {
        double norm = 0;
        for (std::int64_t i = 0; i <= j; ++i) {
            norm = std::hypot(norm, std::abs(r[j * n + i]));
        }
        least = norm > 0 ? std::min(least, norm) : least;
        most = std::max(most, norm);
    }
    return most / least;
}

bool by_rotations(TriangleSvd<double>& found, std::int64_t n, double* r, int threads) {
    Array<double> copy(n * n), v(n * n);
    std::copy_n(r, n * n, copy.data());
    const kernel::Columns u{found.u.data(), n, n, n};
    const kernel::SvdFacts facts =
        kernel::jacobi_svd({copy.data(), n, n, n}, found.s.data(), u, {v.data(), n, n, n}, {.threads = threads});
    const auto line = n * static_cast<std::int64_t>(sizeof(double));
    kernel::transpose(v.raw(), line, n, n, sizeof(double), found.vh.raw(), line, threads);
    return facts.converged;
}

/// u (rows×count), of the type of the file, times ways; and us, if there is one, that times sigma.
template <class N, class W>
void turn(std::byte* u, std::byte* us, std::int64_t rows, const std::vector<W>& ways,
          const std::vector<double>& sigma) {
    const auto count = std::ssize(ways);
    auto* numbers = reinterpret_cast<N*>(u);
    auto* scaled = reinterpret_cast<N*>(us);
    for (std::int64_t i = 0; i < rows * count; ++i) {
        const auto j = static_cast<std::size_t>(i % count);
        numbers[i] = static_cast<N>(static_cast<W>(numbers[i]) * ways[j]);
        if (scaled != nullptr) {
            scaled[i] = static_cast<N>(static_cast<W>(numbers[i]) * sigma[j]);
        }
    }
}

}  // namespace

template <class T> TriangleSvd<T> decompose_triangle(std::int64_t n, T* r, bool vectors, int threads) {
    TriangleSvd<T> found;
    found.s.resize(static_cast<std::size_t>(n));
    if constexpr (!kernel::is_complex_number<T>) {
        if (range_of_columns(n, r) > most_range) {
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

template <class T>
LongFactor<T>::LongFactor(Context& context, const io::Region& file, const std::optional<io::Region>& scaled,
                          bool across, const Options& options)
    : file_(file),
      across_(across),
      scaled_(across ? std::nullopt : scaled),
      options_(options) {
    output_.emplace(context, file, options.write, options.hints, false);
    if (scaled_) {
        scaled_output_.emplace(context, *scaled_, options.write, options.hints, false);
    }
}

template <class T>
grid::Share LongFactor<T>::share(const TallSteps& steps, int rank, std::int64_t step) const {
    const grid::Range rows = steps(rank, step), columns{0, rows.size() == 0 ? 0 : across_ ? file_.rows : file_.columns};
    return across_ ? grid::Block{columns, rows} : grid::Block{rows, columns};
}

template <class T>
void LongFactor<T>::store(Context& context, const TallRows<T>& rows, std::int64_t step, bool instead_of_panels) {
    const Timed timed(context.ledger, Phase::output, "output");
    constexpr Dtype wide = kernel::is_complex_number<T> ? Dtype::complex128 : Dtype::float64;
    std::byte* data = rows.memory(instead_of_panels);
    if (file_.dtype != wide) {
        const Timed rounding(context.ledger, Phase::output, Step::convert, "round");
        std::byte* to = rows.memory(!instead_of_panels);
        const std::int64_t count = rows.here().size() * (across_ ? file_.rows : file_.columns);
        parallel_ranges(context.threads, count, [&](std::int64_t begin, std::int64_t end, int) {
            kernel::convert(data + begin * static_cast<std::int64_t>(sizeof(T)), wide, false,
                            to + begin * static_cast<std::int64_t>(size_of(file_.dtype)), file_.dtype, false,
                            end - begin);
        });
        data = to;
    }
    output_->store(context, [&](int rank) { return share(rows.steps(), rank, step); }, data);
}

template <class T>
void LongFactor<T>::point(Context& context, const TallRows<T>& rows, const std::vector<Sign<T>>& ways,
                          const std::vector<double>& sigma) {
    if (!scaled_ && std::all_of(ways.begin(), ways.end(), [](const Sign<T>& way) { return way == 1.0; })) {
        return;
    }
    const Timed timed(context.ledger, Phase::output, "signs");
    context.comm.barrier();  // what ranks wrote for each other is there
    const auto strategy = file_.memory != nullptr ? io::StrategyKind::independent : io::StrategyKind::positioned;
    const io::Input input(context, file_, strategy, {});
    output_.emplace(context, file_, options_.write, options_.hints, false);  // what was noted of it goes
    const TallSteps& steps = rows.steps();
    std::byte *u = rows.memory(false), *us = scaled_ ? rows.memory(true) : nullptr;
    const auto item = static_cast<std::int64_t>(size_of(file_.dtype)) * std::ssize(ways);
    for (std::int64_t step = 0; step < steps.count(); ++step) {
        const auto wanted = [&](int rank) { return share(steps, rank, step); };
        input.load_raw(context, wanted, u);
        const bool narrow = real_type(file_.dtype) == Dtype::float32;
        parallel_ranges(context.threads, steps(context.comm.rank(), step).size(),
                        [&](std::int64_t begin, std::int64_t end, int) {
                            std::byte *here = u + begin * item, *scaled = us != nullptr ? us + begin * item : nullptr;
                            if constexpr (kernel::is_complex_number<T>) {
                                narrow ? turn<std::complex<float>>(here, scaled, end - begin, ways, sigma)
                                       : turn<T>(here, scaled, end - begin, ways, sigma);
                            } else {
                                narrow ? turn<float>(here, scaled, end - begin, ways, sigma)
                                       : turn<T>(here, scaled, end - begin, ways, sigma);
                            }
                        });
        output_->store(context, wanted, u);
        if (scaled_output_) {
            scaled_output_->store(context, wanted, us);
        }
    }
}

template <class T> void LongFactor<T>::finish(Context& context, bool sync) {
    output_->finish(context, sync);
    if (scaled_output_) {
        scaled_output_->finish(context, sync);
    }
}

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

template TriangleSvd<double> decompose_triangle(std::int64_t, double*, bool, int);
template TriangleSvd<kernel::Complex> decompose_triangle(std::int64_t, kernel::Complex*, bool, int);
template Array<double> short_factor(const Array<double>&, std::int64_t, bool, const std::vector<double>&);
template Array<kernel::Complex> short_factor(const Array<kernel::Complex>&, std::int64_t, bool,
                                             const std::vector<kernel::Complex>&);
template class LongFactor<double>;
template class LongFactor<kernel::Complex>;

}  // namespace tilewise::svd
