// Asks each LAPACK routine for the work space that it wants, then calls it.
#include "tilewise/kernel/svd_reflectors.hpp"

#include <algorithm>

#include "tilewise/kernel/lapack.hpp"

namespace tilewise::kernel {
namespace {

int stride_of(const Columns& m) { return lapack_int(std::max<std::int64_t>({m.stride, m.rows, 1})); }

/// `routine(work, length, info)`, first to learn the length.
template <class Routine> void with_work(const char* name, const Routine& routine) {
    double wanted = 0;
    int length = -1, info = 0;
    routine(&wanted, &length, &info);
    length = lapack_int(static_cast<std::int64_t>(wanted));
    const Buffer work(static_cast<std::size_t>(length) * sizeof(double));
    routine(reinterpret_cast<double*>(work.data()), &length, &info);
    check_lapack(info, name);
}

// LAPACK's own ormqr takes 32 reflectors at a time, too few for its products to be shared by threads.
constexpr std::int64_t block = 128;

/// C ← H₁·…·Hₖ·C, a block of reflectors after the other, the last first: those of a QR in the columns of `q`, those of an LQ (whose Qᵀ this
/// is) in its rows.
void apply(const char* direction, const Columns& q, const std::vector<double>& tau, const Columns& c, int threads) {
    const BlasThreads blas(threads);
    const auto count = static_cast<std::int64_t>(tau.size());
    const Buffer t(block * block * sizeof(double)), work(static_cast<std::size_t>(c.count * block) * sizeof(double));
    const int ldq = stride_of(q), ldc = stride_of(c), ldt = lapack_int(block), n = lapack_int(c.count),
              ldw = std::max(n, 1);
    for (std::int64_t begin = (count - 1) / block * block; begin >= 0 && count > 0; begin -= block) {
        const int m = lapack_int(c.rows - begin), k = lapack_int(std::min(block, count - begin));
        double* reflectors = q.column(begin) + begin;
        TILEWISE_BLAS(dlarft_)
        ("F", direction, &m, &k, reflectors, &ldq, tau.data() + begin, t.data(), &ldt);
        // The rows of an LQ hold the reflectors of Q = Hₖ·…·H₁, so that its transpose is their product in order, as for a QR.
        TILEWISE_BLAS(dlarfb_)
        ("L", "N", "F", direction, &m, &n, &k, reflectors, &ldq, t.data(), &ldt, c.data + begin, &ldc, work.data(),
         &ldw);
    }
}

}  // namespace

void qr(const Columns& a, std::vector<double>& tau) {
    const int m = lapack_int(a.rows), n = lapack_int(a.count), lda = stride_of(a);
    tau.resize(static_cast<std::size_t>(std::min(m, n)));
    with_work("geqrf", [&](double* work, int* length, int* info) {
        TILEWISE_BLAS(dgeqrf_)(&m, &n, a.data, &lda, tau.data(), work, length, info);
    });
}

void pivoted_qr(const Columns& a, std::vector<int>& permutation, std::vector<double>& tau) {
    const int m = lapack_int(a.rows), n = lapack_int(a.count), lda = stride_of(a);
    tau.resize(static_cast<std::size_t>(std::min(m, n)));
    permutation.assign(static_cast<std::size_t>(n), 0);  // any column may be the first
    with_work("geqp3", [&](double* work, int* length, int* info) {
        TILEWISE_BLAS(dgeqp3_)(&m, &n, a.data, &lda, permutation.data(), tau.data(), work, length, info);
    });
    for (int& column : permutation) {
        --column;  // Fortran counts from 1
    }
}

void lq(const Columns& a, std::vector<double>& tau) {
    const int m = lapack_int(a.rows), n = lapack_int(a.count), lda = stride_of(a);
    tau.resize(static_cast<std::size_t>(std::min(m, n)));
    with_work("gelqf", [&](double* work, int* length, int* info) {
        TILEWISE_BLAS(dgelqf_)(&m, &n, a.data, &lda, tau.data(), work, length, info);
    });
}

void apply_q(const Columns& q, const std::vector<double>& tau, const Columns& c, int threads) {
    apply("C", q, tau, c, threads);
}

void apply_q_transposed_of_lq(const Columns& q, const std::vector<double>& tau, const Columns& c, int threads) {
    apply("R", q, tau, c, threads);
}

}  // namespace tilewise::kernel
