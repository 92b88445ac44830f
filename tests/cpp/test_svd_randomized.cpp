// Tests of the randomized decomposition, and of the proof that all decompositions share: against LAPACK, on files of
// every order and type.
#include <doctest/doctest.h>

#include "svd_file_cases.hpp"
#include "tilewise/base/error.hpp"
#include "tilewise/kernel/product/few_vectors.hpp"

using namespace tilewise;
using namespace tilewise::test;
using namespace tilewise::test::svd_files;

namespace {

/// All that holds for any matrix; `exact`: iterated until every component is within the tolerance, not just so often.
void check_result(const Case& c, const svd::Outcome& outcome, bool exact) {
    const Factors found = c.result(), wanted = by_lapack(c.a);
    const svd::Diagnostics& diagnostics = outcome.diagnostics;
    const double scale = wanted.s.front() > 0 ? wanted.s.front() : 1, rounding = 50 * c.epsilon();
    CHECK(distance_to_identity(found.u, false) < (c.output == Dtype::float32 ? 2e-6 : 1e-13));
    CHECK(distance_to_identity(found.vt, true) < (c.output == Dtype::float32 ? 2e-6 : 1e-13));
    REQUIRE(std::ssize(diagnostics.residuals) == c.count);
    for (std::int64_t k = 0; k < c.count; ++k) {
        CAPTURE(k);
        CHECK(found.s[index_of(k)] <= wanted.s[index_of(k)] + rounding * scale);
        CHECK(found.s[index_of(k)] >= wanted.s[index_of(k)] -
                                          (exact ? 1e-8 * wanted.s[index_of(k)] : diagnostics.residuals[index_of(k)]) -
                                          rounding * scale);
        CHECK(diagnostics.residuals[index_of(k)] <=
              (exact ? diagnostics.tolerance : 1) * wanted.s[index_of(k)] + rounding * scale);
    }
    check_signs(found.u);
    const double error = relative_error(c.a, found), least = tail(wanted.s, c.count);
    CHECK(error >= least - rounding);
    CHECK(error <= (exact ? 1 + 1e-6 : 1.1) * least + rounding);
    REQUIRE(outcome.verification);
    CAPTURE(outcome.verification->error / outcome.verification->tolerance);
    CHECK(outcome.verification->passed);
    CHECK(diagnostics.converged == (outcome.verification->share == 1));
    CHECK((!exact || diagnostics.converged));
    if (c.count < std::min(c.a.rows, c.a.columns)) {
        REQUIRE(diagnostics.error_estimate);
        CHECK(std::abs(*diagnostics.error_estimate - error) <= 1.5 * diagnostics.error_rounding + rounding);
    }
    CHECK((exact || diagnostics.reads == c.options.power + 3));
    CHECK(c.proof(Verify::serial).passed);
}

constexpr double infinity = std::numeric_limits<double>::infinity();

}  // namespace

TEST_CASE("randomized: the largest singular values are LAPACK's, for every shape, order and type") {
    const mpi::Communicator comm(MPI_COMM_WORLD);
    int turn = 0;
    for (const auto& [rows, columns] :
         {std::pair<std::int64_t, std::int64_t>{97, 31}, {23, 110}, {40, 40}, {300, 7}, {3, 5}}) {
        const std::int64_t least = std::min(rows, columns);
        for (const bool by_columns : {false, true}) {
            for (const Dtype dtype : {Dtype::float64, Dtype::float32}) {
                for (const std::int64_t count : {std::int64_t{1}, std::min<std::int64_t>(5, least), least}) {
                    if (++turn % 4 != 0 && comm.size() > 2) {  // ranks that share cores are slow
                        continue;
                    }
                    Case c(comm, matrix_of(rows, columns, halves), count, dtype, by_columns);
                    c.options.read = turn / 4 % 2 == 0 ? io::StrategyKind::mapped : io::StrategyKind::positioned;
                    c.options.panel_bytes = turn % 3 == 0 ? 700 : 0;
                    c.threads = 1 + turn / 2 % 2;
                    CAPTURE(rows);
                    CAPTURE(columns);
                    CAPTURE(by_columns);
                    CAPTURE(static_cast<int>(dtype));
                    CAPTURE(count);
                    check_result(c, c.run(), true);
                }
            }
        }
    }
}

