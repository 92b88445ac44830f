// Tests of the Jacobi kernels on one rank: every way of solving a pair, every start, and whole decompositions against
// LAPACK, for matrices that are hard.
#include <algorithm>
#include <cmath>
#include <doctest/doctest.h>
#include <string>
#include <vector>

#include "svd_kernel_cases.hpp"
#include "tilewise/svd/jacobi_ends.hpp"

using namespace svd_cases;

namespace {

struct Decomposition {
    Matrix u, v;
    std::vector<double> sigma;
    svd::JacobiFacts facts;
};

Decomposition decompose(const Matrix& a, const svd::JacobiOptions& options) {
    Decomposition d{
        Matrix(a.rows, a.count), Matrix(a.count, a.count), std::vector<double>(static_cast<std::size_t>(a.count)), {}};
    d.facts = svd::jacobi_svd(a.columns(), d.sigma.data(), d.u.columns(), d.v.columns(), options);
    return d;
}

void check_decomposition(const Matrix& a, const Decomposition& d) {
    CHECK(d.facts.converged);
    CHECK(orthogonality(d.u.columns()) <= 1e-13);
    CHECK(orthogonality(d.v.columns()) <= 1e-13);
    CHECK(std::is_sorted(d.sigma.rbegin(), d.sigma.rend()));
    CHECK(residual(a, d.u, [&](std::int64_t k) { return d.sigma[static_cast<std::size_t>(k)]; }, d.v) <= 1e-13);
}

double relative_error(const std::vector<double>& values, const std::vector<double>& expected) {
    double worst = 0;
    for (std::size_t k = 0; k < values.size(); ++k) {
        worst = std::max(worst, std::abs(values[k] - expected[k]) / expected[k]);
    }
    return worst;
}

}  // namespace

TEST_CASE("a pair of blocks of any widths becomes orthogonal, by products and by rotations, with V beside it") {
    struct Shape {
        std::int64_t rows, left, right;
    };
    for (const Shape& shape : {Shape{5, 1, 1},
                               {40, 3, 5},
                               {64, 0, 7},
                               {64, 7, 0},
                               {9, 1, 0},
                               {9, 0, 0},
                               {130, 64, 64},
                               {150, 1, 90},
                               {180, 100, 40},
                               {160, 0, 131}}) {
        for (const Inner inner : {Inner::blocks, Inner::rotations}) {
            for (const bool graded : {false, true}) {
                CAPTURE(shape.rows);
                CAPTURE(shape.left);
                CAPTURE(shape.right);
                CAPTURE(graded);
                const std::int64_t count = shape.left + shape.right;
                const Matrix a = scaled_columns(normal_matrix(shape.rows, count), [&](std::int64_t c) {
                    return graded ? std::pow(10.0, -12.0 * static_cast<double>(c * 31 % 97) / 97) : 1.0;
                });
                // The right block lies elsewhere, as one that another rank sent.
                Matrix left(shape.rows, shape.left), right(shape.rows, shape.right);
                Matrix v_left(count, shape.left), v_right(count, shape.right);
                for (std::int64_t c = 0; c < count; ++c) {
                    const bool first = c < shape.left;
                    std::copy_n(a.column(c), shape.rows, first ? left.column(c) : right.column(c - shape.left));
                    (first ? v_left.column(c) : v_right.column(c - shape.left))[c] = 1;
                }
                const double tolerance = jacobi_tolerance(shape.rows, inner);
                PairSolver solve(inner, tolerance, 2);
                PairOutcome outcome{1, 1, 1};
                int calls = 0;
                for (; calls < 20 && !certainly_converged(outcome, tolerance); ++calls) {
                    outcome = solve(left.columns(), right.columns(), v_left.columns(), v_right.columns());
                }
                CHECK(calls < 20);
                Matrix x(shape.rows, count), v(count, count);
                for (std::int64_t c = 0; c < count; ++c) {
                    const bool first = c < shape.left;
                    std::copy_n(first ? left.column(c) : right.column(c - shape.left), shape.rows, x.column(c));
                    std::copy_n(first ? v_left.column(c) : v_right.column(c - shape.left), count, v.column(c));
                }
                CHECK(largest_cosine(x) <= 2 * tolerance + 1e-14);
                CHECK(orthogonality(v.columns()) <= 1e-13);
                CHECK(residual(a, x, [](std::int64_t) { return 1.0; }, v) <= 1e-13);
                if (graded && shape.rows >= count && count > 0) {
                    std::vector<double> sigma;
                    for (std::int64_t c = 0; c < count; ++c) {
                        sigma.push_back(norm_of(x.column(c), shape.rows));
                    }
                    std::sort(sigma.rbegin(), sigma.rend());
                    CHECK(relative_error(sigma, gejsv_values(a)) <= 1e-12);
                }
            }
        }
    }
}

