// Tests of `tall`: matrices in panels as small as they come, forwards and backwards, against LAPACK, for any shape,
// order, type, condition and rank; and of the stacked QR that it consists of.
#include <doctest/doctest.h>

#include <mpi.h>

#include "svd_file_cases.hpp"
#include "tilewise/kernel/factor/stacked_qr.hpp"
#include "tilewise/svd/tall_rows.hpp"

using namespace tilewise;
using namespace tilewise::test;
using namespace tilewise::test::svd_files;

namespace {

double to_minus_12(std::int64_t k) { return std::pow(10.0, -12.0 * static_cast<double>(k) / 12); }
double half_rank(std::int64_t k) { return k < 6 ? 1.0 + static_cast<double>(k) : 0; }
double nothing(std::int64_t) { return 0; }

/// As if the panels had room for so many rows on each rank.
void in_panels(Case& c, std::int64_t rows, int threads) {
    const mpi::Communicator node = c.comm.node();
    c.options.algorithm = svd::AlgorithmKind::tall;
    c.options.panel_bytes = rows * std::min(c.a.rows, c.a.columns) * 8 * node.size();
    c.threads = threads;
}

void check(const Case& c, double slack) {
    const svd::Outcome outcome = c.run();
    REQUIRE(outcome.verification.has_value());
    CHECK(outcome.verification->passed);
    const Factors found = c.result(), expected = by_lapack(c.a);
    c.comm.barrier();  // no rank goes on to the next case, whose files have the same names, before all have read
    for (std::int64_t k = 0; k < c.count; ++k) {
        CHECK(std::abs(found.s[index_of(k)] - expected.s[index_of(k)]) <=
              slack * c.epsilon() * std::max(expected.s[0], 1e-300));
    }
    CHECK(distance_to_identity(found.u, false) <= slack * c.epsilon());
    CHECK(distance_to_identity(found.vt, true) <= slack * c.epsilon());
    CHECK(relative_error(c.a, found) <= slack * c.epsilon() + (c.count < std::ssize(expected.s) ? 1 : 0));
    check_signs(found.u);
}

}  // namespace

TEST_CASE("steps: every row of every rank in one of them, in order, and no more than said") {
    for (const std::int64_t m : {7, 8, 40, 41, 97}) {
        for (const int ranks : {1, 2, 3, 5}) {
            for (const int threads : {1, 2, 3}) {
                for (const std::int64_t rows : {1, 3, 11, 200}) {
                    const svd::TallSteps steps(m, 7, ranks, threads, rows);
                    std::int64_t met = 0;
                    for (int rank = 0; rank < ranks; ++rank) {
                        CHECK((steps.lanes() == 1 || steps(rank, 0).size() == 7 * steps.lanes()));
                        for (std::int64_t step = 0; step < steps.count(); ++step) {
                            const grid::Range range = steps(rank, step);
                            CHECK((range.size() == 0 || range.begin == met));
                            CHECK(range.size() <= steps.most());
                            met += range.size();
                        }
                    }
                    CHECK(met == m);
                }
            }
        }
    }
}

TEST_CASE("stacked QR: R of all rows, and Q that is orthonormal and gives them back") {
    for (const std::int64_t n : {1, 16, 17, 40, 75}) {
        for (const std::int64_t rows : {1, 9, 130}) {
            const FileMatrix all = normal_matrix(n + rows, n);
            std::vector<double> r(index_of(n * n)), b(index_of(rows * n)), t(index_of(n * n)),
                whole(index_of((n + rows) * n));
            for (std::int64_t j = 0; j < n; ++j) {
                for (std::int64_t i = 0; i < n + rows; ++i) {
                    const double value = i < n && i > j ? 0 : all(i, j);
                    (i < n ? r[index_of(j * n + i)] : b[index_of(j * rows + i - n)]) = value;
                    whole[index_of(j * (n + rows) + i)] = value;
                }
            }
            std::vector<double> again_r = r, again_b = b, again_t(index_of(n * n));
            kernel::stacked_qr(n, r.data(), rows, b.data(), rows, t.data(), kernel::Reflectors::whole);
            kernel::stacked_qr(n, again_r.data(), rows, again_b.data(), rows, again_t.data(),
                               kernel::Reflectors::triangle);
            CHECK(again_r == r);
            CHECK(again_b == b);
            std::vector<double> top(index_of(n * n)), c(index_of(n * n));
            for (std::int64_t j = 0; j < n; ++j) {
                top[index_of(j * n + j)] = 1;
            }
            kernel::stacked_top(n, n, t.data(), top.data(), c.data());
            FileMatrix q{n + rows, n, Numbers(index_of((n + rows) * n))};
            for (std::int64_t j = 0; j < n; ++j) {
                for (std::int64_t i = 0; i < n; ++i) {
                    q(i, j) = top[index_of(j * n + i)];
                }
                for (std::int64_t i = 0; i < rows; ++i) {
                    for (std::int64_t k = 0; k < n; ++k) {
                        q(n + i, j) -= b[index_of(k * rows + i)] * c[index_of(j * n + k)];
                    }
                }
            }
            CHECK(distance_to_identity(q, false) <= 1e-13);
            for (std::int64_t j = 0; j < n; ++j) {
                for (std::int64_t i = 0; i < n + rows; ++i) {
                    double sum = 0;
                    for (std::int64_t k = 0; k <= j; ++k) {
                        sum += q(i, k) * r[index_of(j * n + k)];
                    }
                    CHECK(std::abs(sum - whole[index_of(j * (n + rows) + i)]) <= 1e-12);
                }
            }
        }
    }
}