TEST_CASE("randomized: spectra that fall slowly, are equal, or are far apart are found to the tolerance") {
    const mpi::Communicator comm(MPI_COMM_WORLD);
    const auto one_in_three = [](std::int64_t k) { return 1.0 - 0.1 * static_cast<double>(k / 3); };
    const auto level = [](std::int64_t k) { return k < 12 ? 1.0 : 0.9; };
    const auto far = [](std::int64_t k) { return k < 2 ? 1e7 : 1.0 - static_cast<double>(k) / 200; };
    const auto below_rounding = [](std::int64_t k) {
        return k < 6 ? std::pow(10.0, -4.0 * static_cast<double>(k)) : 0.0;
    };
    int turn = 0;
    for (const auto& [name, a] : {std::pair{"normal", normal_matrix(160, 120)},
                                  {"wide", normal_matrix(90, 200)},
                                  {"slow", matrix_of(150, 100, slow)},
                                  {"equal by threes", matrix_of(60, 50, one_in_three)},
                                  {"equal at the cut", matrix_of(90, 70, level)},
                                  {"far apart", matrix_of(90, 80, far)},
                                  {"down to nothing", matrix_of(120, 60, below_rounding)}}) {
        for (const Dtype dtype : {Dtype::float64, Dtype::float32}) {
            for (const bool by_columns : {false, true}) {
                if (++turn % 7 != 0 && comm.size() > 2) {  // ranks that share cores are slow
                    continue;
                }
                CAPTURE(name);
                CAPTURE(static_cast<int>(dtype));
                CAPTURE(by_columns);
                if (dtype == Dtype::float32 && name == std::string("far apart")) {
                    continue;  // all but two are rounding of those
                }
                Case c(comm, a, 7, dtype, by_columns);
                c.options.oversample = 3;
                c.options.basis = turn % 3 == 0 ? 30 : 0;
                const svd::Outcome outcome = c.run();
                check_result(c, outcome, true);
                CHECK(outcome.diagnostics.reads <= 70);
                if (name != std::string("down to nothing")) {
                    CHECK(*outcome.diagnostics.sigma_error <= outcome.diagnostics.tolerance);
                }
            }
        }
    }
}

TEST_CASE("randomized: a looser tolerance takes fewer readings; just so many find a part, and say how exact that is") {
    const mpi::Communicator comm(MPI_COMM_WORLD);
    Case c(comm, normal_matrix(160, 120), 8);
    std::int64_t before = 1;
    for (const double tolerance : {0.3, 1e-3, 1e-9}) {
        if (comm.size() > 2 && tolerance < 0.3) {
            break;
        }
        c.options.tolerance = tolerance;
        const svd::Outcome outcome = c.run();
        CHECK(outcome.diagnostics.tolerance == tolerance);
        CHECK(*outcome.diagnostics.sigma_error <= tolerance);
        CHECK(outcome.diagnostics.reads > before);
        before = outcome.diagnostics.reads;
    }
    c.options.tolerance = 0;
    double error = infinity;
    for (const int power : {0, 1, 3, 5}) {
        if (comm.size() > 2 && power % 2 == 0) {
            continue;
        }
        c.options.power = power;
        const svd::Outcome outcome = c.run();
        check_result(c, outcome, false);
        CHECK_FALSE(outcome.diagnostics.converged);
        CHECK(outcome.verification->share < 1);
        CHECK(outcome.warnings.size() == 1);
        CHECK(relative_error(c.a, c.result()) < error);
        error = relative_error(c.a, c.result());
    }
}

