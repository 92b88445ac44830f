// Tests of Strassen's product: its error against sums in long double stays within the bound that is stated, whatever
// the numbers, shapes, strides and transposes; its bits do not depend on threads.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <doctest/doctest.h>
#include <limits>
#include <random>
#include <vector>

#include "tilewise/kernel/product/gemm.hpp"

using namespace tilewise;
using namespace tilewise::kernel;

namespace {

enum class Numbers { normal, positive, graded_rows, one_block, cancelling, whole };
constexpr int kinds = 6;

template <class T> struct Matrix {
    std::int64_t rows, columns, stride;
    bool transposed;
    std::vector<T> memory;

    Matrix(std::int64_t m, std::int64_t n, bool as_transpose, Numbers kind, std::mt19937_64& random)
        : rows(m),
          columns(n),
          stride((as_transpose ? m : n) + 5),
          transposed(as_transpose),
          memory(static_cast<std::size_t>(stride * (as_transpose ? n : m)), std::numeric_limits<T>::quiet_NaN()) {
        std::normal_distribution<double> normal;
        std::uniform_real_distribution<double> uniform;
        for (std::int64_t i = 0; i < m; ++i) {
            for (std::int64_t j = 0; j < n; ++j) {
                double value = kind == Numbers::positive ? uniform(random) : normal(random);
                switch (kind) {
                    case Numbers::graded_rows:
                        value *= std::pow(10.0, 6.0 * static_cast<double>(i) / static_cast<double>(m) - 3);
                        break;
                    case Numbers::one_block:
                        value *= 2 * i < m && 2 * j >= n ? 1e4 : 1;
                        break;
                    case Numbers::cancelling:  // neighbours in depth take each other away, on both sides
                        value = (((i ^ j) & 1) != 0 ? -1 : 1) * (1 + 1e-3 * value);
                        break;
                    case Numbers::whole:
                        value = std::round(8 * value);
                        break;
                    default:
                        break;
                }
                at(i, j) = static_cast<T>(value);
            }
        }
    }
    T& at(std::int64_t i, std::int64_t j) {
        return memory[static_cast<std::size_t>(transposed ? j * stride + i : i * stride + j)];
    }
    T at(std::int64_t i, std::int64_t j) const { return const_cast<Matrix&>(*this).at(i, j); }
    Operand operand() const { return {reinterpret_cast<const std::byte*>(memory.data()), stride, transposed}; }

    long double longest(bool row) const {
        long double most = 0;
        for (std::int64_t i = 0; i < (row ? rows : columns); ++i) {
            long double squares = 0;
            for (std::int64_t j = 0; j < (row ? columns : rows); ++j) {
                const long double value = row ? at(i, j) : at(j, i);
                squares += value * value;
            }
            most = std::max(most, squares);
        }
        return std::sqrt(most);
    }
};

template <class T> constexpr Dtype type_of = sizeof(T) == 4 ? Dtype::float32 : Dtype::float64;

template <class T>
Product product_of(const Matrix<T>& a, const Matrix<T>& b, std::vector<T>& c, std::int64_t stride, bool accumulate) {
    return {
        type_of<T>, a.rows,    b.columns, a.columns, a.operand(), b.operand(), reinterpret_cast<std::byte*>(c.data()),
        stride,     accumulate};
}

/// The largest error of an element over what is promised.
template <class T>
double error_over_bound(const Matrix<T>& a, const Matrix<T>& b, int levels, int threads, bool accumulate) {
    const std::int64_t stride = b.columns + 2;
    std::vector<T> c(static_cast<std::size_t>(a.rows * stride), T(3));
    strassen(product_of(a, b, c, stride, accumulate), threads, levels);
    const long double unit = std::numeric_limits<T>::epsilon() / 2;
    const long double promised = strassen_growth(levels, a.columns, 1) * unit * a.longest(true) * b.longest(false) +
                                 (accumulate ? 1000 * unit * 3 : 0);
    long double worst = 0;
    for (std::int64_t i = 0; i < a.rows; ++i) {
        for (std::int64_t j = 0; j < b.columns; ++j) {
            long double sum = accumulate ? 3 : 0;
            for (std::int64_t p = 0; p < a.columns; ++p) {
                sum += static_cast<long double>(a.at(i, p)) * static_cast<long double>(b.at(p, j));
            }
            worst = std::max(worst, std::abs(sum - c[static_cast<std::size_t>(i * stride + j)]));
        }
        CHECK(c[static_cast<std::size_t>(i * stride + b.columns)] == T(3));  // what is beside a row stays
    }
    return static_cast<double>(worst / promised);
}

template <class T> void try_many(int trials, std::uint64_t seed) {
    std::mt19937_64 random(seed);
    const auto pick = [&](std::int64_t most) {
        return static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(most));
    };
    for (int trial = 0; trial < trials; ++trial) {
        const auto kind_a = static_cast<Numbers>(trial % kinds), kind_b = static_cast<Numbers>(trial / kinds % kinds);
        const std::int64_t m = 1 + pick(120), n = 1 + pick(120), k = 1 + pick(200);
        const Matrix<T> a(m, k, pick(2) == 1, kind_a, random), b(k, n, pick(2) == 1, kind_b, random);
        const int levels = 1 + static_cast<int>(pick(3)), threads = 1 + static_cast<int>(pick(3));
        CAPTURE(trial);
        CAPTURE(m);
        CAPTURE(n);
        CAPTURE(k);
        CAPTURE(levels);
        CHECK(error_over_bound(a, b, levels, threads, pick(2) == 1) <= 1);
    }
}

}  // namespace

