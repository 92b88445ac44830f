// Products of tall blocks by BLAS, their QR by TallQr, and small eigenvalue problems on rank 0.
#include "tilewise/svd/randomized_basis.hpp"

#include <algorithm>
#include <cmath>

#include "tilewise/base/threads.hpp"
#include "tilewise/dist/tall_qr.hpp"
#include "tilewise/kernel/factor/gesdd.hpp"
#include "tilewise/kernel/factor/lapack.hpp"
#include "tilewise/kernel/product/gemm.hpp"
#include "tilewise/mpi/datatype.hpp"
#include "tilewise/mpi/together.hpp"

namespace tilewise::svd {
namespace {

kernel::Operand operand(const Columns& a, bool transposed = false) {
    return kernel::operand(a.numbers.data(), a.columns, transposed);
}

/// Eigenvalues of a symmetric n×n matrix, ascending; its columns become the vectors.
std::vector<double> eigen(std::vector<double>& a, std::int64_t order) {
    std::vector<double> values(static_cast<std::size_t>(order));
    const int n = kernel::lapack_int(order);
    double best = 0;
    int best_int = 0, info = 0, query = -1;
    TILEWISE_BLAS(dsyevd_)
    ("V", "L", &n, a.data(), &n, values.data(), &best, &query, &best_int, &query, &info);
    std::vector<double> work(static_cast<std::size_t>(best));
    std::vector<int> work_int(static_cast<std::size_t>(best_int));
    const int size = kernel::lapack_int(std::ssize(work)), size_int = best_int;
    kernel::tell<double>(kernel::effort::syevd(n));
    TILEWISE_BLAS(dsyevd_)
    ("V", "L", &n, a.data(), &n, values.data(), work.data(), &size, work_int.data(), &size_int, &info);
    kernel::check_lapack(info, "syevd");
    return values;
}

}  // namespace

std::vector<double> Columns::lengths() const {
    std::vector<double> sums(static_cast<std::size_t>(columns));
    for (std::int64_t i = 0; i < rows; ++i) {
        const double* row = numbers.data() + i * columns;
        for (std::int64_t j = 0; j < columns; ++j) {
            sums[static_cast<std::size_t>(j)] += row[j] * row[j];
        }
    }
    std::transform(sums.begin(), sums.end(), sums.begin(), [](double sum) { return std::sqrt(sum); });
    return sums;
}

void Columns::scale(const std::vector<double>& factors) {
    for (std::int64_t i = 0; i < rows; ++i) {
        double* row = numbers.data() + i * columns;
        for (std::int64_t j = 0; j < columns; ++j) {
            row[j] *= factors[static_cast<std::size_t>(j)];
        }
    }
}

Columns times(const Columns& a, const double* b, std::int64_t count, std::int64_t stride, int threads) {
    Columns product(a.rows, count);
    kernel::multiply(a.rows, count, a.columns, operand(a), kernel::operand(b, stride), product.numbers.data(), false,
                     threads);
    return product;
}

void from_rank_0(Context& context, std::vector<double>& numbers) {
    if (context.comm.size() > 1) {
        const Timed timed(context.ledger, Phase::exchange, "broadcast");
        const mpi::Span span(std::ssize(numbers), MPI_DOUBLE);
        mpi::check(MPI_Bcast(numbers.data(), span.count(), span.type(), 0, context.comm.get()), "MPI_Bcast");
    }
}

Triangle orthonormalize(Context& context, Columns& some) {
    const std::int64_t n = some.columns;
    Triangle found{{}, std::vector<double>(static_cast<std::size_t>(n))};
    if (n == 0) {
        return found;
    }
    std::vector<double> left(static_cast<std::size_t>(n * n + n));  // and the singular values
    dist::TallQr<double> wide(0, n, 1);
    mpi::together(context.comm, [&] {
        wide = dist::TallQr<double>(some.rows, n, std::max(least_chunk_rows, dist::chunk_factor * n));
        for (std::int64_t c = 0, first = 0; c < wide.chunks(); first += wide.rows_of(c), ++c) {
            const std::int64_t rows = wide.rows_of(c);
            for (std::int64_t i = 0; i < rows; ++i) {
                for (std::int64_t j = 0; j < n; ++j) {
                    wide.chunk(c)[j * rows + i] = some.numbers[static_cast<std::size_t>((first + i) * n + j)];
                }
            }
        }
        const kernel::BlasThreads one(1);
        parallel_tasks(context.threads, wide.chunks(), [&](std::int64_t index, int) { wide.factor(index); });
        wide.combine(nullptr, 1);
        found.r = wide.r();
        if (context.comm.rank() == 0) {
            std::vector<double> r = found.r, right(static_cast<std::size_t>(n * n));
            kernel::gesdd(n, n, r.data(), n, left.data() + n * n, left.data(), right.data(), 1);
        }
    });
    from_rank_0(context, left);
    mpi::together(context.comm, [&] {
        wide.hand_down(left.data(), n, 1);
        const double* basis = wide.apply(context.threads);
        std::copy_n(basis, some.rows * n, some.numbers.data());
    });
    std::copy_n(left.data() + n * n, n, found.sigma.data());
    return found;
}

void Basis::clear() {
    parts_.clear();
    size_ = 0;
    t_.clear();
    told_ = 0;
}

void Basis::add(Columns some) {
    size_ += some.columns;
    parts_.push_back(std::move(some));
}

std::vector<double> Basis::project(Columns& w) const {
    std::vector<double> all(static_cast<std::size_t>(size_ * w.columns));
    std::int64_t first = 0;
    for (const Columns& part : parts_) {
        kernel::multiply(part.columns, w.columns, w.rows, operand(part, true), operand(w),
                         all.data() + first * w.columns, false, threads_);
        first += part.columns;
    }
    std::vector<double> less(all);
    std::transform(less.begin(), less.end(), less.begin(), [](double value) { return -value; });
    first = 0;
    for (const Columns& part : parts_) {
        kernel::multiply(w.rows, w.columns, part.columns, operand(part),
                         kernel::operand(less.data() + first * w.columns, w.columns), w.numbers.data(), true, threads_);
        first += part.columns;
    }
    return all;
}

Columns Basis::combine(const double* s, std::int64_t count, std::int64_t stride) const {
    Columns sum(parts_.front().rows, count);
    for (std::int64_t first = 0; const Columns& part : parts_) {
        kernel::multiply(sum.rows, count, part.columns, operand(part), kernel::operand(s + first * stride, stride),
                         sum.numbers.data(), first > 0, threads_);
        first += part.columns;
    }
    return sum;
}

void Basis::tell(const std::vector<double>& c) {
    const std::int64_t fresh = size_ - told_;
    std::vector<double> wider(static_cast<std::size_t>(size_ * size_));
    const auto at = [&](std::int64_t i, std::int64_t j) -> double& {
        return wider[static_cast<std::size_t>(i * size_ + j)];
    };
    for (std::int64_t i = 0; i < told_; ++i) {
        std::copy_n(t_.data() + i * told_, told_, &at(i, 0));
    }
    for (std::int64_t i = 0; i < size_; ++i) {
        for (std::int64_t j = 0; j < fresh; ++j) {
            const double value = c[static_cast<std::size_t>(i * fresh + j)];
            const double mirrored = i < told_ ? value : c[static_cast<std::size_t>((told_ + j) * fresh + i - told_)];
            at(i, told_ + j) = at(told_ + j, i) = (value + mirrored) / 2;
        }
    }
    t_ = std::move(wider);
    told_ = size_;
}

Ritz Basis::ritz(Context& context, std::int64_t locked) const {
    const std::int64_t n = size_, free = n - locked;
    std::vector<double> all(static_cast<std::size_t>(n * n + n));
    mpi::together(context.comm, [&] {
        if (context.comm.rank() != 0) {
            return;
        }
        std::vector<double> a(static_cast<std::size_t>(free * free));
        for (std::int64_t i = 0; i < free; ++i) {
            std::copy_n(t_.data() + (locked + i) * n + locked, free, a.data() + i * free);
        }
        const kernel::BlasThreads blas(context.threads);
        const std::vector<double> values = eigen(a, free);
        for (std::int64_t j = 0; j < locked; ++j) {
            all[static_cast<std::size_t>(j * n + j)] = 1;
            all[static_cast<std::size_t>(n * n + j)] = t_[static_cast<std::size_t>(j * n + j)];
        }
        for (std::int64_t j = 0; j < free; ++j) {  // LAPACK's ascend
            const std::int64_t from = free - 1 - j;
            all[static_cast<std::size_t>(n * n + locked + j)] = values[static_cast<std::size_t>(from)];
            for (std::int64_t i = 0; i < free; ++i) {
                all[static_cast<std::size_t>((locked + i) * n + locked + j)] =
                    a[static_cast<std::size_t>(from * free + i)];
            }
        }
    });
    from_rank_0(context, all);
    return {{all.begin() + n * n, all.end()}, {all.begin(), all.begin() + n * n}};
}

void Basis::restart(const Ritz& ritz, std::int64_t count) {
    Columns kept = combine(ritz.s.data(), count, size_);
    clear();
    add(std::move(kept));
    told_ = count;
    t_.assign(static_cast<std::size_t>(count * count), 0.0);
    for (std::int64_t j = 0; j < count; ++j) {
        t_[static_cast<std::size_t>(j * count + j)] = ritz.theta[static_cast<std::size_t>(j)];
    }
}

}  // namespace tilewise::svd
