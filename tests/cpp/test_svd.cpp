// Tests of the singular value decomposition as a library: every exchange, rank count and shape against LAPACK's values,
// and against the matrix itself.
#include <array>
#include <doctest/doctest.h>
#include <string>

#include "svd_cases.hpp"
#include "svd_kernel_cases.hpp"
#include "tilewise/base/error.hpp"
#include "tilewise/svd/jacobi.hpp"

using namespace tilewise;
using namespace tilewise::test;

TEST_CASE("every exchange decomposes every shape, and all of them to the same bits") {
    const mpi::Communicator comm(MPI_COMM_WORLD);
    for (const Named& shape : shapes()) {
        CAPTURE(shape.name);
        const std::vector<double> wanted = values_of(shape.matrix);
        std::vector<double> first;
        for (const std::string& exchange : exchanges(comm.size())) {
            CAPTURE(exchange);
            svd::Options options = options_for(comm, exchange);
            options.blocks = 6 * comm.size();  // the fewest with which `overlap` has something between
            const Decomposed got = decomposed(comm, shape.matrix, options);
            std::vector<double> all = got.s;
            all.insert(all.end(), got.u.values.begin(), got.u.values.end());
            all.insert(all.end(), got.vt.values.begin(), got.vt.values.end());
            if (first.empty()) {
                check_all(shape.matrix, got, wanted);
                first = all;
            }
            CHECK(first == all);
        }
    }
}

TEST_CASE("blocks of one column, more positions than ranks, the remainder in the last, rotations, threads") {
    const mpi::Communicator comm(MPI_COMM_WORLD);
    for (const Dense& a : {normal(26, 26, 5), normal(41, 23, 6), normal(70, 18, 7)}) {
        const std::vector<double> wanted = values_of(a);
        const auto columns = static_cast<int>(a.columns);
        int turn = 0;
        for (const int blocks : {2, 2 * comm.size(), 8 * comm.size(), columns + columns % 2}) {
            for (const auto inner : {kernel::Inner::blocks, kernel::Inner::rotations}) {
                for (const auto remainder : {grid::Remainder::spread, grid::Remainder::last}) {
                    const std::vector<std::string> ways = exchanges(comm.size());
                    svd::Options options = options_for(comm, ways[static_cast<std::size_t>(++turn) % ways.size()]);
                    options.blocks = std::min(blocks, std::max(columns + 1, 4 * comm.size()) / 2 * 2);
                    options.inner = inner;
                    options.remainder = remainder;
                    options.start = std::array{svd::StartKind::qr, svd::StartKind::none,
                                               svd::StartKind::eigen}[static_cast<std::size_t>(turn % 3)];
                    CAPTURE(options.blocks);
                    CAPTURE(inner);
                    CAPTURE(mpi::name_of(options.exchange));
                    check_all(a, decomposed(comm, a, options, turn % 2 == 0, 1 + turn % 3 / 2), wanted);
                }
            }
        }
    }
}

TEST_CASE("blocks in smaller steps move as many columns in more messages") {
    const mpi::Communicator comm(MPI_COMM_WORLD);
    if (comm.size() == 1) {
        return;
    }
    svd::Options options = options_for(comm);
    const Dense a = normal(32, 32);
    const svd::Diagnostics coarse = decomposed(comm, a, options).outcome.diagnostics;
    options.blocks = 32;
    const svd::Diagnostics columns = decomposed(comm, a, options).outcome.diagnostics;

    // Between two neighbours a block goes each way in each step.
    CHECK(coarse.sweep_messages == 2 * (comm.size() - 1) * (2 * comm.size() - 1));
    CHECK(columns.sweep_messages == 2 * (comm.size() - 1) * 31);
    CHECK(columns.sweep_bytes == 2 * (comm.size() - 1) * 31 * 64 * 8);
    CHECK(columns.narrowest == 1);
    CHECK(columns.widest == 1);
}

TEST_CASE("small singular values of a graded matrix are right to their own last digits") {
    const mpi::Communicator comm(MPI_COMM_WORLD);
    constexpr std::int64_t n = 24;
    Dense a = orthonormal(n + 9, n, 8);
    std::vector<double> wanted;
    for (std::int64_t j = 0; j < n; ++j) {
        const double scale = std::pow(10.0, -20.0 * static_cast<double>(j * 7 % n) / static_cast<double>(n));
        for (std::int64_t i = 0; i < a.rows; ++i) {
            a(i, j) *= scale;
        }
        wanted.push_back(scale);
    }
    std::sort(wanted.rbegin(), wanted.rend());
    for (const auto start : {svd::StartKind::eigen, svd::StartKind::qr}) {
        for (const bool by_columns : {false, true}) {
            svd::Options options = options_for(comm);
            options.start = start;
            const Decomposed got = decomposed(comm, a, options, by_columns);
            check_all(a, got, wanted);
            for (std::size_t i = 0; i < wanted.size(); ++i) {
                CHECK(std::abs(got.s[i] - wanted[i]) <= 1e-12 * wanted[i]);
            }
            CHECK(got.outcome.diagnostics.start_used == "qr");
            CHECK((comm.rank() > 0 || got.outcome.diagnostics.fallback.empty() == (start == svd::StartKind::qr)));
        }
    }
}

