// The levels of TallQr, bottom up for R and top down for Q: chunks, a rank's stack, and the merges of a binary
// tree over the ranks.
//
// Of a node of that tree, ranks [begin, end) with `middle` between its halves, rank `middle` merges: that is
// one node a rank, so that none keeps more than one pair of triangles, and none for rank 0. A rank's own
// triangle goes up first, then its node's, and down again in the opposite sequence.
#include "tilewise/dist/tall_qr.hpp"

#include <algorithm>

#include "tilewise/base/threads.hpp"
#include "tilewise/kernel/factor/lapack.hpp"
#include "tilewise/mpi/datatype.hpp"

namespace tilewise::dist {
namespace {

using kernel::lapack_int;

template <class T> MPI_Datatype mpi_type() {
    return kernel::is_complex_number<T> ? MPI_C_DOUBLE_COMPLEX : sizeof(T) == 4 ? MPI_FLOAT : MPI_DOUBLE;
}

/// Columns below which the BLAS's threads cost more than they save.
constexpr std::int64_t wide = 256;
constexpr int tag = 4;

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
        kernel::tell<T>(kernel::effort::geqrf(m, n));
        TILEWISE_BLAS(sgeqrf_)(&m, &n, a, &lda, tau, work.data(), &size, &info);
    } else {
        info = kernel::lapack::geqrf(m, n, a, lda, tau, work.data(), size);
    }
    kernel::check_lapack(info, "geqrf");
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
        kernel::tell<T>(kernel::effort::ormqr(m, n, k));
        TILEWISE_BLAS(sormqr_)("L", "N", &m, &n, &k, a, &lda, tau, c, &ldc, work.data(), &size, &info);
    } else {
        info = kernel::lapack::ormqr(m, n, k, a, lda, tau, c, ldc, work.data(), size);
    }
    kernel::check_lapack(info, "ormqr");
}

/// The upper triangle of the first `rows` rows of what was factored.
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
      memory_(rows * columns) {
    for (std::int64_t index = 0; index < chunks(); ++index) {
        stack_rows_ += reflectors(index);
    }
    taus_.resize(static_cast<std::size_t>(chunks() * columns));
    stack_.resize(static_cast<std::size_t>(stack_rows_ * columns));
    stack_tau_.resize(static_cast<std::size_t>(columns));
}

template <class T> void TallQr<T>::factor(std::int64_t index) {
    T* a = chunk(index);
    const std::int64_t rows = rows_of(index);
    geqrf(rows, columns_, a, rows, taus_.data() + index * columns_);
    // All chunks but the last have the same number of rows.
    take_r(a, rows, reflectors(index), columns_, stack_.data() + index * std::min(chunk_, columns_), stack_rows_);
}

template <class T> std::int64_t TallQr<T>::rows_under(const Node& node) const {
    return std::min(columns_,
                    before_[static_cast<std::size_t>(node.end)] - before_[static_cast<std::size_t>(node.begin)]);
}

/// What this rank merges, and who takes over what it has: of R that is rank 0.
template <class T> void TallQr<T>::find_places() {
    const int me = comm_->rank();
    std::vector<std::int64_t> rows(static_cast<std::size_t>(comm_->size()));
    const std::int64_t mine = triangle();
    mpi::check(MPI_Allgather(&mine, 1, MPI_INT64_T, rows.data(), 1, MPI_INT64_T, comm_->get()), "MPI_Allgather");
    before_.assign(1, 0);
    for (const std::int64_t some : rows) {
        before_.push_back(before_.back() + some);
    }
    Node node{0, comm_->size()};
    above_ = 0;
    while (node.size() > 1) {
        if (node.middle() == me) {
            merge_ = {node, above_, rows_under(node.upper()) + rows_under(node.lower()), rows_under(node.upper()),
                      {},   {}};
        }
        above_ = node.middle();
        node = me < node.middle() ? node.upper() : node.lower();
    }
}

/// Runs of numbers, `stride` apart, as one message; none where there is nothing to say, which both sides know.
template <class T>
void TallQr<T>::send(const T* from, std::int64_t runs, std::int64_t length, std::int64_t stride, int to) const {
    if (runs > 0 && length > 0) {
        const mpi::Datatype type = mpi::strided(runs, length, stride, mpi_type<T>());
        mpi::check(MPI_Send(from, 1, type.get(), to, tag, comm_->get()), "MPI_Send");
    }
}

template <class T>
void TallQr<T>::receive(T* to, std::int64_t runs, std::int64_t length, std::int64_t stride, int from) const {
    if (runs > 0 && length > 0) {
        const mpi::Datatype type = mpi::strided(runs, length, stride, mpi_type<T>());
        mpi::check(MPI_Recv(to, 1, type.get(), from, tag, comm_->get(), MPI_STATUS_IGNORE), "MPI_Recv");
    }
}