TEST_CASE("without V nothing is accumulated and the columns come out the same") {
    const Matrix a = normal_matrix(90, 80);
    const Matrix x = copy_of(a), y = copy_of(a), v = identity(80);
    PairSolver solve(Inner::blocks, 1e-14), again(Inner::blocks, 1e-14);
    const BlasThreads one(1);
    for (int sweep = 0; sweep < 3; ++sweep) {
        solve(x.columns().part(0, 40), x.columns().part(40, 40), {}, {});
        again(y.columns().part(0, 40), y.columns().part(40, 40), v.columns().part(0, 40), v.columns().part(40, 40));
    }
    CHECK(std::equal(x.data(), x.data() + x.stride * x.count, y.data()));
}

TEST_CASE("columns whose squares overflow or vanish have their cosines all the same") {
    const Matrix a = normal_matrix(30, 12);
    const Matrix b = scaled_columns(copy_of(a), [](std::int64_t c) {
        return c % 3 == 0 ? 0x1p-950 : c % 3 == 1 ? 0x1p200 : 1;
    });
    std::vector<double> plain(144), scaled(144);
    Cosines first{plain.data()}, second{scaled.data()};
    find_cosines({a.columns(), {}}, first, 1);
    const Matrix before = copy_of(b);
    find_cosines({b.columns(), {}}, second, 1);
    CHECK(std::equal(b.data(), b.data() + b.stride * b.count, before.data()));
    for (std::int64_t c = 0; c < 12; ++c) {
        CHECK(second.norms[static_cast<std::size_t>(c)] == doctest::Approx(norm_of(b.column(c), 30)).epsilon(1e-15));
        for (std::int64_t r = 0; r <= c; ++r) {
            CHECK(std::abs(first.column(c)[r] - second.column(c)[r]) <= 1e-15);
        }
    }
    const Matrix zeros = scaled_columns(copy_of(a), [](std::int64_t c) { return c == 4 ? 0x1p-1000 : 1; });
    find_cosines({zeros.columns(), {}}, first, 1);
    CHECK(first.norms[4] == 0);  // too few digits for a direction
    CHECK(first.column(4)[4] == 0);
}

TEST_CASE("hard matrices are decomposed from every start") {
    for (const Case& hard : hard_cases()) {
        for (const bool eigen : {true, false}) {
            for (const Inner inner : {Inner::blocks, Inner::rotations}) {
                CAPTURE(hard.name);
                CAPTURE(eigen);
                svd::JacobiOptions options;
                options.eigen_start = eigen;
                options.inner = inner;
                options.threads = 2;
                const Decomposition d = decompose(hard.a, options);
                check_decomposition(hard.a, d);
                const std::vector<double> expected = lapack_values(hard.a);
                for (std::size_t k = 0; k < expected.size(); ++k) {
                    CHECK(std::abs(d.sigma[k] - expected[k]) <= 1e-13 * expected[0]);
                }
                if (hard.name == "graded") {
                    CHECK_FALSE(d.facts.fallback.empty() == eigen);
                    CHECK(relative_error(d.sigma, gejsv_values(hard.a)) <= 1e-12);
                }
                if (hard.name == "square" && eigen) {
                    CHECK(d.facts.fallback == "");
                    CHECK(relative_error(d.sigma, gejsv_values(hard.a)) <= 1e-12);
                }
            }
        }
    }
}

TEST_CASE("mild grading of columns or rows leaves small singular values twelve digits, whatever the start") {
    for (const double least : {1e-2, 1e-3, 1e-4, 1e-5}) {
        constexpr std::int64_t count = 40;
        const Matrix by_columns = scaled_columns(
            copy_of(decompose(normal_matrix(count, count, 11), {}).u),
            [&](std::int64_t c) { return std::pow(least, static_cast<double>(c * 7 % count) / (count - 1)); });
        const std::vector<double> expected = long_values(by_columns);
        for (const bool rows : {false, true}) {
            const Matrix a = rows ? transposed(by_columns) : copy_of(by_columns);
            for (const bool eigen : {true, false}) {
                CAPTURE(least);
                CAPTURE(rows);
                CAPTURE(eigen);
                svd::JacobiOptions options;
                options.eigen_start = eigen;
                const Decomposition d = decompose(a, options);
                check_decomposition(a, d);
                CHECK(relative_error(d.sigma, expected) <= 1e-12);
            }
        }
    }
}

