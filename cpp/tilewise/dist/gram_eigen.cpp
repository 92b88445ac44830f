// LAPACK's steps of a symmetric eigenvalue problem one by one, so that what rank 0 no longer needs leaves it
// in between.
#include "tilewise/dist/gram_eigen.hpp"

#include <algorithm>

#include "tilewise/kernel/factor/lapack.hpp"

namespace tilewise::dist {

using namespace kernel;
namespace {

template <class T> Array<T> panel_of(const SpreadColumnsOf<T>& a) {
    return Array<T>(a.mine.rows * std::min(gram_panel_columns, a.count()));
}

/// C = AᴴB or A·B, the latter added to what is there.
template <class T> void multiply(const char* form, std::int64_t rows, std::int64_t count, std::int64_t inner,
                                 const T* a, std::int64_t lda, const T* b, std::int64_t ldb, T* c, std::int64_t ldc) {
    const T kept = *form == 'N' ? 1.0 : 0.0;
    const int m = lapack_int(rows), n = lapack_int(count), k = lapack_int(inner), a_stride = lapack_int(lda),
              b_stride = lapack_int(ldb), c_stride = lapack_int(ldc);
    if (m > 0 && n > 0) {
        lapack::gemm(form, "N", m, n, k, T{1}, a, a_stride, b, b_stride, kept, c, c_stride);
    }
}

template <class T> Gram<T> gram_on_root(const SpreadColumnsOf<T>& a, const ColumnComm& comm) {
    const Array<T> panel = panel_of(a);
    const std::int64_t n = a.count(), rows = a.mine.rows;
    Gram<T> gram{MatrixOf<T>(comm.rank() == 0 ? n : 0, comm.rank() == 0 ? n : 0),
                 std::vector<int>(static_cast<std::size_t>(n), 0),
                 {}};
    const MatrixOf<T>& g = gram.mine;
    for (std::int64_t begin = 0; begin < n; begin += gram_panel_columns) {
        const std::int64_t end = std::min(begin + gram_panel_columns, n), height = end - begin;
        comm.gather(a, begin, end, 0, panel.data());
        const std::int64_t before = a.of_rank(comm.rank(), 0, begin), count = a.mine.count - before;
        const Array<T> mine(height * count);
        multiply<T>(lapack::adjoint<T>, height, count, rows, panel.data(), rows, a.mine.column(before), a.mine.stride,
                    mine.data(), height);
        const Array<T> got(comm.redistribute(
            SpreadColumnsOf<T>{{mine.data(), height, count, height}, {a.owners.begin() + begin, a.owners.end()}},
            [&](int rank) { return grid::Block{{0, rank == 0 ? height : 0}, {0, rank == 0 ? n - begin : 0}}; }));
        for (std::int64_t c = begin; c < n && comm.rank() == 0; ++c) {
            const T* from = got.data() + (c - begin) * height;
            for (std::int64_t r = 0; r < height; ++r) {
                g.column(begin + r)[c] = conjugate(from[r]);
            }
        }
    }
    return gram;
}

template <class T> Gram<T> shared_gram(const SpreadColumnsOf<T>& a, const ColumnComm& comm) {
    const Array<T> panel = panel_of(a);
    const std::int64_t n = a.count(), rows = a.mine.rows, own = a.mine.count;
    Gram<T> gram{MatrixOf<T>(n, own), {}, {}, true};
    std::vector<std::vector<std::int64_t>> columns(static_cast<std::size_t>(comm.size()));
    for (std::int64_t c = 0; c < n; ++c) {
        columns[static_cast<std::size_t>(a.owners[static_cast<std::size_t>(c)])].push_back(c);
    }
    std::vector<std::int64_t> places(static_cast<std::size_t>(n));
    for (std::size_t turn = 0; std::ssize(gram.order) < n; ++turn) {
        for (std::size_t rank = 0; rank < columns.size(); ++rank) {
            if (turn < columns[rank].size()) {
                places[static_cast<std::size_t>(columns[rank][turn])] = std::ssize(gram.order);
                gram.order.push_back(columns[rank][turn]);
                gram.owners.push_back(static_cast<int>(rank));
            }
        }
    }
    const Array<T> products(std::min(gram_panel_columns, n) * own);
    for (std::int64_t begin = 0; begin < n; begin += gram_panel_columns) {
        const std::int64_t height = std::min(begin + gram_panel_columns, n) - begin;
        comm.gather(a, begin, begin + height, 0, panel.data());
        multiply<T>(lapack::adjoint<T>, height, own, rows, panel.data(), rows, a.mine.data, a.mine.stride,
                    products.data(), height);
        for (std::int64_t c = 0; c < own; ++c) {
            for (std::int64_t r = 0; r < height; ++r) {
                gram.mine.column(c)[places[static_cast<std::size_t>(begin + r)]] = products[c * height + r];
            }
        }
    }
    return gram;
}

/// With LAPACK, on rank 0.
template <class T> Tridiagonal<T> reduce_on_root(MatrixOf<T> g, std::int64_t n, const ColumnComm& comm, int threads) {
    Tridiagonal<T> t;
    t.diagonal.resize(static_cast<std::size_t>(n));
    t.beside.resize(t.diagonal.size());
    t.q.tau.resize(static_cast<std::size_t>(n - 1));
    comm.on_root(
        [&](int all) {
            const BlasThreads blas(all);
            std::vector<T> work(static_cast<std::size_t>(64 * n));
            const int order = lapack_int(n), stride = lapack_int(g.stride), size = lapack_int(std::ssize(work));
            check_lapack(lapack::sytrd(order, g.data(), stride, t.diagonal.data(), t.beside.data(), t.q.tau.data(),
                                       work.data(), size),
                         "sytrd");
        },
        threads);
    comm.broadcast(t.q.tau.data(), n - 1, 0);
    const grid::Partition columns(n - 1, comm.size());
    const ColumnsOf<T> below = {comm.rank() == 0 ? g.data() + 1 : nullptr, n - 1, n - 1, g.stride};
    t.memory =
        Array<T>(comm.redistribute(SpreadColumnsOf<T>{below, std::vector<int>(static_cast<std::size_t>(n - 1), 0)},
                                   [&](int rank) { return grid::Block{{0, n - 1}, columns[rank]}; }));
    t.q.columns.owners = owners_of(columns);
    t.q.columns.mine = {t.memory.data(), n - 1, columns[comm.rank()].size(), n - 1};
    return t;
}

using ColumnsOfOne = std::function<grid::Range(int rank)>;

/// With LAPACK, on rank 0; ascending.
template <class T>
Array<double> vectors_on_root(Tridiagonal<T>& t, const ColumnsOfOne& wanted, const ColumnComm& comm, int threads) {
    const auto count = std::ssize(t.diagonal);
    Matrix z(comm.rank() == 0 ? count : 0, comm.rank() == 0 ? count : 0);
    comm.on_root(
        [&](int all) {
            const BlasThreads blas(all);
            const int n = lapack_int(count), stride = lapack_int(z.stride), reals = lapack_int((count + 4) * count + 1),
                      integers = 3 + 5 * n;
            const Array<double> work(reals);
            std::vector<int> more(static_cast<std::size_t>(integers));
            int info = 0;
            tell<double>(effort::stedc(n));
            TILEWISE_BLAS(dstedc_)
            ("I", &n, t.diagonal.data(), t.beside.data(), z.data(), &stride, work.data(), &reals, more.data(),
             &integers, &info);
            check_lapack(info, "stedc");
        },
        threads);
    const std::vector<int> of_root(static_cast<std::size_t>(count), 0);
    return Array<double>(comm.redistribute(SpreadColumns{z.columns(), of_root},
                                           [&](int rank) { return grid::Block{{0, count}, wanted(rank)}; }));
}

}  // namespace

template <class T> Gram<T> gram(const SpreadColumnsOf<T>& a, bool shared, const ColumnComm& comm, int threads) {
    const BlasThreads blas(threads);
    return shared ? shared_gram(a, comm) : gram_on_root(a, comm);
}

template <class T> Tridiagonal<T> reduce(Gram<T> g, const ColumnComm& comm, int threads) {
    const std::int64_t n = std::ssize(g.owners);
    return g.shared ? distributed_sytrd(std::move(g), comm, threads)
                    : reduce_on_root(std::move(g.mine), n, comm, threads);
}

template <class T> std::vector<double> eigenvalues(const Tridiagonal<T>& t) {
    std::vector<double> values = t.diagonal, beside = t.beside;
    const int n = lapack_int(std::ssize(values));
    int info = 0;
    tell<double>(effort::sterf(n));
    TILEWISE_BLAS(dsterf_)(&n, values.data(), beside.data(), &info);
    check_lapack(info, "sterf");
    return values;
}

template <class T>
MatrixOf<T> eigenvectors(Tridiagonal<T> t, const ColumnsOfOne& wanted, const ColumnComm& comm, int threads) {
    const auto count = std::ssize(t.diagonal);
    const ColumnsOfOne reversed = [&](int rank) {
        const grid::Range columns = wanted(rank);
        return grid::Range{count - columns.end, count - columns.begin};
    };
    Array<double> got = t.shared ? distributed_stedc(t.diagonal, t.beside, reversed, comm, threads)
                                 : vectors_on_root(t, reversed, comm, threads);
    MatrixOf<T> v(count, wanted(comm.rank()).size());
    for (std::int64_t c = 0; c < v.count; ++c) {
        std::copy_n(got.data() + (v.count - 1 - c) * count, count, v.column(c));
    }
    got = {};
    apply_q(t.q, ColumnsOf<T>{v.count > 0 ? v.data() + 1 : nullptr, count - 1, v.count, v.stride}, comm, threads);
    put_rows_back(t.order, v.columns(), threads);
    return v;
}

template <class T>
MatrixOf<T> product(const SpreadColumnsOf<T>& a, const MatrixOf<T>& v, const ColumnComm& comm, int threads) {
    const BlasThreads blas(threads);
    const Array<T> panel = panel_of(a);
    const std::int64_t rows = a.mine.rows;
    MatrixOf<T> x(rows, v.count);
    for (std::int64_t begin = 0; begin < a.count(); begin += gram_panel_columns) {
        const std::int64_t end = std::min(begin + gram_panel_columns, a.count());
        comm.gather(a, begin, end, 0, panel.data());
        if (x.count == 0) {
            continue;
        }
        multiply<T>("N", rows, x.count, end - begin, panel.data(), rows, v.data() + begin, v.stride, x.data(),
                    x.stride);
    }
    return x;
}

TILEWISE_GRAM_EIGEN(, double)
TILEWISE_GRAM_EIGEN(, Complex)

}  // namespace tilewise::dist
