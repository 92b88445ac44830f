// Two buffers: what was read, and what is computed with. The long factor is rounded on the way to the file, and turned
// where it lies.
#include "tilewise/svd/tall_rows.hpp"

#include <algorithm>
#include <cmath>
#include <mutex>

#include "tilewise/base/threads.hpp"
#include "tilewise/kernel/codec/convert.hpp"
#include "tilewise/kernel/factor/lapack_number.hpp"
#include "tilewise/kernel/transpose/transpose.hpp"
#include "tilewise/mpi/sum.hpp"
#include "tilewise/mpi/together.hpp"

namespace tilewise::svd {
namespace {

/// Powers of two that the largest magnitude may be away from 1: reflections know no squares, so this is far.
constexpr int most_exponent = 900;

/// Rows of a step that fit in what a node may have of A; all lanes' together.
template <class T> std::int64_t rows_of_step(const Context& context, std::int64_t n, const Options& options) {
    const auto row = n * static_cast<std::int64_t>(sizeof(T));
    const std::int64_t wanted = context.threads * std::max(tall_panel_factor * n, tall_panel_bytes / row);
    const int node_ranks = context.comm.node().size();
    return std::max<std::int64_t>(
        1, options.panel_bytes > 0 ? std::min(wanted, options.panel_bytes / node_ranks / row) : wanted);
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

template <class T>
TallRows<T>::TallRows(Context& context, const Work& work, const io::Region& a, const Options& options)
    : work_(work),
      a_(a),
      rank_(context.comm.rank()),
      threads_(context.threads),
      input_(context, work.region, options.read, options.hints),
      steps_(work.m, work.n, context.comm.size(), context.threads, rows_of_step<T>(context, work.n, options)) {
    mpi::together(context.comm, [&] {
        if (options.read == io::StrategyKind::positioned) {
            prefetch_.emplace(work.region);
        }
    });
}

template <class T> grid::Share TallRows<T>::share(int rank, std::int64_t step) const {
    const grid::Range rows = steps_(rank, step);
    return grid::Block{rows, {0, rows.size() > 0 ? work_.n : 0}};
}

template <class T> void TallRows<T>::load(Context& context, std::int64_t step, std::int64_t next) {
    const Timed timed(context.ledger, Phase::input, "input");
    here_ = steps_(rank_, step);
    mpi::together(context.comm, [&] {
        rows_.grow(steps_.most() * work_.n);
        panels_.grow(steps_.most() * work_.n);
    });
    input_.load(
        context, kernel::is_complex_number<T> ? Dtype::complex128 : Dtype::float64,
        [&](int rank) { return share(rank, step); }, rows_.raw());
    if (prefetch_ && next >= 0 && next < steps_.count()) {
        prefetch_->want(work_.region.stored(share(rank_, next)));
    }
    if (scale_ != 1) {
        double* reals = kernel::reals_of(rows_.data());
        const std::int64_t count = here_.size() * work_.n * kernel::parts_of<T>;
        std::transform(reals, reals + count, reals, [&](double value) { return value * scale_; });
    }
}

template <class T> bool TallRows<T>::look() {
    constexpr std::int64_t parts = kernel::parts_of<T>;
    const double* data = kernel::reals_of(rows_.data());
    const std::int64_t count = here_.size() * work_.n * parts;
    std::mutex mutex;
    parallel_ranges(threads_, count, [&](std::int64_t begin, std::int64_t end, int) {
        double sum = 0, most = 0;
        for (std::int64_t i = begin; i < end; ++i) {
            sum += data[i] * 0;
            most = std::max(most, std::abs(data[i]));
        }
        const std::scoped_lock lock(mutex);
        largest_ = std::max(largest_, most);
        finite_ = finite_ && sum == 0;
        for (std::int64_t i = begin; i < end && !(sum == 0); ++i) {
            const std::int64_t line = i / parts / (work_.by_columns() ? here_.size() : work_.n),
                               along = i / parts % (work_.by_columns() ? here_.size() : work_.n),
                               row = here_.begin + (work_.by_columns() ? along : line),
                               column = work_.by_columns() ? line : along;
            wrong_.note(work_.transposed ? column * work_.m + row : row * work_.n + column, data[i]);
        }
    });
    return finite_;
}

template <class T> bool TallRows<T>::needs_scaling(Context& context) {
    const double largest = mpi::most_of(context.comm, largest_);
    int exponent = 0;
    std::frexp(largest, &exponent);
    if (scale_ != 1 || largest == 0 || std::abs(exponent) <= most_exponent) {
        return false;
    }
    scale_ = std::ldexp(1.0, -std::max(exponent, -1020));  // which must be a number itself
    return true;
}

template <class T> void TallRows<T>::split() {
    const std::int64_t n = work_.n, all = here_.size();
    constexpr auto item = static_cast<std::int64_t>(sizeof(T));
    const int threads = threads_of_lane();
    parallel(steps_.lanes(), [&](int lane) {
        const grid::Range rows = of_lane(lane);
        const std::int64_t count = rows.size();
        T* to = panels_.data() + rows.begin * n;
        if (work_.by_columns()) {
            parallel_ranges(threads, n, [&](std::int64_t begin, std::int64_t end, int) {
                for (std::int64_t column = begin; column < end; ++column) {
                    std::copy_n(rows_.data() + column * all + rows.begin, count, to + column * count);
                }
            });
        } else if (count > 0) {
            kernel::transpose(rows_.raw() + rows.begin * n * item, n * item, count, n, sizeof(T),
                              reinterpret_cast<std::byte*>(to), count * item, threads);
        }
    });
}

template <class T> Strip<T> TallRows<T>::panel(int lane) const {
    const grid::Range rows = of_lane(lane);
    return {panels_.data() + rows.begin * work_.n, rows.size(), std::max<std::int64_t>(1, rows.size())};
}

template <class T>
Strip<T> TallRows<T>::place(std::int64_t begin, std::int64_t columns, bool by_rows, bool instead_of_panels) const {
    T* all = (instead_of_panels ? panels_ : rows_).data();
    return by_rows ? Strip<T>{all + begin * columns, here_.size() - begin, columns}
                   : Strip<T>{all + begin, here_.size() - begin, here_.size()};
}

template <class T> void TallRows<T>::multiply(int lane, const T* v, std::int64_t columns, bool by_rows) const {
    const grid::Range rows = of_lane(lane);
    if (rows.size() == 0) {
        return;
    }
    const bool stored = work_.by_columns();  // W column by column
    const T* w = rows_.data() + (stored ? rows.begin : rows.begin * work_.n);
    const auto [to, count, to_stride] = place(rows.begin, columns, by_rows, true);
    const int high = kernel::lapack_int(rows.size()), k = kernel::lapack_int(columns), n = kernel::lapack_int(work_.n),
              ldw = stored ? kernel::lapack_int(here_.size()) : n;
    if (by_rows) {  // the transpose, column by column
        kernel::lapack::gemm("T", stored ? "T" : "N", k, high, n, 1.0, v, n, w, ldw, 0.0, to, k);
    } else {
        kernel::lapack::gemm(stored ? "N" : "T", "N", high, k, n, 1.0, w, ldw, v, n, 0.0, to,
                             kernel::lapack_int(to_stride));
    }
}

template class TallRows<double>;
template class TallRows<kernel::Complex>;

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

template class LongFactor<double>;
template class LongFactor<kernel::Complex>;

}  // namespace tilewise::svd
