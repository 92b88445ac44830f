// Tests of the decomposition in two stages: each stage against loops or LAPACK, the whole for matrices of any shape and
// spectrum, and the same bits with any number of threads.
#include <algorithm>
#include <cmath>
#include <doctest/doctest.h>
#include <limits>
#include <string>
#include <vector>

#include "svd_kernel_cases.hpp"
#include "tilewise/kernel/factor/two_stage.hpp"

using namespace svd_cases;

namespace {

std::size_t at(std::int64_t index) { return static_cast<std::size_t>(index); }

/// Column by column without gaps, and back.
Array<double> packed(const Matrix& m) {
    Array<double> to(m.rows * m.count);
    for (std::int64_t c = 0; c < m.count; ++c) {
        std::copy_n(m.column(c), m.rows, to.data() + c * m.rows);
    }
    return to;
}

Matrix unpacked(const Array<double>& from, std::int64_t rows, std::int64_t count) {
    Matrix m(rows, count);
    for (std::int64_t c = 0; c < count; ++c) {
        std::copy_n(from.data() + c * rows, rows, m.column(c));
    }
    return m;
}

struct TwoStages {
    Matrix u, v;
    std::vector<double> sigma;
};

TwoStages decompose(const Matrix& a, int threads, std::int64_t width = 0) {
    TwoStageSvd svd(packed(a), a.rows, a.count, true, threads, width);
    const Array<double> u = svd.left(a.count, false), v = svd.right(a.count, false);
    return {unpacked(u, a.rows, a.count), unpacked(v, a.count, a.count), svd.sigma()};
}

void check_two_stages(const Matrix& a, const TwoStages& d) {
    CHECK(orthogonality(d.u.columns()) <= 3e-14);
    CHECK(orthogonality(d.v.columns()) <= 3e-14);
    CHECK(std::is_sorted(d.sigma.rbegin(), d.sigma.rend()));
    CHECK(residual(a, d.u, [&](std::int64_t k) { return d.sigma[at(k)]; }, d.v) <= 3e-14);
    Matrix lapack_a = copy_of(a);
    std::vector<double> expected(d.sigma.size());
    gesdd(a.rows, a.count, lapack_a.data(), lapack_a.stride, expected.data(), nullptr, nullptr, 1);
    for (std::size_t k = 0; k < expected.size(); ++k) {
        CHECK(std::abs(d.sigma[k] - expected[k]) <= 2e-14 * expected[0]);
    }
}

/// An upper bidiagonal matrix.
Matrix bidiagonal(const std::vector<double>& d, const std::vector<double>& e) {
    const auto n = static_cast<std::int64_t>(d.size());
    Matrix b(n, n);
    for (std::int64_t i = 0; i < n; ++i) {
        b.column(i)[i] = d[at(i)];
        if (i + 1 < n) {
            b.column(i + 1)[i] = e[at(i)];
        }
    }
    return b;
}

}  // namespace

TEST_CASE("a block of reflectors is what they are one after the other, whatever is zero in them") {
    for (const std::int64_t rows : {5, 40, 300}) {
        for (const std::int64_t count : {1, 5, 32}) {
            if (count > rows) {
                continue;
            }
            const std::int64_t reach = std::min<std::int64_t>(rows, 37), width = 2 * slab_unit;
            const Matrix random = normal_matrix(rows, count), c = normal_matrix(width, rows + slab_margin, 2);
            BlockReflector block;
            block.shape(rows, count, reach);
            std::vector<double> tau(at(count)), t(at(count * count));
            for (std::int64_t j = 0; j < count; ++j) {
                double squares = 0;
                for (std::int64_t i = j; i < std::min(rows, j + reach); ++i) {
                    block.v(i, j) = i == j ? 1 : random.column(j)[i];
                    squares += block.v(i, j) * block.v(i, j);
                }
                tau[at(j)] = 2 / squares;
            }
            block.make_t(tau.data(), t.data());
            block.set_t(t.data(), count);
            const Matrix got = copy_of(c), expected = copy_of(c);  // row by row: columns of these are rows
            block.apply(got.data(), got.stride, width);
            for (std::int64_t j = count - 1; j >= 0; --j) {
                for (std::int64_t x = 0; x < width; ++x) {
                    double sum = 0;
                    for (std::int64_t i = 0; i < rows; ++i) {
                        sum += block.v(i, j) * expected.column(i)[x];
                    }
                    for (std::int64_t i = 0; i < rows; ++i) {
                        expected.column(i)[x] -= tau[at(j)] * sum * block.v(i, j);
                    }
                }
            }
            double worst = 0;
            for (std::int64_t i = 0; i < got.stride * got.count; ++i) {
                worst = std::max(worst, std::abs(got.data()[i] - expected.data()[i]));
            }
            CHECK(worst <= 1e-12);
        }
    }
}

