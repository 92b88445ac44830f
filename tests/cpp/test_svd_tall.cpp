// Tests of the QR of a tall matrix over the ranks: R and Q against the matrix, for any type and any division of its
// rows.
#include <algorithm>
#include <cmath>
#include <doctest/doctest.h>
#include <vector>

#include "svd_cases.hpp"
#include "tilewise/dist/tall_qr.hpp"

using namespace tilewise;
using namespace tilewise::test;

namespace {

/// Rows of `a` from each rank's first one on, factored in chunks; every rank's rows of Q·b, all in one matrix.
template <class T>
void check_qr(const mpi::Communicator& comm, const Dense& a, const std::vector<std::int64_t>& begins,
              std::int64_t chunk, std::int64_t count, int threads) {
    const auto me = static_cast<std::size_t>(comm.rank());
    const std::int64_t begin = begins[me], rows = begins[me + 1] - begin, n = a.columns;
    const double fine = sizeof(T) == 4 ? 2e-5 : 1e-13;
    dist::TallQr<T> qr(rows, n, chunk);
    for (std::int64_t index = 0, first = begin; index < qr.chunks(); first += qr.rows_of(index++)) {
        for (std::int64_t i = 0; i < qr.rows_of(index); ++i) {
            for (std::int64_t j = 0; j < n; ++j) {
                qr.chunk(index)[j * qr.rows_of(index) + i] = static_cast<T>(a(first + i, j));
            }
        }
        qr.factor(index);
    }
    qr.combine(&comm, threads);
    CHECK(qr.r().empty() == (comm.rank() > 0));
    std::vector<double> r(static_cast<std::size_t>(n * n));
    std::copy(qr.r().begin(), qr.r().end(), r.begin());
    MPI_Bcast(r.data(), static_cast<int>(n * n), MPI_DOUBLE, 0, comm.get());

    // b: the first columns of I, so that Q's are found; only the root's is looked at.
    std::vector<T> b(static_cast<std::size_t>(n * count), comm.rank() == qr.root() ? T{} : static_cast<T>(NAN));
    for (std::int64_t j = 0; j < count && comm.rank() == qr.root(); ++j) {
        b[static_cast<std::size_t>(j * n + j)] = 1;
    }
    qr.hand_down(b.data(), count, threads);
    const T* mine = qr.apply(threads);
    Dense q(a.rows, count), upper(count, count), first(a.rows, count);
    for (std::int64_t i = 0; i < rows; ++i) {
        for (std::int64_t j = 0; j < count; ++j) {
            q(begin + i, j) = static_cast<double>(mine[i * count + j]);
        }
    }
    MPI_Allreduce(MPI_IN_PLACE, q.values.data(), static_cast<int>(q.values.size()), MPI_DOUBLE, MPI_SUM, comm.get());
    CHECK(defect(q) <= fine);
    for (std::int64_t j = 0; j < count; ++j) {
        for (std::int64_t i = 0; i < count; ++i) {
            upper(i, j) = r[static_cast<std::size_t>(j * n + i)];
            CHECK((i <= j || upper(i, j) == 0));
        }
        for (std::int64_t i = 0; i < a.rows; ++i) {
            first(i, j) = a(i, j);
        }
    }
    const Dense again = product(q, upper);
    for (std::size_t i = 0; i < again.values.size(); ++i) {
        CHECK(std::abs(again.values[i] - first.values[i]) <= fine * 10);
    }
}

}  // namespace

TEST_CASE("rows of a tall matrix, divided in any way, give one orthonormal Q and one R") {
    const mpi::Communicator comm(MPI_COMM_WORLD);
    const std::int64_t ranks = comm.size();
    for (const auto& [rows, columns] : {std::pair<std::int64_t, std::int64_t>{90, 7}, {41, 20}, {12, 12}, {5, 1}}) {
        const Dense a = normal(rows, columns, 21);
        for (const std::int64_t chunk : {std::int64_t{1}, std::int64_t{9}, std::int64_t{1000}}) {
            for (const int way : {0, 1, 2}) {  // equal parts; all rows on the first rank; all on the last
                std::vector<std::int64_t> begins;
                for (std::int64_t rank = 0; rank <= ranks; ++rank) {
                    begins.push_back(way == 0                    ? rows * rank / ranks
                                     : way == 1 && rank > 0      ? rows
                                     : way == 2 && rank == ranks ? rows
                                                                 : 0);
                }
                CAPTURE(rows);
                CAPTURE(columns);
                CAPTURE(chunk);
                CAPTURE(way);
                check_qr<double>(comm, a, begins, chunk, columns, 1 + way % 2);
                check_qr<float>(comm, a, begins, chunk, (columns + 1) / 2, 1);
            }
        }
    }
}

TEST_CASE("a tall matrix of zeros and one with equal columns have an orthonormal Q all the same") {
    const mpi::Communicator comm(MPI_COMM_WORLD);
    std::vector<std::int64_t> begins;
    for (std::int64_t rank = 0; rank <= comm.size(); ++rank) {
        begins.push_back(60 * rank / comm.size());
    }
    check_qr<double>(comm, Dense(60, 8), begins, 16, 8, 1);
    Dense equal(60, 8);
    std::fill(equal.values.begin(), equal.values.end(), 1.0);
    check_qr<double>(comm, equal, begins, 16, 8, 1);
}
