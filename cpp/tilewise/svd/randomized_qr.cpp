// The three levels of TallQr, bottom up for R and top down for Q.
#include "tilewise/svd/randomized_qr.hpp"

#include <algorithm>
#include <string>

#include "tilewise/base/error.hpp"
#include "tilewise/base/threads.hpp"
#include "tilewise/kernel/lapack.hpp"

namespace tilewise::svd {
namespace {

using kernel::lapack_int;

template <class T> MPI_Datatype mpi_type() { return sizeof(T) == 4 ? MPI_FLOAT : MPI_DOUBLE; }

void check_info(int info, const char* call) {
    if (info != 0) {
        throw Error(ErrorKind::internal, std::string(call) + " returned " + std::to_string(info));
    }
}

/// Factors rows×columns numbers in place, `stride` apart.
template <class T> void geqrf(std::int64_t rows, std::int64_t columns, T* a, std::int64_t stride, T* tau) {
    if (rows == 0 || columns == 0) {
        return;
    }
    std::vector<T> work(static_cast<std::size_t>(32 * columns));
    const int m = lapack_int(rows), n = lapack_int(columns), lda = lapack_int(stride),
              size = lapack_int(std::ssize(work));
    int info = 0;
    if constexpr (sizeof(T) == 4) {
        TILEWISE_BLAS(sgeqrf_)(&m, &n, a, &lda, tau, work.data(), &size, &info);
    } else {
        TILEWISE_BLAS(dgeqrf_)(&m, &n, a, &lda, tau, work.data(), &size, &info);
    }
    check_info(info, "geqrf");
}

/// c (rows×count, `c_stride` apart) becomes Q·c, Q of `reflectors` reflections in a.
template <class T> void ormqr(std::int64_t rows, std::int64_t count, std::int64_t reflectors, const T* a,
                              std::int64_t stride, const T* tau, T* c, std::int64_t c_stride) {
    if (rows == 0 || count == 0 || reflectors == 0) {
        return;
    }
    std::vector<T> work(static_cast<std::size_t>(32 * count + 65 * 64));
    const int m = lapack_int(rows), n = lapack_int(count), k = lapack_int(reflectors), lda = lapack_int(stride),
              ldc = lapack_int(c_stride), size = lapack_int(std::ssize(work));
    int info = 0;
    if constexpr (sizeof(T) == 4) {
        TILEWISE_BLAS(sormqr_)("L", "N", &m, &n, &k, a, &lda, tau, c, &ldc, work.data(), &size, &info);
    } else {
        TILEWISE_BLAS(dormqr_)("L", "N", &m, &n, &k, a, &lda, tau, c, &ldc, work.data(), &size, &info);
    }
    check_info(info, "ormqr");
}

/// The upper triangle of the first `rows` rows of what was factored, to rows [first, first + rows) of `to`.
template <class T> void take_r(const T* a, std::int64_t stride, std::int64_t rows, std::int64_t columns, T* to,
                               std::int64_t to_stride) {
    for (std::int64_t j = 0; j < columns; ++j) {
        for (std::int64_t i = 0; i < rows; ++i) {
            to[j * to_stride + i] = i <= j ? a[j * stride + i] : T{};
        }
    }
}

}  // namespace

template <class T> TallQr<T>::TallQr(std::int64_t rows, std::int64_t columns, std::int64_t chunk)
    : rows_(rows),
      columns_(columns),
      chunk_(std::max<std::int64_t>(1, std::min(chunk, std::max<std::int64_t>(1, rows)))),
      memory_(static_cast<std::size_t>(rows * columns) * sizeof(T)) {
    for (std::int64_t index = 0; index < chunks(); ++index) {
        stack_rows_ += reflectors(index);
    }
    taus_.resize(static_cast<std::size_t>(chunks() * columns));
    stack_.resize(static_cast<std::size_t>(stack_rows_ * columns));
    stack_tau_.resize(static_cast<std::size_t>(columns));
    r_.resize(static_cast<std::size_t>(columns * columns));
}

template <class T> void TallQr<T>::factor(std::int64_t index) {
    T* a = chunk(index);
    const std::int64_t rows = rows_of(index);
    geqrf(rows, columns_, a, rows, taus_.data() + index * columns_);
    // All chunks but the last have the same number of rows.
    take_r(a, rows, reflectors(index), columns_, stack_.data() + index * std::min(chunk_, columns_), stack_rows_);
}

template <class T> void TallQr<T>::combine(const mpi::Communicator* comm) {
    const kernel::BlasThreads one(1);
    top_mine_ = std::min(stack_rows_, columns_);
    geqrf(stack_rows_, columns_, stack_.data(), stack_rows_, stack_tau_.data());
    // Row by row, so that the ranks' rows follow each other.
    std::vector<T> mine(static_cast<std::size_t>(top_mine_ * columns_));
    for (std::int64_t i = 0; i < top_mine_; ++i) {
        for (std::int64_t j = i; j < columns_; ++j) {
            mine[static_cast<std::size_t>(i * columns_ + j)] = stack_[static_cast<std::size_t>(j * stack_rows_ + i)];
        }
    }
    std::vector<T> all = mine;
    if (comm != nullptr && comm->size() > 1) {
        const auto ranks = static_cast<std::size_t>(comm->size());
        std::vector<int> counts(ranks), places(ranks);
        const int count = lapack_int(top_mine_ * columns_);
        mpi::check(MPI_Allgather(&count, 1, MPI_INT, counts.data(), 1, MPI_INT, comm->get()), "MPI_Allgather");
        for (std::size_t rank = 1; rank < ranks; ++rank) {
            places[rank] = places[rank - 1] + counts[rank - 1];
        }
        top_first_ = places[static_cast<std::size_t>(comm->rank())] / columns_;
        all.resize(static_cast<std::size_t>(places.back() + counts.back()));
        mpi::check(MPI_Allgatherv(mine.data(), count, mpi_type<T>(), all.data(), counts.data(), places.data(),
                                  mpi_type<T>(), comm->get()),
                   "MPI_Allgatherv");
    }
    top_rows_ = std::ssize(all) / columns_;
    top_.resize(all.size());
    top_tau_.resize(static_cast<std::size_t>(columns_));
    for (std::int64_t i = 0; i < top_rows_; ++i) {
        for (std::int64_t j = 0; j < columns_; ++j) {
            top_[static_cast<std::size_t>(j * top_rows_ + i)] = all[static_cast<std::size_t>(i * columns_ + j)];
        }
    }
    geqrf(top_rows_, columns_, top_.data(), top_rows_, top_tau_.data());
    take_r(top_.data(), top_rows_, columns_, columns_, r_.data(), columns_);
}

template <class T> T* TallQr<T>::apply(const T* b, std::int64_t count, int threads) {
    const kernel::BlasThreads one(1);
    std::vector<T> whole(static_cast<std::size_t>(top_rows_ * count)),
        stacked(static_cast<std::size_t>(stack_rows_ * count));
    for (std::int64_t j = 0; j < count; ++j) {
        std::copy_n(b + j * columns_, columns_, whole.data() + j * top_rows_);
    }
    ormqr(top_rows_, count, columns_, top_.data(), top_rows_, top_tau_.data(), whole.data(), top_rows_);
    for (std::int64_t j = 0; j < count; ++j) {
        std::copy_n(whole.data() + j * top_rows_ + top_first_, top_mine_, stacked.data() + j * stack_rows_);
    }
    ormqr(stack_rows_, count, top_mine_, stack_.data(), stack_rows_, stack_tau_.data(), stacked.data(), stack_rows_);
    // A thread writes the rows of a chunk over that chunk, and at the end they move together.
    parallel_ranges(threads, chunks(), [&](std::int64_t begin, std::int64_t end, int) {
        std::vector<T> rows_here(static_cast<std::size_t>(chunk_ * count));
        for (std::int64_t index = begin; index < end; ++index) {
            const std::int64_t rows = rows_of(index), filled = reflectors(index);
            std::fill(rows_here.begin(), rows_here.end(), T{});
            for (std::int64_t j = 0; j < count; ++j) {
                std::copy_n(stacked.data() + j * stack_rows_ + index * std::min(chunk_, columns_), filled,
                            rows_here.data() + j * rows);
            }
            ormqr(rows, count, filled, chunk(index), rows, taus_.data() + index * columns_, rows_here.data(), rows);
            T* to = chunk(index);
            for (std::int64_t i = 0; i < rows; ++i) {
                for (std::int64_t j = 0; j < count; ++j) {
                    to[i * count + j] = rows_here[static_cast<std::size_t>(j * rows + i)];
                }
            }
        }
    });
    for (std::int64_t index = 1; index < chunks() && count < columns_; ++index) {
        std::copy_n(chunk(index), rows_of(index) * count, data() + index * chunk_ * count);
    }
    return data();
}

template class TallQr<float>;
template class TallQr<double>;

}  // namespace tilewise::svd