TEST_CASE("the fewest components that have a share of the matrix, by every algorithm") {
    const mpi::Communicator comm(MPI_COMM_WORLD);
    for (const std::string algorithm : {"randomized", "jacobi", "local"}) {
        if (algorithm == "local" && comm.size() > 1) {
            continue;
        }
        for (const auto& [a, share] : {std::pair{normal_matrix(90, 64), 0.7},
                                       {matrix_of(50, 80, slow), 0.95},
                                       {matrix_of(40, 30, halves), 0.999999},
                                       {matrix_of(40, 30, slow), 1.0},
                                       {FileMatrix{9, 13, Numbers(9 * 13)}, 0.5}}) {
            if (comm.size() > 2 && share != 0.95) {  // ranks that share cores are slow
                continue;
            }
            CAPTURE(algorithm);
            CAPTURE(share);
            const std::int64_t most = std::min(a.rows, a.columns);
            Case c(comm, a, most);
            c.options.algorithm = svd::algorithm_named(algorithm);
            const bool travels = algorithm == "jacobi" && comm.size() > 1;
            c.options.exchange = travels ? mpi::ExchangeKind::nonblocking : mpi::ExchangeKind::none;
            c.options.energy = share;
            const svd::Outcome outcome = c.run();
            const Numbers wanted = by_lapack(a).s;
            std::int64_t count = 1;
            while (count < most && tail(wanted, count) > std::sqrt(1 - share + 1e-13)) {
                ++count;
            }
            CHECK(outcome.diagnostics.components == (wanted.front() > 0 ? count : 1));
            CHECK(outcome.verification->passed);
            const Numbers found = c.contents(c.files.s).numbers;
            for (std::int64_t k = 0; k < outcome.diagnostics.components; ++k) {
                CHECK(found[index_of(k)] == doctest::Approx(wanted[index_of(k)]).epsilon(1e-10));
            }
        }
    }
    Case c(comm, normal_matrix(90, 64), 10);
    c.options.energy = 0.9;
    CHECK_THROWS_WITH_AS(c.run(), doctest::Contains("10 components leave"), const Error&);
}

TEST_CASE("randomized: rank-deficient and zero matrices keep orthonormal vectors") {
    const mpi::Communicator comm(MPI_COMM_WORLD);
    for (const Dtype dtype : {Dtype::float64, Dtype::float32}) {
        Case exactly(comm,
                     matrix_of(80, 30, [](std::int64_t k) { return k < 4 ? 3.0 - 0.5 * static_cast<double>(k) : 0.0; }),
                     4, dtype);
        svd::Outcome outcome = exactly.run();
        check_result(exactly, outcome, true);
        CHECK(*outcome.diagnostics.error_estimate < 50 * exactly.epsilon());
        Case more(comm, exactly.a, 9, dtype);
        outcome = more.run();
        check_result(more, outcome, true);
        CHECK(outcome.diagnostics.rank == 4);
        Case zero(comm, FileMatrix{9, 13, Numbers(9 * 13)}, 3, dtype);
        outcome = zero.run();
        CHECK(distance_to_identity(zero.result().u, false) < zero.epsilon() * 10);
        CHECK(distance_to_identity(zero.result().vt, true) < zero.epsilon() * 10);
        CHECK(zero.result().s == Numbers(3));
        CHECK(outcome.verification->passed);
        CHECK(outcome.diagnostics.rank == 0);
    }
}

TEST_CASE("randomized: numbers whose squares have no place in their type") {
    const mpi::Communicator comm(MPI_COMM_WORLD);
    for (const auto& [dtype, factor] :
         {std::pair{Dtype::float64, 1e200}, std::pair{Dtype::float64, 1e140}, std::pair{Dtype::float64, 1e-90},
          std::pair{Dtype::float64, 1e-250}, std::pair{Dtype::float32, 1e30}, std::pair{Dtype::float32, 1e-31}}) {
        FileMatrix a = matrix_of(50, 20, halves);
        for (double& value : a.numbers) {
            value *= factor;
        }
        CAPTURE(factor);
        Case c(comm, a, 4, dtype);
        const svd::Outcome outcome = c.run();
        const Numbers wanted = by_lapack(c.a).s;
        for (std::int64_t k = 0; k < 4; ++k) {
            CHECK(c.result().s[index_of(k)] == doctest::Approx(wanted[index_of(k)]).epsilon(1e-5));
        }
        CHECK(outcome.verification->passed);
        CHECK(outcome.diagnostics.reads <= 7);
        CHECK(distance_to_identity(c.result().u, false) < 2e-6);
    }
}