TEST_CASE(
    "a square matrix with mildly graded columns keeps twelve digits in either order, a balanced one starts from "
    "eigenvectors") {
    const mpi::Communicator comm(MPI_COMM_WORLD);
    constexpr std::int64_t n = 24;
    const Dense balanced = normal(n, n, 12);
    CHECK(decomposed(comm, balanced, options_for(comm)).outcome.diagnostics.start_used == "eigen");
    CHECK(decomposed(comm, normal(80, 9), options_for(comm)).outcome.diagnostics.start_used == "eigen");
    Dense a = orthonormal(n, n, 12);
    for (std::int64_t i = 0; i < n; ++i) {
        for (std::int64_t j = 0; j < n; ++j) {
            a(i, j) *= std::pow(10.0, -5.0 * static_cast<double>(j * 7 % n) / static_cast<double>(n - 1));
        }
    }
    const kernel::Matrix columns(n, n);
    for (std::int64_t i = 0; i < n; ++i) {
        for (std::int64_t j = 0; j < n; ++j) {
            columns.column(j)[i] = a(i, j);
        }
    }
    const std::vector<double> wanted = svd_cases::long_values(columns);
    for (const bool by_columns : {false, true}) {
        const Decomposed got = decomposed(comm, a, options_for(comm), by_columns);
        check_all(a, got, wanted);
        for (std::size_t i = 0; i < wanted.size(); ++i) {
            CHECK(std::abs(got.s[i] - wanted[i]) <= 1e-12 * wanted[i]);
        }
    }
}

TEST_CASE("a singular value that has no place in the type is refused, one of the least numbers is proved") {
    const mpi::Communicator comm(MPI_COMM_WORLD);
    svd::Options options = options_for(comm);
    options.verify = Verify::fast;
    for (const Dtype dtype : {Dtype::float64, Dtype::float32}) {
        for (const auto& [rows, columns] : {std::pair{20, 15}, std::pair{50, 6}}) {
            Dense large(rows, columns), tiny(rows, columns);
            std::fill(large.values.begin(), large.values.end(), dtype == Dtype::float64 ? 1.5e308 : 3e38);
            CHECK_THROWS_WITH_AS(decomposed(comm, large, options, false, 1, dtype),
                                 doctest::Contains("its largest singular value is beyond what float"), Error);
            tiny = normal(rows, columns);
            for (double& value : tiny.values) {
                value *= dtype == Dtype::float64 ? 1e-310 : 1e-43;
            }
            CHECK(decomposed(comm, tiny, options, false, 1, dtype).outcome.verification->passed);
            options.values_only = true;
            CHECK(decomposed(comm, tiny, options, false, 1, dtype).outcome.verification->passed);
            options.values_only = false;
        }
    }
}

TEST_CASE("components, values alone, float32, repetitions, and scales near the ends of the range") {
    const mpi::Communicator comm(MPI_COMM_WORLD);
    const Dense a = normal(33, 21, 4);
    const std::vector<double> wanted = values_of(a);
    svd::Options options = options_for(comm);
    options.components = 5;
    const Decomposed few = decomposed(comm, a, options);
    CHECK(defect(few.u) <= fine);
    CHECK(defect(transposed(few.vt)) <= fine);
    CHECK(std::abs(few.s[4] - wanted[4]) <= fine * wanted[0]);

    options.components = 0;
    options.values_only = true;
    const Decomposed values = decomposed(comm, a, options);
    CHECK(std::abs(values.s[20] - wanted[20]) <= fine * wanted[0]);

    options.values_only = false;
    options.repeat = 2;
    options.warmup = 1;
    const Decomposed twice = decomposed(comm, a, options);
    CHECK(twice.outcome.samples.size() == 2);
    check_all(a, twice, wanted);

    options.repeat = 1;
    options.warmup = 0;
    const Decomposed single = decomposed(comm, a, options, false, 1, Dtype::float32);
    CHECK(single.residual(a) <= 1e-6);
    CHECK(defect(single.u) <= 1e-6);

    for (const double scale : {1e-290, 1e290}) {
        for (const Dense& unscaled : {normal(14, 14), normal(60, 8)}) {
            Dense scaled = unscaled;
            std::vector<double> s = values_of(unscaled);
            for (double& value : scaled.values) {
                value *= scale;
            }
            const Decomposed got = decomposed(comm, scaled, options);
            for (std::size_t i = 0; i < s.size(); ++i) {
                CHECK(std::abs(got.s[i] / scale - s[i]) <= fine * s[0]);
            }
            CHECK(defect(got.u) <= fine);
            CHECK(defect(transposed(got.vt)) <= fine);
        }
    }
}

