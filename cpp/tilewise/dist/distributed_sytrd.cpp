// V takes the place of the panel's columns as they are reduced, W follows it in memory: a product brings A up to date.
#include <algorithm>

#include "tilewise/dist/gram_eigen.hpp"
#include "tilewise/kernel/factor/lapack.hpp"

namespace tilewise::dist {

using namespace kernel;
namespace {

template <class T> class Reduction {
public:
    Reduction(Gram<T> gram, const ColumnComm& comm)
        : team_(comm),
          n_(std::ssize(gram.owners)),
          a_(std::move(gram.mine)),
          order_(std::move(gram.order)),
          spread_{a_.columns(), std::move(gram.owners)},
          memory_(2 * n_ * std::min(n_, reduced_columns)),
          products_(a_.count),
          small_(2 * reduced_columns),
          rows_of_mine_(a_.count * 2 * reduced_columns) {
        t_.diagonal.resize(static_cast<std::size_t>(n_));
        t_.beside.resize(t_.diagonal.size());
        t_.q.tau.resize(static_cast<std::size_t>(n_ - 1));
    }

    Tridiagonal<T> operator()() {
        for (std::int64_t begin = 0; begin < n_; begin += reduced_columns) {
            begin_ = begin;
            end_ = std::min(begin + reduced_columns, n_);
            rows_ = n_ - begin;
            team_.gather(spread_, begin_, end_, begin_, memory_.data());
            for (std::int64_t c = begin_; c < end_; ++c) {
                reduce_column(c);
            }
            update();
        }
        // All have found the same, unless their processors round differently; what follows asks for the same bits.
        team_.broadcast(t_.diagonal.data(), n_, 0);
        team_.broadcast(t_.beside.data(), n_, 0);
        team_.broadcast(t_.q.tau.data(), n_ - 1, 0);
        t_.order = std::move(order_);
        t_.shared = true;
        t_.memory = std::move(a_.memory);
        const std::int64_t reflectors = n_ - 1;
        spread_.owners.resize(static_cast<std::size_t>(reflectors));
        T* below = a_.count > 0 ? t_.memory.data() + 1 : nullptr;
        t_.q.columns = {{below, reflectors, spread_.of_rank(team_.rank(), 0, reflectors), a_.stride},
                        std::move(spread_.owners)};
        return std::move(t_);
    }

private:
    T* v(std::int64_t column) const { return memory_.data() + (column - begin_) * rows_; }
    T* w(std::int64_t column) const { return memory_.data() + (end_ - begin_ + column - begin_) * rows_; }
    bool is_mine(std::int64_t c) const { return spread_.owners[static_cast<std::size_t>(c)] == team_.rank(); }

    /// V and W of the columns before c take part; row c of them, and what is below it, is at `from` − begin_.
    void reduce_column(std::int64_t c) {
        const std::int64_t done = c - begin_, at = c - begin_, height = n_ - c - 1;
        T* x = v(c) + at;
        bring_up_to_date(x, c);
        t_.diagonal[static_cast<std::size_t>(c)] = real_part(*x);
        mine_before_ += is_mine(c) ? 1 : 0;
        if (height == 0) {
            return;
        }
        T& tau = t_.q.tau[static_cast<std::size_t>(c)];
        T* reflector = x + 1;
        check_lapack(lapack::geqrf(lapack_int(height), 1, reflector, lapack_int(height), &tau, &space_, 1), "geqrf");
        t_.beside[static_cast<std::size_t>(c)] = real_part(*reflector);
        *reflector = 1;
        if (is_mine(c)) {
            std::copy_n(reflector, height, a_.column(mine_before_ - 1) + c + 1);
        }
        T* p = w(c) + at + 1;
        multiply(reflector, c, p);
        tell<T>({12.0 * static_cast<double>(height * done), 0});
        const int rows = lapack_int(height), count = lapack_int(done), stride = lapack_int(rows_);
        const T *v_below = v(begin_) + at + 1, *w_below = w(begin_) + at + 1;
        if (done > 0) {
            T *with_w = small_.data(), *with_v = with_w + done;
            lapack::gemv(lapack::adjoint<T>, rows, count, T{1}, w_below, stride, reflector, 1, T{}, with_w);
            lapack::gemv(lapack::adjoint<T>, rows, count, T{1}, v_below, stride, reflector, 1, T{}, with_v);
            lapack::gemv("N", rows, count, T{-1}, v_below, stride, with_w, 1, T{1}, p);
            lapack::gemv("N", rows, count, T{-1}, w_below, stride, with_v, 1, T{1}, p);
        }
        T product{};
        for (std::int64_t r = 0; r < height; ++r) {
            p[r] *= tau;
            product += conjugate(p[r]) * reflector[r];
        }
        const T part = -0.5 * tau * product;
        for (std::int64_t r = 0; r < height; ++r) {
            p[r] += part * reflector[r];
        }
    }

    /// Column c of the panel, from its row on, as the reflections before it have left it.
    void bring_up_to_date(T* x, std::int64_t c) {
        const std::int64_t done = c - begin_;
        if (done == 0) {
            return;
        }
        const int rows = lapack_int(n_ - c), count = lapack_int(done), stride = lapack_int(rows_);
        T *of_w = small_.data(), *of_v = of_w + done;
        for (std::int64_t k = 0; k < done; ++k) {
            of_w[k] = conjugate(w(begin_ + k)[done]);
            of_v[k] = conjugate(v(begin_ + k)[done]);
        }
        lapack::gemv("N", rows, count, T{-1}, v(begin_) + done, stride, of_w, 1, T{1}, x);
        lapack::gemv("N", rows, count, T{-1}, w(begin_) + done, stride, of_v, 1, T{1}, x);
    }

    /// A·v below row c, as A was before the panel: an element for each column that is left.
    void multiply(const T* reflector, std::int64_t c, T* to) {
        const std::int64_t height = n_ - c - 1, count = a_.count - mine_before_;
        if (count > 0) {
            tell<T>({2 * static_cast<double>(height * count), static_cast<double>(height * count)});
            lapack::gemv(lapack::adjoint<T>, lapack_int(height), lapack_int(count), T{1},
                         a_.column(mine_before_) + c + 1, lapack_int(a_.stride), reflector, 1, T{},
                         products_.data() + mine_before_);
        }
        team_.gather(SpreadColumnsOf<T>{{products_.data(), 1, a_.count, 1}, spread_.owners}, c + 1, n_, 0, to);
    }

    /// This rank's columns after the panel.
    void update() {
        const std::int64_t done = end_ - begin_, count = a_.count - mine_before_, height = n_ - end_;
        if (count == 0) {
            return;
        }
        std::int64_t next = 0;
        for (std::int64_t c = end_; c < n_; ++c) {
            if (is_mine(c)) {
                for (std::int64_t k = 0; k < done; ++k) {
                    rows_of_mine_[next + k * count] = w(begin_ + k)[c - begin_];
                    rows_of_mine_[next + (done + k) * count] = v(begin_ + k)[c - begin_];
                }
                ++next;
            }
        }
        lapack::gemm("N", is_complex_number<T> ? "C" : "T", lapack_int(height), lapack_int(count), lapack_int(2 * done),
                     T{-1}, v(begin_) + done, lapack_int(rows_), rows_of_mine_.data(), lapack_int(count), T{1},
                     a_.column(mine_before_) + end_, lapack_int(a_.stride));
    }

    const ColumnComm& team_;
    std::int64_t n_, begin_ = 0, end_ = 0, rows_ = 0;
    MatrixOf<T> a_;
    std::vector<std::int64_t> order_;
    SpreadColumnsOf<T> spread_;
    Array<T> memory_;                ///< V and W of the panel, each of `rows_` rows
    Array<T> products_;              ///< p of this rank's columns
    Array<T> small_, rows_of_mine_;  ///< W and V at the rows that are this rank's columns
    std::int64_t mine_before_ = 0;   ///< this rank's columns up to the one that is reduced
    T space_{};
    Tridiagonal<T> t_;
};

}  // namespace

template <class T> Tridiagonal<T> distributed_sytrd(Gram<T> gram, const ColumnComm& comm, int threads) {
    const BlasThreads blas(threads);
    return Reduction<T>(std::move(gram), comm)();
}

template Tridiagonal<double> distributed_sytrd(Gram<double>, const ColumnComm&, int);
template Tridiagonal<Complex> distributed_sytrd(Gram<Complex>, const ColumnComm&, int);

}  // namespace tilewise::dist
