// Tests of kernels: every fast one against plain loops written here, on odd shapes, strides and transposes.
#include <algorithm>
#include <array>
#include <cmath>
#include <complex>
#include <cstring>
#include <doctest/doctest.h>
#include <limits>
#include <vector>

#include "tilewise/base/dtype.hpp"
#include "tilewise/base/error.hpp"
#include "tilewise/base/random.hpp"
#include "tilewise/kernel/codec/convert.hpp"
#include "tilewise/kernel/fill.hpp"
#include "tilewise/kernel/product/apply.hpp"
#include "tilewise/kernel/product/gemm.hpp"
#include "tilewise/kernel/product/gemm_tiled.hpp"

using namespace tilewise;
using namespace tilewise::kernel;

namespace {

template <class T> T number(std::uint64_t seed) {
    if constexpr (std::is_integral_v<T>) {
        return static_cast<T>(static_cast<std::int64_t>(mix(seed) % 2001) - 1000);
    } else {
        return T(static_cast<float>(uniform(mix(seed)) - 0.5));
    }
}
template <> std::complex<float> number(std::uint64_t seed) { return {number<float>(seed), number<float>(seed + 999)}; }
template <> std::complex<double> number(std::uint64_t seed) {
    return {number<double>(seed), number<double>(seed + 999)};
}

template <class T> struct Matrix {
    std::int64_t rows, columns, stride;
    bool transposed;
    std::vector<T> memory;

    Matrix(std::int64_t m, std::int64_t n, bool as_transpose, std::uint64_t seed)
        : rows(m),
          columns(n),
          stride((as_transpose ? m : n) + 3),
          transposed(as_transpose),
          memory(static_cast<std::size_t>(stride * (as_transpose ? n : m))) {
        for (std::size_t i = 0; i < memory.size(); ++i) {
            memory[i] = number<T>(seed + i);
        }
    }
    T at(std::int64_t i, std::int64_t j) const {
        return memory[static_cast<std::size_t>(transposed ? j * stride + i : i * stride + j)];
    }
    Operand operand() const { return {reinterpret_cast<const std::byte*>(memory.data()), stride, transposed}; }
};

template <class T> double distance(T x, T y) {
    if constexpr (std::is_integral_v<T>) {
        return x == y ? 0 : 1;
    } else {
        return std::abs(std::complex<double>(x) - std::complex<double>(y));
    }
}

template <class T> void check_gemm(Dtype dtype, Kernel kernel, double tolerance) {
    for (const auto& [m, n, k] : std::vector<std::array<std::int64_t, 3>>{
             {1, 1, 1}, {5, 3, 7}, {33, 65, 130}, {130, 2, 400}, {4, 600, 9}, {64, 96, 64}, {77, 131, 70}}) {
        for (const int form : {0, 1, 2, 3}) {
            const Matrix<T> a(m, k, (form & 1) != 0, 1), b(k, n, (form & 2) != 0, 77777);
            Matrix<T> c(m, n, false, 5);
            const Matrix<T> before = c;
            for (const bool accumulate : {false, true}) {
                gemm(
                    {.dtype = dtype,
                     .m = m,
                     .n = n,
                     .k = k,
                     .a = a.operand(),
                     .b = b.operand(),
                     .c = reinterpret_cast<std::byte*>(c.memory.data()),
                     .c_stride = c.stride,
                     .accumulate = accumulate},
                    3, kernel, [](double) {}, 128);
                double worst = 0;
                for (std::int64_t i = 0; i < m; ++i) {
                    for (std::int64_t j = 0; j < n; ++j) {
                        T sum{};
                        for (std::int64_t l = 0; l < k; ++l) {
                            sum += a.at(i, l) * b.at(l, j);
                        }
                        worst = std::max(worst, distance(c.at(i, j), accumulate ? sum + sum : sum));
                    }
                }
                CHECK(worst <= tolerance);
            }
            for (std::int64_t i = 0; i < m; ++i) {  // nothing beyond the block was touched
                for (std::int64_t j = n; j < c.stride; ++j) {
                    CHECK(c.memory[static_cast<std::size_t>(i * c.stride + j)] ==
                          before.memory[static_cast<std::size_t>(i * c.stride + j)]);
                }
            }
        }
    }
}

}  // namespace