TEST_CASE("LAPACK on one rank, in both types and orders of storage") {
    const mpi::Communicator self(MPI_COMM_SELF);
    const mpi::Communicator comm(MPI_COMM_WORLD);
    if (comm.size() > 1) {
        return;
    }
    svd::Options options;
    options.algorithm = svd::AlgorithmKind::local;
    for (const Named& shape : shapes()) {
        CAPTURE(shape.name);
        for (const bool by_columns : {false, true}) {
            check_all(shape.matrix, decomposed(comm, shape.matrix, options, by_columns, 1 + by_columns),
                      values_of(shape.matrix));
        }
        const Decomposed single = decomposed(comm, shape.matrix, options, false, 1, Dtype::float32);
        CHECK(single.residual(shape.matrix) <= 1e-5);
        options.components = 1;
        CHECK(decomposed(comm, shape.matrix, options).s[0] == doctest::Approx(values_of(shape.matrix)[0]));
        options.components = 0;
    }
}

TEST_CASE("numbers that are not finite are refused with the first position") {
    const mpi::Communicator comm(MPI_COMM_WORLD);
    for (const auto& [rows, columns] : {std::pair{9, 9}, std::pair{40, 7}, std::pair{6, 30}}) {
        for (const bool by_columns : {false, true}) {
            Dense a = normal(rows, columns);
            a(3, 5) = -INFINITY;
            a(4, 1) = std::nan("");
            a(5, 0) = INFINITY;
            CHECK_THROWS_WITH_AS(decomposed(comm, a, options_for(comm), by_columns),
                                 "a: row 3, column 5 (from 0) is -inf; a decomposition needs finite numbers", Error);
        }
    }
}

TEST_CASE("where the sweeps run out nothing is written, unless that is wanted") {
    const mpi::Communicator comm(MPI_COMM_WORLD);
    const Dense a = normal(30, 30);
    svd::Options options = options_for(comm);
    options.max_sweeps = 1;
    options.start = svd::StartKind::qr;
    options.inner = kernel::Inner::rotations;
    const Decomposed none = decomposed(comm, a, options);
    REQUIRE(none.outcome.verification);
    CHECK(none.outcome.verification->method == "convergence");
    CHECK(!none.outcome.verification->passed);
    CHECK(none.outcome.verification->error > none.outcome.verification->tolerance);
    CHECK(none.s[0] == 0);

    options.require_converged = false;
    const Decomposed some = decomposed(comm, a, options);
    CHECK(some.outcome.warnings.size() == 1);
    CHECK(!some.outcome.diagnostics.converged);
    CHECK(some.s[0] > 0);
}

TEST_CASE("the proof passes what is right, and finds a byte that is wrong") {
    const mpi::Communicator comm(MPI_COMM_WORLD);
    for (const auto way : {Verify::fast, Verify::serial}) {
        svd::Options options = options_for(comm);
        options.verify = way;
        const Decomposed right = decomposed(comm, normal(20, 14), options);
        REQUIRE(right.outcome.verification);
        CHECK(right.outcome.verification->passed);
        CHECK(right.outcome.diagnostics.residual.value_or(1) <= fine);
        const Corrupted corrupted;
        const Decomposed wrong = decomposed(comm, normal(20, 14), options);
        REQUIRE(wrong.outcome.verification);
        CHECK(!wrong.outcome.verification->passed);
    }
}

TEST_CASE("what does not go together is refused") {
    const mpi::Communicator comm(MPI_COMM_WORLD);
    const Dense a = normal(6, 6);
    svd::Options options = options_for(comm);
    options.blocks = 3;
    CHECK_THROWS_AS(decomposed(comm, a, options), Error);
    options.blocks = 1000;
    CHECK_THROWS_AS(decomposed(comm, a, options), Error);
    options.blocks = 0;
    options.components = 7;
    CHECK_THROWS_AS(decomposed(comm, a, options), Error);
    options.components = 0;
    options.exchange = comm.size() > 1 ? mpi::ExchangeKind::none : mpi::ExchangeKind::blocking;
    CHECK_THROWS_AS(decomposed(comm, a, options), Error);
}