TEST_CASE("balanced matrices of condition 1e5 take the eigen start") {
    const Matrix a = normal_matrix(60, 60, 2), v = normal_matrix(60, 60, 3);
    const Decomposition left = decompose(a, {}), right = decompose(v, {});
    Matrix b(60, 60);
    for (std::int64_t c = 0; c < 60; ++c) {
        for (std::int64_t r = 0; r < 60; ++r) {
            for (std::int64_t k = 0; k < 60; ++k) {
                b.column(c)[r] += left.u.column(k)[r] * right.u.column(k)[c] * (k == 59 ? 1e-5 : 1.0);
            }
        }
    }
    CHECK(decompose(b, {}).facts.fallback == "");
}

TEST_CASE("columns that are not finite are noticed in the sweeps, not taken for zeros") {
    for (const double wrong : {std::nan(""), static_cast<double>(INFINITY)}) {
        for (const Inner inner : {Inner::blocks, Inner::rotations}) {
            Matrix x = normal_matrix(20, 6);
            x.column(4)[7] = wrong;
            PairSolver solve(inner, 1e-14);
            const BlasThreads one(1);
            CHECK_THROWS_AS(solve(x.columns(), {}, {}, {}), Error);
        }
    }
    CHECK(std::isnan(norm_of(std::vector<double>{1, std::nan(""), 2}.data(), 3)));
}

TEST_CASE("what LAPACK cannot count is refused") {
    CHECK(lapack_int(2147483647) == 2147483647);
    CHECK_THROWS_AS(lapack_int(2147483648), UsageError);
    double none = 0;
    // Refused before anything is read.
    CHECK_THROWS_AS(gesdd(26760, 26760, &none, 26760, &none, &none, &none, 1), UsageError);
    CHECK_THROWS_AS(gesdd(23200, 60000, &none, 23200, &none, &none, &none, 1), UsageError);
}

TEST_CASE("one sweep that is certain to have converged has") {
    int certain = 0;
    for (std::uint64_t seed = 0; seed < 6; ++seed) {
        Matrix x = normal_matrix(160, 140, seed), v = identity(140);
        PairSolver solve(Inner::blocks, 1e-14, 1);
        const BlasThreads one(1);
        PairOutcome outcome{1, 1, 1};
        for (int sweep = 0; sweep < 20 && !certainly_converged(outcome, 1e-14); ++sweep) {
            outcome = solve(x.columns().part(0, 70), x.columns().part(70, 70), v.columns().part(0, 70),
                            v.columns().part(70, 70));
        }
        CHECK(certainly_converged(outcome, 1e-14));
        certain += outcome.off >= 1e-14 ? 1 : 0;
        CHECK(largest_cosine(x) <= 2e-14);
    }
    CHECK(certain > 0);  // else the rule was never used
}

TEST_CASE("a column changes places only when it is turned, so that in a sweep each meets every other one") {
    // Orthogonal already, the larger one to the right.
    const Matrix x = scaled_columns(identity(4), [](std::int64_t c) { return static_cast<double>(1 + c); });
    const Matrix before = copy_of(x);
    for (const Inner inner : {Inner::blocks, Inner::rotations}) {
        PairSolver solve(inner, 1e-14);
        const BlasThreads one(1);
        for (const std::int64_t width : {1, 2}) {
            const PairOutcome outcome = solve(x.columns().part(0, width), x.columns().part(width, width), {}, {});
            CHECK(outcome.angles == 0);
            CHECK(std::equal(x.data(), x.data() + x.stride * x.count, before.data()));
        }
    }
}

TEST_CASE("columns that are nearly orthogonal one by one, but not all together, are turned once more") {
    // Each cosine is below the tolerance; all of them make more than √count times it.
    constexpr std::int64_t count = 60;
    const Matrix x = identity(count), noise = normal_matrix(count, count);
    for (std::int64_t c = 0; c < count; ++c) {
        for (std::int64_t r = 0; r < c; ++r) {
            x.column(c)[r] = 0.9e-13 * std::copysign(1.0, noise.column(c)[r]);
        }
    }
    PairSolver solve(Inner::blocks, 1e-13);
    const BlasThreads one(1);
    CHECK(solve(x.columns().part(0, 20), x.columns().part(20, 40), {}, {}).angles > 0);
    CHECK(largest_cosine(x) < 1e-14);
}