TEST_CASE("gemm of every type, both kernels, all four forms") {
    for (const Kernel kernel : {Kernel::fast, Kernel::tiles, Kernel::blas, Kernel::plain}) {
        check_gemm<float>(Dtype::float32, kernel, 2e-3);
        check_gemm<double>(Dtype::float64, kernel, 1e-11);
        check_gemm<std::complex<float>>(Dtype::complex64, kernel, 4e-3);
        check_gemm<std::complex<double>>(Dtype::complex128, kernel, 1e-11);
        check_gemm<std::int64_t>(Dtype::int64, kernel, 0);
        check_gemm<std::uint64_t>(Dtype::uint64, kernel, 0);
    }
}

TEST_CASE("more tiles than threads: the same bits whoever computes which") {
    const std::int64_t m = 2100, n = 2200, k = 96;
    const Matrix<double> a(m, k, false, 1), b(k, n, true, 2);
    std::vector<double> one(static_cast<std::size_t>(m * n)), several(one.size()), blas(one.size());
    const auto product = [&](std::vector<double>& c) {
        return Product{.dtype = Dtype::float64,
                       .m = m,
                       .n = n,
                       .k = k,
                       .a = a.operand(),
                       .b = b.operand(),
                       .c = reinterpret_cast<std::byte*>(c.data()),
                       .c_stride = n};
    };
    const auto run = [&](std::vector<double>& c, int threads, Kernel kernel) { gemm(product(c), threads, kernel); };
    run(one, 1, Kernel::fast);
    run(blas, 1, Kernel::blas);
    for (const int threads : {2, 3, 16}) {  // the more of them, the lower the tiles
        std::fill(several.begin(), several.end(), 0.0);
        run(several, threads, Kernel::fast);
        const bool same = one == several;                  // by name, else all numbers would be printed
        CHECK((same || !tiled_gemm_suits(product(one))));  // BLAS does not promise it
    }
    double worst = 0;
    for (std::size_t i = 0; i < one.size(); ++i) {
        worst = std::max(worst, std::abs(several[i] - blas[i]));
    }
    CHECK(worst < 1e-12 * static_cast<double>(k));
}

TEST_CASE("gemm calls `between` with a growing share that ends at one") {
    const std::int64_t n = 200;
    const Matrix<double> a(n, n, false, 1), b(n, n, false, 2);
    std::vector<double> c(static_cast<std::size_t>(n * n)), shares;
    gemm(
        {.dtype = Dtype::float64,
         .m = n,
         .n = n,
         .k = n,
         .a = a.operand(),
         .b = b.operand(),
         .c = reinterpret_cast<std::byte*>(c.data()),
         .c_stride = n},
        2, Kernel::blas, [&](double done) { shares.push_back(done); }, 64);  // our tiles are deeper than all of k
    CHECK(shares.size() == 4);
    CHECK(std::is_sorted(shares.begin(), shares.end()));
    CHECK(shares.back() == 1.0);
}

TEST_CASE("an empty inner dimension gives zeros") {
    std::vector<double> c(6, 7.0);
    gemm({.dtype = Dtype::float64,
          .m = 2,
          .n = 3,
          .k = 0,
          .a = {nullptr, 0, false},
          .b = {nullptr, 3, false},
          .c = reinterpret_cast<std::byte*>(c.data()),
          .c_stride = 3},
         1);
    CHECK(c == std::vector<double>(6, 0.0));
}

TEST_CASE("types that only files hold cannot be computed in") {
    CHECK_THROWS_AS(gemm({.dtype = Dtype::int16, .m = 1, .n = 1, .k = 1, .a = {}, .b = {}}, 1, Kernel::plain),
                    UsageError);
}