TEST_CASE("a bidiagonal matrix by divide and conquer, also where it falls apart or has equal values") {
#ifdef TILEWISE_SANITIZED
    const std::vector<std::int64_t> sizes{1, 2, 30, 257};  // the check takes their cubes
#else
    const std::vector<std::int64_t> sizes{1, 2, 30, 257, 520, 700};
#endif
    for (const std::int64_t n : sizes) {
        for (const std::string kind : {"random", "zeros", "equal", "graded", "identity", "nothing"}) {
            CAPTURE(n);
            CAPTURE(kind);
            const Matrix random = normal_matrix(n, 2, 7);
            std::vector<double> d(at(n)), e(at(n));
            for (std::int64_t i = 0; i < n; ++i) {
                const bool zero = kind == "nothing" || (kind == "zeros" && i % 3 == 0);
                const double scale = kind == "graded" ? std::pow(10.0, -16.0 * static_cast<double>(i) / 700) : 1;
                d[at(i)] = zero ? 0 : kind == "equal" || kind == "identity" ? 1 : scale * random.column(0)[i];
                e[at(i)] = zero || kind == "identity" ? 0 : kind == "equal" ? 1e-3 : scale * random.column(1)[i];
            }
            const Matrix b = bidiagonal(d, e);
            const Array<double> u_columns(n * n), vt(n * n);
            bidiagonal_svd(n, d.data(), e.data(), u_columns.data(), vt.data(), 2);
            Matrix u = unpacked(u_columns, n, n), v(n, n);
            for (std::int64_t i = 0; i < n; ++i) {
                for (std::int64_t j = 0; j < n; ++j) {
                    v.column(j)[i] = vt[i * n + j];
                }
            }
            if (kind == "nothing") {
                CHECK(d[0] == 0);
                CHECK(orthogonality(u.columns()) <= 1e-13);
            } else {
                check_two_stages(b, {std::move(u), std::move(v), d});
            }
        }
    }
}

TEST_CASE("two stages decompose what is square and tall, narrower than a band and wider") {
    for (const auto& [rows, columns] : std::vector<std::pair<std::int64_t, std::int64_t>>{
             {1, 1}, {2, 2}, {3, 2}, {9, 1}, {17, 16}, {98, 97}, {97, 97}, {200, 193}, {300, 120}, {290, 290}}) {
        for (const std::int64_t width : {0, 8, 40}) {
            CAPTURE(rows);
            CAPTURE(columns);
            CAPTURE(width);
            const Matrix a = normal_matrix(rows, columns, 3);
            check_two_stages(a, decompose(a, 2, columns > width ? width : 0));
        }
    }
}

TEST_CASE("two stages decompose what has equal, few or no singular values, and any scale") {
    const std::int64_t n = 300;
    check_two_stages(identity(n), decompose(identity(n), 2));
    Matrix low = normal_matrix(n, n, 5);
    for (std::int64_t c = 7; c < n; ++c) {
        std::copy_n(low.column(c % 7), n, low.column(c));
    }
    check_two_stages(low, decompose(low, 2));
    const Matrix graded = scaled_columns(normal_matrix(n, n),
                                         [](std::int64_t c) { return std::pow(10.0, -static_cast<double>(c) / 15); });
    check_two_stages(graded, decompose(graded, 2));
    for (const double scale : {1e-290, 1e290}) {
        const Matrix scaled = scaled_columns(normal_matrix(n, n), [&](std::int64_t) { return scale; });
        const TwoStages d = decompose(scaled, 2);
        CHECK(orthogonality(d.u.columns()) <= 3e-14);
        CHECK(orthogonality(d.v.columns()) <= 3e-14);
        CHECK(std::abs(d.sigma[0] / scale - decompose(normal_matrix(n, n), 1).sigma[0]) <= 1e-12);
    }
    const TwoStages nothing = decompose(Matrix(150, 150), 2);
    CHECK(nothing.sigma[0] == 0);
    CHECK(orthogonality(nothing.u.columns()) <= 1e-13);
}

TEST_CASE("singular values alone are those with vectors, and no bit depends on threads") {
    const Matrix a = normal_matrix(700, 600, 9);
    const TwoStages one = decompose(a, 1);
    for (const int threads : {2, 3}) {
        const TwoStages more = decompose(a, threads);
        CHECK(more.sigma == one.sigma);
        CHECK(std::equal(one.u.data(), one.u.data() + one.u.stride * one.u.count, more.u.data()));
        CHECK(std::equal(one.v.data(), one.v.data() + one.v.stride * one.v.count, more.v.data()));
    }
    const TwoStageSvd values(packed(a), 700, 600, false, 2);
    for (std::size_t k = 0; k < one.sigma.size(); ++k) {
        CHECK(std::abs(values.sigma()[k] - one.sigma[k]) <= 1e-12);
    }
}

TEST_CASE("each stage tells how far it is, whichever vectors are made first") {
    const Matrix a = normal_matrix(700, 600, 11);
    for (const bool vectors : {false, true}) {
        std::vector<double> told;
        TwoStageSvd svd(packed(a), 700, 600, vectors, 1, 32, [&](double done) { told.push_back(done); });
        if (vectors) {
            svd.right(600, true);
            svd.left(600, true);
        }
        CHECK(std::is_sorted(told.begin(), told.end()));
        CHECK(told.back() == doctest::Approx(1));
        CHECK(told.size() > 600 / 32 + 500);  // panels, and sweeps of bulges
    }
}