TEST_CASE("randomized: any file that can be read: integers, made, other ways to read; values alone") {
    const mpi::Communicator comm(MPI_COMM_WORLD);
    FileMatrix integers = normal_matrix(70, 26);
    for (double& value : integers.numbers) {
        value = std::round(20 * value);
    }
    for (const std::string read : {"positioned", "mapped", "collective", "root"}) {
        for (const bool by_columns : {false, true}) {
            CAPTURE(read);
            Case c(comm, integers, 26, Dtype::int16, by_columns);
            c.options.read = io::strategy_named(read);
            c.options.panel_bytes = 3000;
            check_result(c, c.run(), true);
        }
    }
    Case lines(comm, integers, 26, Dtype::float64);
    std::string written;
    for (std::int64_t i = 0; i < 70; ++i) {
        for (std::int64_t j = 0; j < 26; ++j) {
            written += std::to_string(static_cast<int>(integers(i, j))) + (j < 25 ? " " : "\n");
        }
    }
    comm.barrier();
    if (comm.rank() == 0) {
        std::ofstream(lines.region.path, std::ios::binary) << written;
    }
    comm.barrier();
    lines.region.text = io::TextLines{.separator = ' ', .line_numbers = 26};
    lines.region.file_bytes = std::ssize(written);
    lines.options.panel_bytes = 3000;
    check_result(lines, lines.run(), true);
    Case c(comm, matrix_of(33, 90, slow), 33);
    c.region.generator = "normal";
    c.region.seed = 3;
    c.region.path = "";
    CHECK(c.run().verification->passed);
    Case values(comm, matrix_of(33, 90, halves), 5);
    const std::optional<io::Region> u = values.files.u;
    values.files.u.reset();
    values.files.vt.reset();
    values.options.values_only = true;
    CHECK(values.run().verification->passed);
    values.change(values.files.s, [](FileMatrix& s) { s(0, 0) *= 1.01; });
    CHECK(values.proof(Verify::serial).passed == false);
}

TEST_CASE("randomized: what is not finite is named, first in row-major order") {
    const mpi::Communicator comm(MPI_COMM_WORLD);
    for (const bool by_columns : {false, true}) {
        for (const auto& [rows, columns] : {std::pair<std::int64_t, std::int64_t>{60, 20}, {20, 60}}) {
            FileMatrix a = normal_matrix(rows, columns);
            a(17, 3) = -infinity;
            a(15, 19) = std::numeric_limits<double>::quiet_NaN();
            a(16, 0) = infinity;
            Case c(comm, a, 3, Dtype::float64, by_columns);
            c.options.panel_bytes = 2000;
            CHECK_THROWS_WITH_AS(c.run(), doctest::Contains("row 15, column 19 (from 0) is nan"), const Error&);
        }
    }
}

TEST_CASE("randomized: more components than there are is refused; runs repeat to the bit") {
    const mpi::Communicator comm(MPI_COMM_WORLD);
    Case c(comm, normal_matrix(12, 5), 5);
    c.options.components = 6;
    CHECK_THROWS_AS(c.run(), Error);
    Case d(comm, matrix_of(200, 40, slow), 6);
    d.threads = 2;
    d.run();
    const Factors before = d.result();
    d.options.repeat = 2;
    d.options.warmup = 1;
    CHECK(d.run().samples.size() == 2);
    CHECK(d.result().u.numbers == before.u.numbers);
    CHECK(d.result().s == before.s);
}