template <class T> void TallQr<T>::merge() {
    Merge& m = merge_;
    m.a.resize(static_cast<std::size_t>(m.high * columns_));
    m.tau.resize(static_cast<std::size_t>(columns_));
    const auto take = [&](const Node& half, std::int64_t first) {
        const std::int64_t rows = rows_under(half);
        T* to = m.a.data() + first;
        if (half.holder() == comm_->rank()) {
            take_r(stack_.data(), stack_rows_, rows, columns_, to, m.high);
        } else {
            receive(to, columns_, rows, m.high, half.holder());
            take_r(to, m.high, rows, columns_, to, m.high);  // without the sender's reflectors
        }
    };
    take(m.node.upper(), 0);
    take(m.node.lower(), m.upper);
    geqrf(m.high, columns_, m.a.data(), m.high, m.tau.data());
    send(m.a.data(), columns_, std::min(m.high, columns_), m.high, m.above);
}

template <class T> void TallQr<T>::combine(const mpi::Communicator* comm, int threads) {
    const kernel::BlasThreads blas(columns_ < wide ? 1 : threads);
    geqrf(stack_rows_, columns_, stack_.data(), stack_rows_, stack_tau_.data());
    comm_ = comm != nullptr && comm->size() > 1 ? comm : nullptr;
    if (comm_ == nullptr || comm_->rank() == 0) {
        r_.resize(static_cast<std::size_t>(columns_ * columns_));
    }
    if (comm_ == nullptr) {
        take_r(stack_.data(), stack_rows_, triangle(), columns_, r_.data(), columns_);
        return;
    }
    find_places();
    if (above_ != comm_->rank()) {
        send(stack_.data(), columns_, triangle(), stack_rows_, above_);
    }
    if (merge_.node.size() > 0) {
        merge();
    }
    if (comm_->rank() == 0) {
        const Node all{0, comm_->size()};
        receive(r_.data(), columns_, rows_under(all), columns_, all.holder());
        take_r(r_.data(), columns_, columns_, columns_, r_.data(), columns_);
    }
}

template <class T> int TallQr<T>::root() const { return comm_ == nullptr ? 0 : Node{0, comm_->size()}.holder(); }

/// Q'' of this rank's merge times what comes from above, each half to where its triangle came from.
template <class T> void TallQr<T>::split(const T* b) {
    const Merge& m = merge_;
    const std::int64_t filled = std::min(m.high, columns_);
    std::vector<T> both(static_cast<std::size_t>(m.high * count_));
    if (comm_->rank() != root()) {
        receive(both.data(), count_, filled, m.high, m.above);
    } else {
        for (std::int64_t j = 0; j < count_; ++j) {
            std::copy_n(b + j * columns_, filled, both.data() + j * m.high);
        }
    }
    ormqr(m.high, count_, filled, m.a.data(), m.high, m.tau.data(), both.data(), m.high);
    const auto give = [&](const Node& half, std::int64_t first) {
        const std::int64_t rows = rows_under(half);
        if (half.holder() != comm_->rank()) {
            send(both.data() + first, count_, rows, m.high, half.holder());
            return;
        }
        for (std::int64_t j = 0; j < count_; ++j) {
            std::copy_n(both.data() + j * m.high + first, rows, pieces_.data() + j * stack_rows_);
        }
    };
    give(m.node.upper(), 0);
    give(m.node.lower(), m.upper);
}

template <class T> void TallQr<T>::hand_down(const T* b, std::int64_t count, int threads) {
    const kernel::BlasThreads blas(columns_ < wide ? 1 : threads);
    count_ = count;
    pieces_.assign(static_cast<std::size_t>(stack_rows_ * count), T{});
    for (std::int64_t j = 0; j < count && comm_ == nullptr; ++j) {
        std::copy_n(b + j * columns_, triangle(), pieces_.data() + j * stack_rows_);
    }
    if (merge_.node.size() > 0) {
        split(b);
        merge_ = {};
    }
    if (comm_ != nullptr && above_ != comm_->rank()) {
        receive(pieces_.data(), count, triangle(), stack_rows_, above_);
    }
    ormqr(stack_rows_, count, triangle(), stack_.data(), stack_rows_, stack_tau_.data(), pieces_.data(), stack_rows_);
    stack_ = std::vector<T>();
}

template <class T> T* TallQr<T>::apply(int threads) {
    const kernel::BlasThreads one(1);
    const std::int64_t count = count_;
    // A thread writes the rows of a chunk over that chunk, and at the end they move together.
    parallel_ranges(threads, chunks(), [&](std::int64_t begin, std::int64_t end, int) {
        std::vector<T> rows_here(static_cast<std::size_t>(chunk_ * count));
        for (std::int64_t index = begin; index < end; ++index) {
            const std::int64_t rows = rows_of(index), filled = reflectors(index);
            std::fill(rows_here.begin(), rows_here.end(), T{});
            for (std::int64_t j = 0; j < count; ++j) {
                std::copy_n(pieces_.data() + j * stack_rows_ + index * std::min(chunk_, columns_), filled,
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
    pieces_ = std::vector<T>();
    return data();
}

template class TallQr<float>;
template class TallQr<double>;
template class TallQr<kernel::Complex>;

}  // namespace tilewise::dist