TEST_CASE("sweeps that come no nearer to the end have stalled") {
    CHECK_FALSE(has_stalled({}));
    CHECK_FALSE(has_stalled({0.5, 0.5, 0.4, 0.4, 0.3}));  // at the beginning that is usual
    CHECK_FALSE(has_stalled({1e-3, 1e-7, 1e-15}));
    CHECK(has_stalled({1e-3, 1e-11, 1e-11, 0.9e-11}));
    CHECK(has_stalled({0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5}));
}

TEST_CASE("any scale of the whole matrix, to the ends of the range of numbers") {
    const Matrix a = normal_matrix(40, 30);
    const std::vector<double> expected = gejsv_values(a);
    for (const bool eigen : {true, false}) {
        for (const int exponent : {-1000, -300, 300, 1000}) {
            CAPTURE(exponent);
            const double scale = std::ldexp(1.0, exponent);
            svd::JacobiOptions options;
            options.eigen_start = eigen;
            Decomposition d = decompose(scaled_columns(copy_of(a), [&](std::int64_t) { return scale; }), options);
            for (double& value : d.sigma) {
                value /= scale;
            }
            CHECK(relative_error(d.sigma, expected) <= 1e-12);
            CHECK(orthogonality(d.u.columns()) <= 1e-13);
        }
    }
    Matrix denormal = scaled_columns(copy_of(a), [](std::int64_t) { return 0x1p-1060; });
    const Decomposition d = decompose(denormal, {});
    CHECK(orthogonality(d.u.columns()) <= 1e-13);
    CHECK(d.sigma[0] * 0x1p1000 == doctest::Approx(expected[0] * 0x1p-60).epsilon(1e-3));
}

TEST_CASE("singular values alone are the same values") {
    const Matrix a = normal_matrix(120, 70);
    std::vector<double> sigma(70);
    const svd::JacobiFacts facts = svd::jacobi_svd(a.columns(), sigma.data(), {}, {}, {});
    CHECK(facts.converged);
    CHECK(relative_error(sigma, decompose(a, {}).sigma) <= 1e-14);
}

TEST_CASE("the sweep limit ends what has not converged, and says so") {
    svd::JacobiOptions options;
    options.eigen_start = false;
    options.most_sweeps = 1;
    const Decomposition d = decompose(normal_matrix(80, 80), options);
    CHECK_FALSE(d.facts.converged);
    CHECK(d.facts.off.size() == 1);
    CHECK(d.facts.off[0] > 1e-3);
}

TEST_CASE("completed columns are orthonormal and the others stay") {
    for (const std::int64_t from : {0, 1, 17, 30}) {
        const Matrix a = normal_matrix(45, 30);
        Decomposition d = decompose(a, {});
        const Matrix before = copy_of(d.u);
        svd::complete(dist::SpreadColumns{d.u.columns(), std::vector<int>(30, 0)}, from, dist::ColumnComm(), 2);
        CHECK(orthogonality(d.u.columns()) <= 1e-13);
        CHECK(std::equal(before.data(), before.column(0) + from * before.stride, d.u.data()));
    }
}

TEST_CASE("gesdd decomposes matrices of any shape") {
    for (const auto& [rows, columns] :
         {std::pair<std::int64_t, std::int64_t>{50, 20}, {20, 50}, {33, 33}, {1, 7}, {7, 1}, {0, 3}}) {
        const std::int64_t least = std::min(rows, columns);
        const Matrix a = normal_matrix(rows, columns);
        std::vector<double> copy, u(static_cast<std::size_t>(rows * least)),
            vt(static_cast<std::size_t>(least * columns)), sigma(static_cast<std::size_t>(least));
        for (std::int64_t c = 0; c < columns; ++c) {
            copy.insert(copy.end(), a.column(c), a.column(c) + rows);
        }
        gesdd(rows, columns, copy.data(), rows, sigma.data(), u.data(), vt.data(), 2);
        for (std::int64_t i = 0; i < rows; ++i) {
            for (std::int64_t j = 0; j < columns; ++j) {
                double sum = 0;
                for (std::int64_t k = 0; k < least; ++k) {
                    sum += u[static_cast<std::size_t>(i + k * rows)] * sigma[static_cast<std::size_t>(k)] *
                           vt[static_cast<std::size_t>(k + j * least)];
                }
                CHECK(std::abs(sum - a.column(j)[i]) <= 1e-12);
            }
        }
    }
}