TEST_CASE_TEMPLATE("apply multiplies with two vectors and sums weighted numbers, as it lies and transposed", T, float,
                   double, std::int64_t, std::complex<float>, std::complex<double>) {
    using V = Check<T>;
    const bool exact = std::is_integral_v<T>;
    const auto size = [](const auto& value) {
        if constexpr (std::is_arithmetic_v<std::remove_cvref_t<decltype(value)>>) {
            return std::array{std::abs(static_cast<double>(value)), 0.0};
        } else {
            return std::array<double, 2>{std::abs(value.real()), std::abs(value.imag())};
        }
    };
    for (const auto& [m, n] : std::vector<std::array<std::int64_t, 2>>{{37, 53}, {1, 1}, {8, 300}, {1100, 9}}) {
        for (const bool transposed : {false, true}) {
            Matrix<T> a(m, n, transposed, 3);
            Probe<V> x(n + 2);
            Image<V> y(m + 1);
            for (std::size_t j = 0; j < x.first.size(); ++j) {
                x.first[j] = number<V>(j);
                x.second[j] = number<V>(j + 500);
                x.weights[j] = static_cast<double>(j % 5 + (n > 100 ? 1 : 0));  // some are 0: left out
            }
            for (std::int64_t k = 0; !exact && k < std::ssize(a.memory); ++k) {
                if (x.weights[static_cast<std::size_t>((transposed ? k / a.stride : k % a.stride) % n + 2)] == 0) {
                    a.memory[static_cast<std::size_t>(k)] = T(std::numeric_limits<float>::quiet_NaN());
                }
            }
            apply<T>(a.operand(), m, n, x, 2, y, 1, 2);
            ColumnSizes sizes(n + 1);
            if constexpr (!std::is_integral_v<T>) {
                measure_columns<T>(a.operand(), m, n, sizes, 1, 2);
            }
            std::vector<double> largest(static_cast<std::size_t>(n)), squares(largest);
            for (std::int64_t i = 0; i < m; ++i) {
                V first{}, second{};
                double sum = 0, square = 0;
                for (std::int64_t j = 0; j < n; ++j) {
                    const auto k = static_cast<std::size_t>(j + 2);
                    for (const double part : size(a.at(i, j))) {
                        largest[k - 2] = part > largest[k - 2] ? part : largest[k - 2];
                        squares[k - 2] += part * part;
                        if (x.weights[k] != 0) {
                            sum += part * x.weights[k];
                            square += part * x.weights[k] * part * x.weights[k];
                        }
                    }
                    if (exact || x.weights[k] != 0) {
                        first += V(a.at(i, j)) * x.first[k];
                        second += V(a.at(i, j)) * x.second[k];
                    }
                }
                const auto at = static_cast<std::size_t>(i + 1);
                REQUIRE(distance(y.first[at], first) <= 1e-12);
                REQUIRE(distance(y.second[at], second) <= 1e-12);
                REQUIRE((exact || y.sums[at] == doctest::Approx(sum)));
                REQUIRE((exact || y.squares[at] == doctest::Approx(square)));
            }
            CHECK(y.first[0] == V{});
            for (std::int64_t j = 0; !exact && j < n; ++j) {
                const auto at = static_cast<std::size_t>(j + 1);
                REQUIRE(sizes.largest[at] == largest[at - 1]);
                REQUIRE((sizes.squares[at] == doctest::Approx(squares[at - 1]) ||
                         (std::isnan(sizes.squares[at]) && std::isnan(squares[at - 1]))));
            }
        }
    }
}

TEST_CASE("widening in place keeps every number, in either byte order") {
    const std::int64_t count = 2500;
    for (const bool swapped : {false, true}) {
        std::vector<double> wide(static_cast<std::size_t>(count));
        auto* bytes = reinterpret_cast<std::byte*>(wide.data());
        std::byte* raw = bytes + raw_offset(count, Dtype::int16, Dtype::float64);
        for (std::int64_t i = 0; i < count; ++i) {
            auto value = static_cast<std::uint16_t>(static_cast<std::int16_t>(i * 13 - 16000));
            if (swapped) {
                value = static_cast<std::uint16_t>((value << 8) | (value >> 8));
            }
            std::memcpy(raw + 2 * i, &value, 2);
        }
        CHECK(widen(bytes, count, Dtype::int16, swapped, Dtype::float64) == 0);
        for (std::int64_t i = 0; i < count; ++i) {
            REQUIRE(wide[static_cast<std::size_t>(i)] == static_cast<double>(i * 13 - 16000));
        }
    }
}

