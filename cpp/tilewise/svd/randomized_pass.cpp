// Blocks of rows that stay in the cache between their two products, and sums that change to float64 before they lose digits.
#include "tilewise/svd/randomized_pass.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "tilewise/base/threads.hpp"
#include "tilewise/kernel/lapack.hpp"
#include "tilewise/mpi/sum.hpp"
#include "tilewise/mpi/together.hpp"

namespace tilewise::svd {
namespace {

constexpr std::int64_t flush_rows = 4096;                      // over which sums are kept in the type of the matrix
constexpr std::int64_t block_rows = 64, block_columns = 1024;  // of a panel, and the rows of Q and W that go with them
constexpr std::int64_t qr_rows = 512;
constexpr std::int64_t nowhere = std::numeric_limits<std::int64_t>::max();

/// NaN if there is one.
template <class N> N largest_of(const N* data, std::int64_t count) {
    N most = 0;
    bool all_numbers = true;
    for (std::int64_t i = 0; i < count; ++i) {
        const N size = std::abs(data[i]);
        most = size > most ? size : most;
        all_numbers &= size == size;
    }
    return all_numbers ? most : std::numeric_limits<N>::quiet_NaN();
}

template <class T> Strided<T> strided(const kernel::Operand& panel) {
    return {reinterpret_cast<const T*>(panel.data), panel.transposed ? 1 : panel.stride,
            panel.transposed ? panel.stride : 1};
}

template <class T> Strided<T> from(const Strided<T>& a, std::int64_t row, std::int64_t column) {
    return {a.data + row * a.row_step + column * a.column_step, a.row_step, a.column_step};
}

void sum_over_ranks(Context& context, double* data, std::int64_t count) {
    if (context.comm.size() == 1) {
        return;
    }
    const Timed timed(context.ledger, Phase::exchange, "sum over ranks");
    context.ledger.count().messages += mpi::sum_over_ranks(context.comm, data, count);
    context.ledger.count().exchanged += count * static_cast<std::int64_t>(sizeof(double));
}

}  // namespace

template <class T>
Passes<T>::Passes(Context& context, const io::Region& a, const Options& options, std::int64_t columns)
    : a_(a),
      options_(options),
      columns_(columns),
      stride_(padded<T>(columns)),
      panels_(context, a, sizeof(T) == 4 ? Dtype::float32 : Dtype::float64,
              {.read = options.read, .hints = options.hints, .bytes = options.panel_bytes, .vectors = stride_}),
      width_(panels_.width()) {}

template <class T> void Passes<T>::make_lanes(Context& context) {
    mpi::together(context.comm, [&] {
        lanes_.resize(static_cast<std::size_t>(panels_.lanes()));
        for (Lane& lane : lanes_) {
            lane.y = Buffer(static_cast<std::size_t>(panels_.panel_rows() * stride_) * sizeof(T));
            lane.w = Buffer(static_cast<std::size_t>(width_ * stride_) * sizeof(T));
            lane.sum.assign(static_cast<std::size_t>(width_ * columns_), 0.0);
            lane.rows = 0;
            lane.wrong = nowhere;
            lane.largest = 0;
        }
    });
}

template <class T> void Passes<T>::walk(Context& context, std::int64_t chunk, const Panels::Use& use) {
    Context counted = context;
    const auto passes = static_cast<double>(options_.power + 2);
    counted.progress = [&](Phase, double done) {
        context.report(Phase::compute, std::min(1.0, (static_cast<double>(reads_) + done) / passes));
    };
    panels_.walk(counted, chunk, use);
    ++reads_;
}

template <class T> std::unique_ptr<TallQr<double>> Passes<T>::normal_product(Context& context, const T* q, bool first) {
    std::unique_ptr<TallQr<double>> wide = sum_products(context, q, first);
    if (first && factor_ == 1 && needs_scaling(context, *wide)) {
        wide = sum_products(context, q, false);
    }
    return wide;
}

/// y = P·Q for some rows of the panel.
template <class T>
void Passes<T>::multiply(grid::Range rows, const Strided<T>& panel, const T* q, T* y) const {
    parallel_ranges(panels_.threads_of_lane(), rows.size(), [&](std::int64_t begin, std::int64_t end, int) {
        T* to = y + begin * stride_;
        std::fill_n(to, (end - begin) * stride_, T{});
        for (std::int64_t column = 0; column < width_; column += block_columns) {
            multiply_few(end - begin, std::min(block_columns, width_ - column), stride_,
                         from(panel, rows.begin + begin, column), q + column * stride_, to);
        }
    });
}

/// w += Pᵀ·y.
template <class T>
void Passes<T>::add_transposed(std::int64_t rows, const Strided<T>& panel, const T* y, T* w) const {
    parallel_ranges(panels_.threads_of_lane(), width_, [&](std::int64_t begin, std::int64_t end, int) {
        for (std::int64_t column = begin; column < end; column += block_columns) {
            const Strided<T> here = from(panel, 0, column);
            multiply_few(std::min(block_columns, end - column), rows, stride_,
                         {here.data, here.column_step, here.row_step}, y, w + column * stride_);
        }
    });
}

template <class T> std::unique_ptr<TallQr<double>> Passes<T>::sum_products(Context& context, const T* q, bool check) {
    make_lanes(context);
    walk(context, panels_.panel_rows(), [&](int index, grid::Range rows, const kernel::Operand& operand) {
        Lane& lane = lanes_[static_cast<std::size_t>(index)];
        T *y = reinterpret_cast<T*>(lane.y.data()), *w = reinterpret_cast<T*>(lane.w.data());
        const Strided<T> panel = strided<T>(operand);
        const std::int64_t step = panels_.threads_of_lane() > 1 ? rows.size() : block_rows;
        for (std::int64_t row = 0; row < rows.size(); row += step) {
            const std::int64_t count = std::min(step, rows.size() - row);
            multiply({row, row + count}, panel, q, y);
            if (check && !std::isfinite(largest_of(y, count * stride_))) {
                find_wrong(lane, {rows.begin + row, rows.begin + row + count}, from(panel, row, 0));
            }
            add_transposed(count, from(panel, row, 0), y, w);
            lane.rows += count;
        }
        if (lane.rows >= flush_rows) {
            flush(lane, lane.sum);
        }
    });
    for (Lane& lane : lanes_) {
        flush(lane, lanes_.front().sum);
        if (&lane != &lanes_.front()) {
            std::transform(lane.sum.begin(), lane.sum.end(), lanes_.front().sum.begin(), lanes_.front().sum.begin(),
                           std::plus<>());
        }
    }
    if (check) {
        refuse_wrong(context);
    }
    std::vector<double>& sum = lanes_.front().sum;
    sum_over_ranks(context, sum.data(), std::ssize(sum));
    std::unique_ptr<TallQr<double>> wide;
    mpi::together(context.comm, [&] {
        wide = std::make_unique<TallQr<double>>(width_, columns_, std::max(qr_rows, 4 * columns_));
        for (std::int64_t c = 0, first = 0; c < wide->chunks(); first += wide->rows_of(c), ++c) {
            const std::int64_t rows = wide->rows_of(c);
            for (std::int64_t i = 0; i < rows; ++i) {
                for (std::int64_t j = 0; j < columns_; ++j) {
                    wide->chunk(c)[j * rows + i] = sum[static_cast<std::size_t>((first + i) * columns_ + j)];
                }
            }
        }
    });
    lanes_.clear();
    return wide;
}

/// Adds what a lane has summed in its type to sums in float64, and begins anew.
template <class T> void Passes<T>::flush(Lane& lane, std::vector<double>& sum) const {
    if (std::exchange(lane.rows, 0) == 0) {
        return;
    }
    T* w = reinterpret_cast<T*>(lane.w.data());
    for (std::int64_t i = 0; i < width_; ++i) {
        for (std::int64_t j = 0; j < columns_; ++j) {
            sum[static_cast<std::size_t>(i * columns_ + j)] += static_cast<double>(w[i * stride_ + j]);
        }
    }
    std::fill_n(w, width_ * stride_, T{});
}

template <class T> void Passes<T>::find_wrong(Lane& lane, grid::Range rows, const Strided<T>& panel) const {
    for (std::int64_t i = rows.begin; i < rows.end; ++i) {
        for (std::int64_t j = 0; j < width_; ++j) {
            const T value = *from(panel, i - rows.begin, j).data;
            if (!std::isfinite(value)) {
                const std::int64_t row = panels_.turned() ? j : i, column = panels_.turned() ? i : j;
                const std::int64_t kind = std::isnan(value) ? 0 : value > 0 ? 1 : 2;
                lane.wrong = std::min(lane.wrong, (row * a_.wanted_columns() + column) * 4 + kind);
            }
        }
    }
}

template <class T> void Passes<T>::refuse_wrong(Context& context) const {
    std::int64_t mine = nowhere, first = nowhere;
    for (const Lane& lane : lanes_) {
        mine = std::min(mine, lane.wrong);
    }
    mpi::check(MPI_Allreduce(&mine, &first, 1, MPI_INT64_T, MPI_MIN, context.comm.get()), "MPI_Allreduce");
    if (first != nowhere) {
        constexpr double infinity = std::numeric_limits<double>::infinity();
        const std::array values{std::numeric_limits<double>::quiet_NaN(), infinity, -infinity};
        const std::int64_t place = first / 4, columns = a_.wanted_columns();
        mpi::together(context.comm, [&] {
            refuse_number(a_, place / columns, place % columns, values[static_cast<std::size_t>(first % 4)]);
        });
    }
}

/// Whether squares of the numbers left the type's range: then they are scaled from now on, which takes a reading to find the largest.
template <class T> bool Passes<T>::needs_scaling(Context& context, const TallQr<double>& wide) {
    const double most = largest_of(wide.chunk(0), width_ * columns_);
    if (most > (sizeof(T) == 4 ? 1e-20 : 1e-200) && std::isfinite(most)) {
        return false;
    }
    make_lanes(context);
    walk(context, panels_.panel_rows(), [&](int index, grid::Range rows, const kernel::Operand& operand) {
        double& found = lanes_[static_cast<std::size_t>(index)].largest;
        const std::int64_t runs = operand.transposed ? width_ : rows.size(),
                           length = operand.transposed ? rows.size() : width_;
        for (std::int64_t run = 0; run < runs; ++run) {
            const T* data = reinterpret_cast<const T*>(operand.data) + run * operand.stride;
            found = std::max(found, static_cast<double>(largest_of(data, length)));
        }
    });
    double mine = 0, largest = 0;
    for (const Lane& lane : lanes_) {
        mine = std::max(mine, lane.largest);
    }
    mpi::check(MPI_Allreduce(&mine, &largest, 1, MPI_DOUBLE, MPI_MAX, context.comm.get()), "MPI_Allreduce");
    if (largest == 0) {
        return false;
    }
    factor_ = std::ldexp(1.0, -std::clamp(std::ilogb(largest), -1000, 1000));
    panels_.scale_by(factor_);
    return true;
}

template <class T> std::unique_ptr<TallQr<T>> Passes<T>::product(Context& context, const T* q) {
    const std::int64_t least = std::max<std::int64_t>(4 * columns_, 256), step = panels_.panel_rows(),
                       chunk = (least + step - 1) / step * step, start = panels_.mine().begin;
    std::unique_ptr<TallQr<T>> tall;
    make_lanes(context);
    mpi::together(context.comm, [&] { tall = std::make_unique<TallQr<T>>(panels_.mine().size(), columns_, chunk); });
    const kernel::BlasThreads one(1);
    walk(context, chunk, [&](int lane, grid::Range rows, const kernel::Operand& operand) {
        T* y = reinterpret_cast<T*>(lanes_[static_cast<std::size_t>(lane)].y.data());
        multiply({0, rows.size()}, strided<T>(operand), q, y);
        const std::int64_t index = (rows.begin - start) / chunk, row = rows.begin - start - index * chunk,
                           high = tall->rows_of(index);
        T* to = tall->chunk(index) + row;
        for (std::int64_t i = 0; i < rows.size(); ++i) {
            for (std::int64_t j = 0; j < columns_; ++j) {
                to[j * high + i] = y[i * stride_ + j];
            }
        }
        if (row + rows.size() == high) {
            tall->factor(index);
        }
    });
    lanes_.clear();
    return tall;
}

template class Passes<float>;
template class Passes<double>;

}  // namespace tilewise::svd