TEST_CASE("Strassen's product errs by less than it promises") {
    try_many<double>(4 * kinds * kinds, 1);
    try_many<float>(4 * kinds * kinds, 2);
}

TEST_CASE("Strassen's product of more than one slice of depth and of columns") {
    std::mt19937_64 random(3);
    const Matrix<double> a(70, 2403, false, Numbers::normal, random), b(2403, 61, true, Numbers::normal, random);
    CHECK(error_over_bound(a, b, 1, 2, false) <= 1);
    const Matrix<float> c(21, 37, true, Numbers::normal, random), d(37, 4401, false, Numbers::normal, random);
    CHECK(error_over_bound(c, d, 1, 2, true) <= 1);
}

TEST_CASE("Strassen's product of whole numbers is exact where nothing rounds") {
    std::mt19937_64 random(4);
    const Matrix<double> a(96, 80, false, Numbers::whole, random), b(80, 104, false, Numbers::whole, random);
    for (int levels = 1; levels <= 3; ++levels) {
        CHECK(error_over_bound(a, b, levels, 2, false) == 0);
    }
}

TEST_CASE("the bits of Strassen's product do not depend on threads") {
    std::mt19937_64 random(5);
    const Matrix<double> a(301, 207, false, Numbers::normal, random), b(207, 258, false, Numbers::normal, random);
    std::vector<double> first(static_cast<std::size_t>(a.rows * b.columns)), other = first;
    strassen(product_of(a, b, first, b.columns, false), 1, 2);
    for (const int threads : {2, 3, 7}) {
        strassen(product_of(a, b, other, b.columns, false), threads, 2);
        CHECK(std::memcmp(first.data(), other.data(), first.size() * sizeof(double)) == 0);
    }
}

TEST_CASE("a failure of the caller's function is not waited for") {
    std::mt19937_64 random(6);
    const Matrix<double> a(400, 100, false, Numbers::normal, random), b(100, 100, false, Numbers::normal, random);
    std::vector<double> c(static_cast<std::size_t>(a.rows * b.columns));
    const auto fails = [](double) { throw 7; };
    CHECK_THROWS_AS(strassen(product_of(a, b, c, b.columns, false), 1, 1, fails), int);
}

TEST_CASE("levels grow with the product, for real floating-point numbers") {
    CHECK(strassen_levels(Dtype::float64, 1000, 1000, 1000) == 0);
    CHECK(strassen_levels(Dtype::float64, 4096, 4096, 4096) == 1);
    CHECK(strassen_levels(Dtype::float32, 8192, 8192, 2048) == 2);
    CHECK(strassen_levels(Dtype::float64, 8192, 8192, 800) == 0);
    CHECK(strassen_levels(Dtype::float64, 40000, 40000, 40000) == 3);
    CHECK(strassen_levels(Dtype::complex128, 8192, 8192, 8192) == 0);
    CHECK(strassen_levels(Dtype::int64, 8192, 8192, 8192) == 0);
    CHECK(strassen_work(2) == doctest::Approx(49.0 / 64));
}