TEST_CASE("widening says how many numbers do not fit") {
    std::vector<std::uint64_t> values{1, std::numeric_limits<std::uint64_t>::max(), 3};
    CHECK(widen(reinterpret_cast<std::byte*>(values.data()), 3, Dtype::uint64, false, Dtype::int64) == 1);
    std::array<std::byte, 16> buffer{};
    CHECK_THROWS_AS(widen(buffer.data(), 1, Dtype::complex64, false, Dtype::float64), UsageError);
    CHECK_THROWS_AS(raw_offset(1, Dtype::float64, Dtype::float32), UsageError);
}

TEST_CASE("largest magnitude of signed and unsigned integers") {
    const std::vector<std::int64_t> values{3, -9, 5, std::numeric_limits<std::int64_t>::min()};
    const auto* data = reinterpret_cast<const std::byte*>(values.data());
    CHECK(largest_magnitude(data, 3, Dtype::int64) == 9);
    CHECK(largest_magnitude(data, 4, Dtype::int64) >= 0x1p63);
    CHECK(largest_magnitude(data, 2, Dtype::uint64) > 1.8e19);
    CHECK(largest_magnitude(nullptr, 0, Dtype::int64) == 0);
}

TEST_CASE("generated blocks do not depend on how the matrix is cut") {
    const std::int64_t rows = 11, columns = 17;
    for (const Fill kind : {Fill::random, Fill::normal, Fill::identity, Fill::ramp, Fill::graded}) {
        std::vector<double> whole(static_cast<std::size_t>(rows * columns));
        fill(reinterpret_cast<std::byte*>(whole.data()), {{0, rows}, {0, columns}}, columns, Dtype::float64, kind, 42,
             1);
        const grid::Block part{{3, 9}, {5, 16}};
        std::vector<double> block(static_cast<std::size_t>(part.size()));
        fill(reinterpret_cast<std::byte*>(block.data()), part, columns, Dtype::float64, kind, 42, 2);
        for (std::int64_t i = 0; i < 6; ++i) {
            for (std::int64_t j = 0; j < 11; ++j) {
                REQUIRE(block[static_cast<std::size_t>(i * 11 + j)] ==
                        whole[static_cast<std::size_t>((i + 3) * columns + j + 5)]);
            }
        }
    }
}

TEST_CASE("the largest uniform number is below 1 in the type that it was made for") {
    constexpr std::uint64_t all = ~std::uint64_t{0};
    CHECK(uniform(all) == 1 - 0x1p-53);
    CHECK(static_cast<float>(uniform(all, 24)) == 1 - 0x1p-24F);
    CHECK(half_to_double(double_to_half(static_cast<float>(uniform(all, 11)))) == 1 - 0x1p-11F);
    CHECK(uniform(0, 11) == 0);
}

TEST_CASE("random is uniform and normal is normal, by their moments") {
    const std::int64_t n = 400;
    std::vector<double> values(static_cast<std::size_t>(n * n));
    const auto moments = [&](Fill kind) {
        fill(reinterpret_cast<std::byte*>(values.data()), {{0, n}, {0, n}}, n, Dtype::float64, kind, 7, 1);
        double mean = 0, square = 0;
        for (const double value : values) {
            mean += value;
            square += value * value;
        }
        const auto count = static_cast<double>(values.size());
        return std::array{mean / count, square / count};
    };
    const auto random = moments(Fill::random), normal_moments = moments(Fill::normal);
    CHECK(random[0] == doctest::Approx(0.5).epsilon(0.01));
    CHECK(random[1] == doctest::Approx(1.0 / 3).epsilon(0.01));
    CHECK(std::abs(normal_moments[0]) < 0.01);
    CHECK(normal_moments[1] == doctest::Approx(1.0).epsilon(0.02));
    CHECK_THROWS_AS(fill_named("ones"), UsageError);
}
