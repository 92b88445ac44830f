// Every rank makes vectors of its own columns; only what is not where it is written then travels.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "tilewise/dist/column_comm.hpp"
#include "tilewise/kernel/factor/jacobi.hpp"
#include "tilewise/kernel/factor/lapack.hpp"
#include "tilewise/kernel/transpose/transpose.hpp"
#include "tilewise/mpi/together.hpp"
#include "tilewise/svd/jacobi.hpp"
#include "tilewise/svd/result.hpp"

namespace tilewise::svd {
namespace {

using grid::Block;
using grid::Partition;
using grid::Range;
using kernel::ColumnsOf;
using kernel::MatrixOf;
using mpi::check;

/// Multiplies columns by their signs.
template <class T>
void turn(const std::vector<T>& signs, const std::vector<std::int64_t>& places, const ColumnsOf<T>& columns) {
    for (std::int64_t j = 0; j < columns.count && columns.rows > 0; ++j) {
        if (const T sign = signs[static_cast<std::size_t>(places[static_cast<std::size_t>(j)])]; sign != 1.0) {
            T* column = columns.column(j);
            std::transform(column, column + columns.rows, column, [&](const T& value) { return sign * value; });
        }
    }
}

template <class T> std::vector<T> conjugated(std::vector<T> numbers) {
    kernel::conjugate_all(numbers.data(), std::ssize(numbers));
    return numbers;
}

template <class T> class BackTransform {
    static constexpr std::int64_t item = sizeof(T);

public:
    BackTransform(Context& context, const dist::ColumnComm& comm, const Work& work, Preconditioned<T>& start,
                  std::int64_t components, double energy)
        : context_(context),
          comm_(comm),
          work_(work),
          start_(start),
          kept_(components),
          energy_(energy) {}

    SvdFactors<T> operator()(ColumnBlocks<T>& blocks, const std::function<Range(int rank)>& columns_of,
                             bool values_only, double scale) {
        sort(blocks, columns_of);
        SvdFactors<T> factors;
        factors.rank = count_rank();
        factors.left = left_;
        take(blocks, values_only);
        make_vectors(values_only);
        collect_values(factors, scale);
        if (values_only) {
            return factors;
        }
        if (factors.s.back() == 0) {
            complete(factors.s);
        }
        conjugate_v();
        if (start_.rows_of_q) {
            redistribute_tall(factors);
        } else {
            redistribute(factors);
        }
        return factors;
    }

private:
    /// Puts all columns into their sequence, the same on all ranks.
    void sort(ColumnBlocks<T>& blocks, const std::function<Range(int rank)>& columns_of) {
        const int ranks = context_.comm.size();
        std::vector<int> owner;
        mpi::together(context_.comm, [&] {
            norms_.resize(static_cast<std::size_t>(work_.n));
            order_.resize(norms_.size());
            owner.resize(norms_.size());
            places_.reserve(static_cast<std::size_t>(kept_));
            for (const ColumnBlock<T>& block : blocks.all()) {
                const ColumnsOf<T> x = block.x(blocks.shape());
                const auto numbers = static_cast<double>(x.rows * x.count);
                kernel::tell<T>({2 * numbers, numbers});
                for (std::int64_t j = 0; j < x.count; ++j) {
                    norms_[static_cast<std::size_t>(block.columns.begin + j)] = kernel::norm_of(x.column(j), x.rows);
                }
            }
            for (int rank = 0; rank < ranks; ++rank) {
                const Range columns = columns_of(rank);
                std::fill(owner.begin() + columns.begin, owner.begin() + columns.end, rank);
            }
        });
        // Each number is some rank's, and 0 on all others.
        check(MPI_Allreduce(MPI_IN_PLACE, norms_.data(), static_cast<int>(norms_.size()), MPI_DOUBLE, MPI_SUM,
                            context_.comm.get()),
              "MPI_Allreduce");
        mpi::together(context_.comm, [&] {
            if (!std::all_of(norms_.begin(), norms_.end(), [](double value) { return std::isfinite(value); })) {
                throw InternalError("a column became infinite or NaN during the sweeps");
            }
        });
        std::iota(order_.begin(), order_.end(), std::int64_t{0});
        std::stable_sort(order_.begin(), order_.end(), [&](std::int64_t a, std::int64_t b) {
            return norms_[static_cast<std::size_t>(a)] > norms_[static_cast<std::size_t>(b)];
        });
        std::vector<double> sorted;
        for (const std::int64_t column : order_) {
            sorted.push_back(norms_[static_cast<std::size_t>(column)]);
        }
        if (energy_ > 0) {
            kept_ = std::min(kept_, components_with(sorted, energy_));
        }
        left_ = left_by(sorted, kept_);
        owners_.resize(static_cast<std::size_t>(kept_));
        for (std::int64_t place = 0; place < kept_; ++place) {
            const auto column = static_cast<std::size_t>(order_[static_cast<std::size_t>(place)]);
            owners_[static_cast<std::size_t>(place)] = owner[column];
            if (owner[column] == context_.comm.rank()) {
                places_.push_back(place);
            }
        }
    }

    std::int64_t count_rank() const {
        const double limit = norms_[static_cast<std::size_t>(order_[0])] * static_cast<double>(work_.m) *
                             std::numeric_limits<double>::epsilon();
        return std::count_if(norms_.begin(), norms_.end(), [&](double value) { return value > limit; });
    }

    /// Copies the columns that are kept, sorted, and lets go of the blocks.
    void take(ColumnBlocks<T>& blocks, bool values_only) {
        const auto count = std::ssize(places_);
        blocks.end_of_sweeps();
        mpi::together(context_.comm, [&] {
            x_ = MatrixOf<T>(blocks.shape().rows, count);
            v_ = MatrixOf<T>(values_only ? 0 : blocks.shape().v_rows, values_only ? 0 : count);
            for (ColumnBlock<T>& block : blocks.all()) {
                for (std::int64_t j = 0; j < count; ++j) {
                    const std::int64_t column =
                        order_[static_cast<std::size_t>(places_[static_cast<std::size_t>(j)])] - block.columns.begin;
                    if (column < 0 || column >= block.columns.size()) {
                        continue;
                    }
                    const ColumnsOf<T> x = block.x(blocks.shape()), v = block.v(blocks.shape());
                    std::copy_n(x.column(column), x.rows, x_.column(j));
                    if (v_.rows > 0) {
                        std::copy_n(v.column(column), v.rows, v_.column(j));
                    }
                }
                block.memory = {};
            }
        });
        blocks.all().clear();
    }

    void make_vectors(bool values_only) {
        const Timed timed(context_.ledger, Phase::compute, "vectors");
        const auto count = std::ssize(places_);
        sigma_.resize(places_.size());
        FactorsOf<T>& factors = start_.sweeps.factors;
        const bool reflected = factors.rows > x_.rows;
        if (reflected && !values_only) {
            u_ = MatrixOf<T>(factors.rows, count);
        }
        const ColumnsOf<T> u = reflected ? u_.columns() : x_.columns();
        finish_columns(factors, x_.columns(), !values_only, u, sigma_.data(), comm_, context_.threads);
        if (!reflected && !values_only) {
            u_ = std::move(x_);
        }
        x_ = {};
        factors.memory1 = {};
        turn_back(factors, v_.columns(), comm_, context_.threads);
        factors = {};
    }

    void collect_values(SvdFactors<T>& factors, double scale) {
        const Timed timed(context_.ledger, Phase::exchange, "collect values");
        factors.s.assign(static_cast<std::size_t>(kept_), 0.0);
        for (std::size_t j = 0; j < places_.size(); ++j) {
            factors.s[static_cast<std::size_t>(places_[j])] = sigma_[j] / scale;
        }
        check(MPI_Allreduce(MPI_IN_PLACE, factors.s.data(), static_cast<int>(kept_), MPI_DOUBLE, MPI_SUM,
                            context_.comm.get()),
              "MPI_Allreduce");
        for (std::size_t j = 1; j < factors.s.size(); ++j) {  // sorted by norms that were summed in another sequence
            factors.s[j] = std::min(factors.s[j], factors.s[j - 1]);
        }
    }

    /// What is written of V is its conjugate, whichever way: A = U·Σ·Vᴴ, and A = V̅·Σ·Uᵀ of Aᵀ = U·Σ·Vᴴ.
    void conjugate_v() {
        for (std::int64_t j = 0; j < v_.count; ++j) {
            kernel::conjugate_all(v_.column(j), v_.rows);
        }
    }

    /// Singular values of 0 have no columns of U yet.
    void complete(const std::vector<double>& s) {
        const Timed timed(context_.ledger, Phase::compute, "complete U");
        svd::complete(dist::SpreadColumnsOf<T>{u_.columns(), owners_}, std::find(s.begin(), s.end(), 0.0) - s.begin(),
                      comm_, context_.threads);
    }

    void gather_u(Array<T>& to, const dist::Wanted& wanted) const {
        const Timed timed(context_.ledger, Phase::exchange, "deal U");
        to = dist::redistribute_columns(context_, u_.columns(), owners_, wanted);
    }

    Array<T> redistribute_v(const dist::Wanted& wanted) const {
        const Timed timed(context_.ledger, Phase::exchange, "deal V");
        return dist::redistribute_columns(context_, v_.columns(), owners_, wanted);
    }

    /// By the columns of what is A's U, which ranks have whole.
    std::vector<T> signs_of_columns(const ColumnsOf<T>& columns) const {
        std::vector<T> all;
        mpi::together(context_.comm, [&] {
            const std::vector<T> mine =
                signs(Elements<T>{columns.data, columns.rows, columns.count, 1, columns.stride});
            all.assign(static_cast<std::size_t>(kept_), T{});
            for (std::size_t j = 0; j < places_.size(); ++j) {
                all[static_cast<std::size_t>(places_[j])] = mine[j];
            }
        });
        check(MPI_Allreduce(MPI_IN_PLACE, all.data(), static_cast<int>(kernel::parts_of<T> * kept_), MPI_DOUBLE,
                            MPI_SUM, context_.comm.get()),
              "MPI_Allreduce");
        return all;
    }

    dist::Wanted rows_of(std::int64_t rows) const {
        return [rows, kept = kept_, ranks = context_.comm.size()](int rank) {
            return Block{Partition(rows, ranks)[rank], {0, kept}};
        };
    }
    dist::Wanted columns_of(std::int64_t rows) const {
        return [rows, kept = kept_, ranks = context_.comm.size()](int rank) {
            return Block{{0, rows}, Partition(kept, ranks)[rank]};
        };
    }

    /// Column by column to row by row.
    Array<T> row_by_row(const Array<T>& columns, std::int64_t rows, std::int64_t count) const {
        Array<T> to(rows * count);
        kernel::transpose(columns.raw(), rows * item, count, rows, sizeof(T), to.raw(), count * item, context_.threads);
        return to;
    }

    void redistribute(SvdFactors<T>& factors) {
        const int me = context_.comm.rank();
        const std::vector<T> way = work_.transposed ? signs_of_columns(v_.columns()) : signs_of_columns(u_.columns());
        turn(work_.transposed ? conjugated(way) : way, places_, u_.columns());
        turn(work_.transposed ? way : conjugated(way), places_, v_.columns());
        const std::int64_t u_rows = work_.transposed ? work_.n : work_.m,
                           vt_columns = work_.transposed ? work_.m : work_.n;
        const Block u_block = rows_of(u_rows)(me), v_block = columns_of(vt_columns)(me);
        Array<T> columns;
        if (work_.transposed) {
            gather_u(factors.vt, columns_of(vt_columns));
            u_ = {};
            columns = redistribute_v(rows_of(u_rows));
            v_ = {};
        } else {
            factors.vt = redistribute_v(columns_of(vt_columns));
            v_ = {};
            gather_u(columns, rows_of(u_rows));
            u_ = {};
        }
        factors.vt_share = v_block.transposed();
        factors.u_share = u_block;
        mpi::together(context_.comm, [&] { factors.u = row_by_row(columns, u_block.rows.size(), kept_); });
    }

    /// U of W is a product of what the ranks' rows were factored into and of U of R, which comes down the tree that R
    /// went up.
    void redistribute_tall(SvdFactors<T>& factors) {
        const int me = context_.comm.rank();
        Array<T> inner;
        gather_u(inner, [&](int rank) {
            const bool here = rank == start_.rows_of_q->root();
            return Block{{0, here ? work_.n : 0}, {0, here ? kept_ : 0}};
        });
        u_ = {};
        {
            const Timed timed(context_.ledger, Phase::exchange, "hand down U");
            start_.rows_of_q->hand_down(inner.data(), kept_, context_.threads);
            inner = {};
        }
        const Range rows = Partition(work_.m, context_.comm.size())[me];
        mpi::together(context_.comm, [&] {
            const Timed timed(context_.ledger, Phase::compute, "Q·U");
            const T* product = start_.rows_of_q->apply(context_.threads);
            factors.u = Array<T>(rows.size() * kept_);
            std::copy_n(product, rows.size() * kept_, factors.u.data());
            start_.rows_of_q.reset();
        });
        const Elements<T> elements{factors.u.data(), rows.size(), kept_, kept_, 1};
        const std::vector<T> way =
            work_.transposed ? signs_of_columns(v_.columns()) : signs(context_.comm, elements, rows.begin);
        const std::vector<T> way_of_u = work_.transposed ? conjugated(way) : way;
        turn(work_.transposed ? way : conjugated(way), places_, v_.columns());
        for (std::int64_t i = 0; i < rows.size(); ++i) {
            for (std::int64_t j = 0; j < kept_; ++j) {
                factors.u.data()[i * kept_ + j] *= way_of_u[static_cast<std::size_t>(j)];
            }
        }
        factors.u_share = Block{rows, {0, kept_}};
        if (!work_.transposed) {
            factors.vt = redistribute_v(columns_of(work_.n));
            factors.vt_share = columns_of(work_.n)(me).transposed();
            return;
        }
        const Array<T> columns = redistribute_v(rows_of(work_.n));
        const Range own = rows_of(work_.n)(me).rows;
        mpi::together(context_.comm, [&] {
            factors.vt = row_by_row(factors.u, kept_, rows.size());  // rows of Vᵀ are columns of what was U
            factors.u = row_by_row(columns, own.size(), kept_);
        });
        factors.vt_share = Block{{0, kept_}, rows};
        factors.u_share = Block{own, {0, kept_}};
    }

    Context& context_;
    const dist::ColumnComm& comm_;
    const Work& work_;
    Preconditioned<T>& start_;
    std::int64_t kept_;
    double energy_, left_ = 0;
    std::vector<double> norms_;        // by column
    std::vector<std::int64_t> order_;  // columns, by place
    dist::Owners owners_;
    std::vector<std::int64_t> places_;  // of this rank's columns
    MatrixOf<T> x_, v_, u_;
    std::vector<double> sigma_;
};

}  // namespace

template <class T> SvdFactors<T> back_transform(Context& context, const dist::ColumnComm& comm, const Work& work,
                                                ColumnBlocks<T>& blocks, Preconditioned<T>& start,
                                                const std::function<Range(int rank)>& columns_of,
                                                std::int64_t components, double energy, bool values_only,
                                                double scale) {
    return BackTransform<T>(context, comm, work, start, components, energy)(blocks, columns_of, values_only, scale);
}

template SvdFactors<double> back_transform(Context&, const dist::ColumnComm&, const Work&, ColumnBlocks<double>&,
                                           Preconditioned<double>&, const std::function<Range(int rank)>&, std::int64_t,
                                           double, bool, double);
template SvdFactors<kernel::Complex> back_transform(Context&, const dist::ColumnComm&, const Work&,
                                                    ColumnBlocks<kernel::Complex>&, Preconditioned<kernel::Complex>&,
                                                    const std::function<Range(int rank)>&, std::int64_t, double, bool,
                                                    double);

}  // namespace tilewise::svd
