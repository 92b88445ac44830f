// One reading of a matrix that does not fit into memory, and what can be made of it: A·Q and Aᵀ·(A·Q) at once, and
// ‖A‖_F.
//
// Blocks of rows that stay in the cache between their two products, and sums that change to float64 before they lose
// digits.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <memory>
#include <numeric>
#include <vector>

#include "tilewise/base/buffer.hpp"
#include "tilewise/base/threads.hpp"
#include "tilewise/dist/tall_qr.hpp"
#include "tilewise/kernel/factor/lapack.hpp"
#include "tilewise/kernel/product/few_vectors.hpp"
#include "tilewise/mpi/sum.hpp"
#include "tilewise/mpi/together.hpp"
#include "tilewise/svd/panels.hpp"
#include "tilewise/svd/source.hpp"
#include "tilewise/svd/svd.hpp"

namespace tilewise::svd {

inline constexpr std::int64_t flush_rows = 4096;  // over which sums are kept in the type of the matrix
inline constexpr std::int64_t block_rows = 64,
                              block_columns = 1024;  // of a panel, and the rows of Q and W that go with them

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

template <class T> kernel::Strided<T> strided(const kernel::Operand& panel) {
    return {reinterpret_cast<const T*>(panel.data), panel.transposed ? 1 : panel.stride,
            panel.transposed ? panel.stride : 1};
}

template <class T> kernel::Strided<T> from(const kernel::Strided<T>& a, std::int64_t row, std::int64_t column) {
    return {a.data + row * a.row_step + column * a.column_step, a.row_step, a.column_step};
}

inline void sum_over_ranks(Context& context, double* data, std::int64_t count) {
    if (context.comm.size() == 1) {
        return;
    }
    const Timed timed(context.ledger, Phase::exchange, "sum over ranks");
    context.ledger.count().messages += mpi::sum_over_ranks(context.comm, data, count);
    context.ledger.count().exchanged += count * static_cast<std::int64_t>(sizeof(double));
}

/// Of numbers in one run; several sums at once, which the processor adds at the same time.
template <class T> double squares_of(const T* data, std::int64_t count) {
    std::array<double, 8> sums{};
    const std::int64_t whole = count / 8 * 8;
    for (std::int64_t i = 0; i < whole; i += 8) {
        for (std::size_t j = 0; j < 8; ++j) {
            const auto value = static_cast<double>(data[i + static_cast<std::int64_t>(j)]);
            sums[j] += value * value;
        }
    }
    for (std::int64_t i = whole; i < count; ++i) {
        sums[0] += static_cast<double>(data[i]) * static_cast<double>(data[i]);
    }
    return std::accumulate(sums.begin(), sums.end(), 0.0);
}

/// Tells `use` each run of numbers that lie together in a panel of `rows` rows.
template <class T, class Use>
void runs_of(const kernel::Operand& panel, std::int64_t rows, std::int64_t width, const Use& use) {
    const std::int64_t runs = panel.transposed ? width : rows, length = panel.transposed ? rows : width;
    for (std::int64_t run = 0; run < runs; ++run) {
        use(reinterpret_cast<const T*>(panel.data) + run * panel.stride, length);
    }
}

/// Rows of Y, `stride` apart, into the chunks that they belong to.
template <class T>
void keep_rows(dist::TallQr<T>& tall, const T* y, std::int64_t stride, std::int64_t columns, std::int64_t chunk,
               grid::Range rows) {
    const std::int64_t index = rows.begin / chunk, row = rows.begin - index * chunk, high = tall.rows_of(index);
    T* to = tall.chunk(index) + row;
    for (std::int64_t i = 0; i < rows.size(); ++i) {
        for (std::int64_t j = 0; j < columns; ++j) {
            to[j * high + i] = y[i * stride + j];
        }
    }
    if (row + rows.size() == high) {
        tall.factor(index);
    }
}

/// What one reading gives, for Q of n columns.
template <class T> struct Reading {
    std::vector<double> product;  ///< Hᵀ·(H·Q), width × n, row by row, the same on all ranks
    std::unique_ptr<dist::TallQr<T>>
        tall;  ///< this rank's rows of H·Q, their chunks factored; null where they were not to be kept
};

/// Products of the view H (see Panels) with Q, width × n, row by row with rows of `stride` numbers, of which those
/// beyond n are 0. The same Q on all ranks.
template <class T> class Passes {
public:
    /// For Q of `columns` columns at most. `a` and `options` must live as long as this. @note Collective.
    Passes(Context& context, const io::Region& a, const Options& options, std::int64_t columns)
        : a_(a),
          options_(options) {
        cut(context, columns);
    }

    const Panels& panels() const { return *panels_; }
    std::int64_t stride() const { return stride_; }
    /// From now on Q may have so many columns. @note Collective.
    void widen(Context& context, std::int64_t columns) {
        cut(context, columns);
        panels_->scale_by(factor_);
    }

    /// How many times the matrix was read, and what that took.
    std::int64_t reads() const { return reads_; }
    double flops() const { return flops_; }
    void start_counting() { reads_ = 0; }
    /// What the matrix is multiplied with from the first pass on: a power of two, 1 unless its numbers are very large
    /// or small.
    double factor() const { return factor_; }
    /// ‖factor·A‖_F², summed in the first pass.
    double squares() const { return squares_; }

    /// Sums over rows are in float64. `first`: refuses numbers that are not finite, with the position of the first, and
    /// finds the factor (one or two readings more, where it is not 1) and the sum of squares. `expected`: readings that
    /// there will be, 0 where that is not known. @note Collective.
    Reading<T> read(Context& context, const T* q, std::int64_t columns, bool first, bool keep, double expected) {
        Reading<T> reading = sum_products(context, q, columns, first, keep, expected);
        if (first && factor_ == 1 && needs_scaling(context, reading.product, expected)) {
            reading = Reading<T>{};
            reading = sum_products(context, q, columns, first, keep, expected);
        }
        return reading;
    }

private:
    struct Lane {
        Array<T> y, w;
        std::vector<double> sum;
        std::int64_t rows = 0;  ///< that w has summed
        FirstNotFinite wrong;
        double largest = 0, squares = 0;
    };

    void cut(Context& context, std::int64_t columns) {
        stride_ = kernel::padded<T>(columns);
        panels_ = std::make_unique<Panels>(
            context, a_, sizeof(T) == 4 ? Dtype::float32 : Dtype::float64,
            PanelOptions{
                .read = options_.read, .hints = options_.hints, .bytes = options_.panel_bytes, .vectors = stride_});
        width_ = panels_->width();
    }

    void make_lanes(Context& context, std::int64_t columns) {
        mpi::together(context.comm, [&] {
            lanes_.resize(static_cast<std::size_t>(panels_->lanes()));
            for (Lane& lane : lanes_) {
                lane = Lane{};
                lane.y = Array<T>(panels_->panel_rows() * stride_);
                lane.w = Array<T>(width_ * stride_);
                lane.sum.assign(static_cast<std::size_t>(width_ * columns), 0.0);
            }
        });
    }

    void walk(Context& context, std::int64_t chunk, double expected, const Panels::Use& use) {
        Context counted = context;
        counted.progress = [&](Phase, double done) {
            const double read = static_cast<double>(reads_) + done;
            context.report(Phase::compute, std::min(1.0, read / (expected > 0 ? expected : read + 3)));
        };
        panels_->walk(counted, chunk, use);
        ++reads_;
    }

    Reading<T> sum_products(Context& context, const T* q, std::int64_t columns, bool first, bool keep,
                            double expected) {
        // Chunks that are factored as they come have `chunk_factor` rows a column at least, and whole panels.
        const std::int64_t step = panels_->panel_rows(),
                           least = std::max<std::int64_t>(dist::chunk_factor * columns, 256),
                           chunk = keep ? (least + step - 1) / step * step : step, start = panels_->mine().begin;
        Reading<T> reading;
        make_lanes(context, columns);
        mpi::together(context.comm, [&] {
            if (keep) {
                reading.tall = std::make_unique<dist::TallQr<T>>(panels_->mine().size(), columns, chunk);
            }
        });
        const kernel::BlasThreads one(1);
        walk(context, chunk, expected, [&](int index, grid::Range rows, const kernel::Operand& operand) {
            Lane& lane = lanes_[static_cast<std::size_t>(index)];
            T *y = lane.y.data(), *w = lane.w.data();
            const kernel::Strided<T> panel = strided<T>(operand);
            const std::int64_t at_once = panels_->threads_of_lane() > 1 ? rows.size() : block_rows;
            for (std::int64_t row = 0; row < rows.size(); row += at_once) {
                const grid::Range some{row, std::min(row + at_once, rows.size())};
                multiply(some, panel, q, y);
                if (first && !std::isfinite(largest_of(y, some.size() * stride_))) {
                    find_wrong(lane, {rows.begin + some.begin, rows.begin + some.end}, from(panel, row, 0));
                }
                add_transposed(some.size(), from(panel, row, 0), y, w);
                lane.rows += some.size();
                if (keep) {
                    keep_rows(*reading.tall, y, stride_, columns, chunk,
                              {rows.begin + some.begin - start, rows.begin + some.end - start});
                }
            }
            if (first) {
                runs_of<T>(operand, rows.size(), width_,
                           [&](const T* data, std::int64_t count) { lane.squares += squares_of(data, count); });
            }
            if (lane.rows >= flush_rows) {
                flush(lane, lane.sum, columns);
            }
        });
        const auto numbers = static_cast<double>(panels_->height()) * static_cast<double>(width_);
        flops_ += numbers * (4 * static_cast<double>(columns) + (first ? 2 : 0));
        std::vector<double>& sum = lanes_.front().sum;
        squares_ = first ? 0 : squares_;
        for (Lane& lane : lanes_) {
            flush(lane, sum, columns);
            if (&lane != &lanes_.front()) {
                std::transform(lane.sum.begin(), lane.sum.end(), sum.begin(), sum.begin(), std::plus<>());
            }
            squares_ += lane.squares;
        }
        if (first) {
            refuse_wrong(context);
            mpi::sum_over_ranks(context.comm, &squares_, 1);
        }
        sum_over_ranks(context, sum.data(), std::ssize(sum));
        reading.product = std::move(sum);
        lanes_.clear();
        return reading;
    }

    /// y = P·Q for some rows of the panel.
    void multiply(grid::Range rows, const kernel::Strided<T>& panel, const T* q, T* y) const {
        parallel_ranges(panels_->threads_of_lane(), rows.size(), [&](std::int64_t begin, std::int64_t end, int) {
            T* to = y + begin * stride_;
            std::fill_n(to, (end - begin) * stride_, T{});
            for (std::int64_t column = 0; column < width_; column += block_columns) {
                kernel::multiply_few(end - begin, std::min(block_columns, width_ - column), stride_,
                                     from(panel, rows.begin + begin, column), q + column * stride_, to);
            }
        });
    }

    /// w += Pᵀ·y.
    void add_transposed(std::int64_t rows, const kernel::Strided<T>& panel, const T* y, T* w) const {
        parallel_ranges(panels_->threads_of_lane(), width_, [&](std::int64_t begin, std::int64_t end, int) {
            for (std::int64_t column = begin; column < end; column += block_columns) {
                const kernel::Strided<T> here = from(panel, 0, column);
                kernel::multiply_few(std::min(block_columns, end - column), rows, stride_,
                                     {here.data, here.column_step, here.row_step}, y, w + column * stride_);
            }
        });
    }

    /// Adds what a lane has summed in its type to sums in float64, and begins anew.
    void flush(Lane& lane, std::vector<double>& sum, std::int64_t columns) const {
        if (std::exchange(lane.rows, 0) == 0) {
            return;
        }
        T* w = lane.w.data();
        for (std::int64_t i = 0; i < width_; ++i) {
            for (std::int64_t j = 0; j < columns; ++j) {
                sum[static_cast<std::size_t>(i * columns + j)] += static_cast<double>(w[i * stride_ + j]);
            }
        }
        std::fill_n(w, width_ * stride_, T{});
    }

    void find_wrong(Lane& lane, grid::Range rows, const kernel::Strided<T>& panel) const {
        for (std::int64_t i = rows.begin; i < rows.end; ++i) {
            for (std::int64_t j = 0; j < width_; ++j) {
                const std::int64_t row = panels_->transposed() ? j : i, column = panels_->transposed() ? i : j;
                lane.wrong.note(row * a_.logical_columns() + column, *from(panel, i - rows.begin, j).data);
            }
        }
    }

    void refuse_wrong(Context& context) const {
        FirstNotFinite first;
        for (const Lane& lane : lanes_) {
            first.note(lane.wrong);
        }
        first.refuse(context, a_);
    }

    /// Whether squares of the numbers left the type's range, or squares of those, which lengths are made of, that of
    /// float64: then they are scaled from now on, which takes a reading to find the largest.
    bool needs_scaling(Context& context, const std::vector<double>& product, double expected) {
        const double most = largest_of(product.data(), std::ssize(product));
        if (most > (sizeof(T) == 4 ? 1e-20 : 1e-100) && most < 1e100) {
            return false;
        }
        make_lanes(context, 0);
        walk(context, panels_->panel_rows(), expected,
             [&](int index, grid::Range rows, const kernel::Operand& operand) {
                 double& found = lanes_[static_cast<std::size_t>(index)].largest;
                 runs_of<T>(operand, rows.size(), width_, [&](const T* data, std::int64_t count) {
                     found = std::max(found, static_cast<double>(largest_of(data, count)));
                 });
             });
        double mine = 0;
        for (const Lane& lane : lanes_) {
            mine = std::max(mine, lane.largest);
        }
        const double largest = mpi::most_of(context.comm, mine);
        if (largest == 0) {
            return false;
        }
        factor_ = std::ldexp(1.0, -std::clamp(std::ilogb(largest), -1000, 1000));
        panels_->scale_by(factor_);
        return true;
    }

    const io::Region& a_;
    const Options& options_;
    std::int64_t stride_ = 0, width_ = 0;
    std::unique_ptr<Panels> panels_;
    double factor_ = 1, squares_ = 0, flops_ = 0;
    std::vector<Lane> lanes_;
    std::int64_t reads_ = 0;
};

}  // namespace tilewise::svd