TEST_CASE("tall: any condition, by rows and by columns, tall and wide, panels of any height") {
    const mpi::Communicator comm(MPI_COMM_WORLD);
    for (const auto sigma : {slow, to_minus_12, half_rank, nothing}) {
        for (const bool wide : {false, true}) {
            for (const bool by_columns : {false, true}) {
                for (const std::int64_t rows : {5, 13, 29}) {
                    const FileMatrix a = wide ? matrix_of(13, 131, sigma) : matrix_of(131, 13, sigma);
                    Case c(comm, a, 13, Dtype::float64, by_columns);
                    in_panels(c, rows, 1 + static_cast<int>(rows % 2));
                    check(c, 100);
                }
            }
        }
    }
}

TEST_CASE("tall: just above square, fewer rows than columns on a rank, one row, one column") {
    const mpi::Communicator comm(MPI_COMM_WORLD);
    const std::vector<std::pair<std::int64_t, std::int64_t>> shapes{{14, 13}, {13, 13}, {1, 1},
                                                                    {50, 1},  {1, 50},  {20, 19}};
    for (const auto& [rows, columns] : shapes) {
        Case c(comm, normal_matrix(rows, columns), std::min(rows, columns));
        in_panels(c, 3, 2);
        check(c, 100);
    }
}

TEST_CASE("tall: float32 by values where these are near each other, by reflections where not; fewer components") {
    const mpi::Communicator comm(MPI_COMM_WORLD);
    for (const bool wide : {false, true}) {
        for (const auto sigma : {slow, to_minus_12}) {
            for (const bool by_columns : {false, true}) {
                const FileMatrix a = wide ? matrix_of(13, 131, sigma) : matrix_of(131, 13, sigma);
                for (const std::int64_t count : {13, 4}) {  // one after the other: their files have the same names
                    Case c(comm, a, count, count == 13 ? Dtype::float32 : Dtype::float64, by_columns);
                    in_panels(c, 17, 2);
                    check(c, count == 13 ? 30 : 100);
                }
            }
        }
    }
}

TEST_CASE("tall: numbers at the ends of the range, and one that is none") {
    const mpi::Communicator comm(MPI_COMM_WORLD);
    for (const double scale : {1e-300, 1e300}) {
        FileMatrix a = matrix_of(90, 7, slow);
        std::transform(a.numbers.begin(), a.numbers.end(), a.numbers.begin(), [&](double x) { return x * scale; });
        Case c(comm, a, 7);
        in_panels(c, 8, 2);
        c.options.verify = Verify::off;
        c.run();
        const Factors found = c.result();
        for (std::int64_t k = 0; k < 7; ++k) {
            CHECK(std::abs(found.s[index_of(k)] / scale - slow(k)) <= 1e-13);
        }
        CHECK(distance_to_identity(found.u, false) <= 1e-13);
    }
    for (const bool wide : {false, true}) {
        FileMatrix a = wide ? normal_matrix(7, 90) : normal_matrix(90, 7);
        (wide ? a(3, 61) : a(61, 3)) = NAN;
        Case c(comm, a, 7);
        in_panels(c, 8, 2);
        std::string said;
        try {
            c.run();
        } catch (const UsageError& error) {
            said = error.what();
        }
        CHECK(said.find(wide ? "row 3, column 61 (from 0) is nan" : "row 61, column 3 (from 0) is nan") !=
              std::string::npos);
    }
}