TEST_CASE("the proof finds wrong elements, values, orders and pairs") {
    const mpi::Communicator comm(MPI_COMM_WORLD);
    for (const Dtype dtype : {Dtype::float64, Dtype::float32}) {
        for (const auto& [rows, columns, count] :
             {std::array<std::int64_t, 3>{70, 30, 6}, std::array<std::int64_t, 3>{20, 64, 20}}) {
            Case c(comm, matrix_of(rows, columns, slow), count, dtype);
            CHECK(c.run().verification->passed);
            const Factors right = c.result();
            const auto refused = [&](const io::Region& file, const FileMatrix& as_it_was, auto change) {
                c.change(file, change);
                CHECK_FALSE(c.proof(Verify::fast).passed);
                CHECK_FALSE(c.proof(Verify::serial).passed);
                c.change(file, [&](FileMatrix& numbers) { numbers = as_it_was; });
                CHECK(c.proof(Verify::fast).passed);
            };
            const FileMatrix s{1, count, right.s};
            refused(*c.files.u, right.u, [](FileMatrix& u) { u(u.rows - 1, u.columns - 1) += 1e-3; });
            refused(*c.files.vt, right.vt, [](FileMatrix& vt) { vt(0, vt.columns - 1) += 1e-3; });
            refused(*c.files.u, right.u, [](FileMatrix& u) {
                for (std::int64_t i = 0; i < u.rows; ++i) {
                    std::swap(u(i, 0), u(i, 1));
                }
            });
            refused(*c.files.vt, right.vt, [](FileMatrix& vt) {
                for (std::int64_t j = 0; j < vt.columns; ++j) {
                    vt(1, j) = -vt(1, j);
                }
            });
            refused(c.files.s, s, [](FileMatrix& numbers) { numbers(0, 2) *= 1.001; });
            refused(c.files.s, s, [](FileMatrix& numbers) { std::swap(numbers(0, 0), numbers(0, 1)); });
            refused(c.files.s, s,
                    [](FileMatrix& numbers) { numbers(0, 0) = std::numeric_limits<double>::quiet_NaN(); });
            refused(c.files.s, s, [](FileMatrix& numbers) { numbers(0, numbers.columns - 1) *= -1; });
            Scratch us_file(comm, ".svd.us");
            c.files.us = Case::made(us_file, rows, count, c.output);
            std::ofstream(us_file.path, std::ios::binary | std::ios::app);
            CHECK(c.run().verification->passed);
            c.change(*c.files.us, [](FileMatrix& us) { us(2, 1) *= 1.001; });
            CHECK_FALSE(c.proof(Verify::fast).passed);
            CHECK_FALSE(c.proof(Verify::serial).passed);
            c.files.us.reset();
            const Corrupted corrupted;
            CHECK_FALSE(c.run().verification->passed);
        }
    }
}

TEST_CASE("the product with few vectors is that of three loops, in any order and of any size") {
    using kernel::Strided;
    const auto check = [](auto zero) {
        using T = decltype(zero);
        for (const auto& [m, k, few] :
             {std::array<std::int64_t, 3>{1, 1, 1}, {8, 5, 16}, {13, 40, 30}, {70, 3, 33}, {9, 130, 80}}) {
            const std::int64_t vectors = kernel::padded<T>(few);
            const FileMatrix a = normal_matrix(m, k), b = normal_matrix(k, vectors), c = normal_matrix(m, vectors);
            const std::vector<T> by_rows(a.numbers.begin(), a.numbers.end()), right(b.numbers.begin(), b.numbers.end());
            std::vector<T> by_columns(by_rows.size());
            for (std::int64_t i = 0; i < m; ++i) {
                for (std::int64_t p = 0; p < k; ++p) {
                    by_columns[index_of(p * m + i)] = by_rows[index_of(i * k + p)];
                }
            }
            std::vector<T> wanted(c.numbers.begin(), c.numbers.end());
            const std::vector<T> before = wanted;
            for (std::int64_t i = 0; i < m; ++i) {
                for (std::int64_t p = 0; p < k; ++p) {
                    for (std::int64_t j = 0; j < vectors; ++j) {
                        wanted[index_of(i * vectors + j)] +=
                            by_rows[index_of(i * k + p)] * right[index_of(p * vectors + j)];
                    }
                }
            }
            for (const auto& operand : {Strided<T>{by_rows.data(), k, 1}, Strided<T>{by_columns.data(), 1, m}}) {
                std::vector<T> found = before;
                kernel::multiply_few(m, k, vectors, operand, right.data(), found.data());
                double most = 0;
                for (std::size_t i = 0; i < found.size(); ++i) {
                    most = std::max(most, std::abs(static_cast<double>(found[i]) - static_cast<double>(wanted[i])));
                }
                CHECK(most < 50 * std::numeric_limits<T>::epsilon() * std::sqrt(static_cast<double>(k)));
            }
        }
    };
    check(float{});
    check(double{});
}
