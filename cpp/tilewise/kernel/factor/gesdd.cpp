// Asks for the work space, and refuses what LAPACK cannot count.
#include "tilewise/kernel/factor/gesdd.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "tilewise/base/buffer.hpp"
#include "tilewise/base/error.hpp"
#include "tilewise/kernel/factor/lapack.hpp"

namespace tilewise::kernel {
namespace {

[[noreturn]] void refuse_work_space(std::int64_t rows, std::int64_t columns) {
    throw UsageError("LAPACK's gesdd uses 32-bit indices, and a matrix of " + std::to_string(rows) + "x" +
                     std::to_string(columns) +
                     " needs more workspace than they can count; the algorithm jacobi has no such limit");
}

}  // namespace

template <class T> void gesdd(std::int64_t rows, std::int64_t columns, T* a, std::int64_t stride, double* sigma,
                              std::type_identity_t<T>* u, std::type_identity_t<T>* vt, int threads) {
    const std::int64_t least = std::min(rows, columns);
    if (least == 0) {
        return;
    }
    const BlasThreads blas(threads);
    // For vectors it asks for 3·least² and some numbers (4 where it begins with a QR), which it reckons in 32 bits: the
    // answer may have wrapped.
    const std::int64_t squares = 6 * (std::max(rows, columns) + 1) >= 11 * least ? 4 : 3;
    if (u != nullptr && (squares * least + 16) * least > std::numeric_limits<int>::max()) {
        refuse_work_space(rows, columns);
    }
    const char* job = u == nullptr ? "N" : "S";
    const int m = lapack_int(rows), n = lapack_int(columns), lda = lapack_int(std::max(stride, rows)), ldu = m,
              ldvt = lapack_int(least), query = -1;
    std::vector<int> integers(static_cast<std::size_t>(8 * least));
    // Complex numbers have reals beside them: 5·least² + 7·least, or what vectors of a long side take.
    const Array<double> more(
        is_complex_number<T> ? least * std::max(5 * least + 7, 2 * std::max(rows, columns) + 2 * least + 1) + 16 : 0);
    const auto call = [&](T* work, int size) {
        int info = 0;
        if constexpr (is_complex_number<T>) {
            TILEWISE_BLAS(zgesdd_)
            (job, &m, &n, a, &lda, sigma, u, &ldu, vt, &ldvt, work, &size, more.data(), integers.data(), &info);
        } else {
            TILEWISE_BLAS(dgesdd_)
            (job, &m, &n, a, &lda, sigma, u, &ldu, vt, &ldvt, work, &size, integers.data(), &info);
        }
        return info;
    };
    T wanted{};
    call(&wanted, query);
    const double reals = std::ceil(real_part(wanted)) + 16;
    if (reals > std::numeric_limits<int>::max()) {
        refuse_work_space(rows, columns);
    }
    const Array<T> work(static_cast<std::int64_t>(reals));
    tell<T>(effort::gesdd(m, n, u != nullptr));
    const int info = call(work.data(), static_cast<int>(reals));
    if (info != 0) {
        throw InternalError("LAPACK's gesdd did not converge (info " + std::to_string(info) +
                            "), a finite matrix was expected");
    }
}

template void gesdd(std::int64_t, std::int64_t, double*, std::int64_t, double*, double*, double*, int);
template void gesdd(std::int64_t, std::int64_t, Complex*, std::int64_t, double*, Complex*, Complex*, int);

}  // namespace tilewise::kernel
