// Tests of the QR of columns that are spread over ranks: the factors against the matrix, with pivots and without.
#include <cmath>
#include <doctest/doctest.h>
#include <vector>

#include "svd_cases.hpp"
#include "tilewise/dist/column_comm.hpp"
#include "tilewise/dist/column_qr.hpp"

using namespace tilewise;
using namespace tilewise::test;

namespace {

/// Q, R and the permutation, on every rank.
struct Factored {
    Dense q, r;
    std::vector<int> permutation;
};

Factored factored(const mpi::Communicator& comm, const Dense& a, const std::vector<int>& owners, bool pivoted) {
    Ledger ledger;
    Context context{comm, ledger, 1};
    ledger.start(Phase::compute);
    const dist::RootTask root_task(context);
    const dist::ColumnComm team(context, root_task);
    const std::int64_t n = a.columns, own = std::count(owners.begin(), owners.end(), comm.rank());
    const kernel::Matrix mine(a.rows, own), unit(a.rows, own);
    std::int64_t next = 0;
    std::vector<std::int64_t> places;
    for (std::int64_t c = 0; c < n; ++c) {
        if (owners[static_cast<std::size_t>(c)] == comm.rank()) {
            for (std::int64_t r = 0; r < a.rows; ++r) {
                mine.column(next)[r] = a(r, c);
            }
            unit.column(next++)[c] = 1;
            places.push_back(c);
        }
    }
    Factored f{Dense(a.rows, n), Dense(n, n), {}};
    const dist::SpreadColumns spread{mine.columns(), owners};
    const dist::ColumnQr qr =
        pivoted ? dist::pivoted_column_qr(spread, f.permutation, team, 1) : dist::column_qr(spread, team, 1);
    dist::apply_q(qr, unit.columns(), team, 1);
    const grid::Partition rows(n, comm.size());
    const kernel::Matrix r = dist::transposed_triangle(qr, [&](int rank) { return rows[rank]; }, team, 1);
    for (std::int64_t c = 0; c < own; ++c) {
        for (std::int64_t i = 0; i < a.rows; ++i) {
            f.q(i, places[static_cast<std::size_t>(c)]) = unit.column(c)[i];
        }
    }
    for (std::int64_t c = 0; c < r.count; ++c) {
        for (std::int64_t i = 0; i < n; ++i) {
            f.r(rows[comm.rank()].begin + c, i) = r.column(c)[i];
        }
    }
    for (Dense* m : {&f.q, &f.r}) {
        MPI_Allreduce(MPI_IN_PLACE, m->values.data(), static_cast<int>(m->values.size()), MPI_DOUBLE, MPI_SUM,
                      comm.get());
    }
    return f;
}

}  // namespace

TEST_CASE("columns on any ranks, of any rank, have an orthonormal Q and an upper R, whose rows pivots sort by size") {
    const mpi::Communicator comm(MPI_COMM_WORLD);
    Dense graded = normal(150, 140, 4);
    for (std::int64_t i = 0; i < graded.rows; ++i) {
        for (std::int64_t j = 0; j < graded.columns; ++j) {
            graded(i, j) *= std::pow(10.0, -static_cast<double>(j * 31 % 140) / 10);
        }
    }
    for (const Dense& a : {normal(170, 131), normal(9, 9, 2), normal(5, 1), graded, Dense(20, 6),
                           product(normal(140, 5), normal(5, 135, 2))}) {
        for (const bool pivoted : {false, true}) {
            for (const int stride : {0, 1, 5}) {  // all on rank 0; in turns; in runs
                CAPTURE(a.columns);
                CAPTURE(pivoted);
                CAPTURE(stride);
                std::vector<int> owners;
                for (int c = 0; c < a.columns; ++c) {
                    owners.push_back(stride == 0 ? 0 : c / stride % comm.size());
                }
                const Factored f = factored(comm, a, owners, pivoted);
                CHECK(defect(f.q) <= 1e-13);
                const Dense again = product(f.q, f.r);
                const double scale = std::max(norm_of(a), 1e-300);
                for (std::int64_t c = 0; c < a.columns; ++c) {
                    const std::int64_t from = pivoted ? f.permutation[static_cast<std::size_t>(c)] : c;
                    double apart = 0, size = 0;
                    for (std::int64_t r = 0; r < a.rows; ++r) {
                        apart = std::hypot(apart, again(r, c) - a(r, from));
                        size = std::hypot(size, a(r, from));
                    }
                    CHECK(apart <= 1e-13 * size);  // each column at its own scale
                    double left = 0;  // of the column below row i: in a QR with exact pivots at most r(i, i)
                    for (std::int64_t i = c; i >= 0 && pivoted; --i) {
                        left = std::hypot(left, f.r(i, c));
                        CHECK(left <= 5 * std::abs(f.r(i, i)) + 1e-14 * scale);
                    }
                }
            }
        }
    }
}
