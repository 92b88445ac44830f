// Tests of products of a large matrix and few vectors, and of those with a small C, against the plain loops.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <doctest/doctest.h>
#include <type_traits>
#include <vector>

#include "tilewise/kernel/product/gemm.hpp"
#include "tilewise/kernel/product/gemm_tiled.hpp"
#include "tilewise/kernel/product/thin.hpp"

using namespace tilewise;
using namespace tilewise::kernel;

namespace {

template <class T> constexpr Dtype dtype_of() {
    if constexpr (std::is_same_v<T, float>) {
        return Dtype::float32;
    } else {
        return std::is_same_v<T, double> ? Dtype::float64 : Dtype::int64;
    }
}

/// A product with memory of its own, and gaps behind the rows of all three matrices.
template <class T> struct ThinCase {
    std::int64_t m, n, k, a_stride, b_stride, c_stride;
    bool a_turned, b_turned;
    std::vector<T> a, b;

    ThinCase(std::int64_t rows, std::int64_t columns, std::int64_t depth, int form)
        : m(rows),
          n(columns),
          k(depth),
          a_stride(((form & 1) != 0 ? m : k) + 3),
          b_stride(((form & 2) != 0 ? k : n) + (form & 4)),
          c_stride(n + 2),
          a_turned((form & 1) != 0),
          b_turned((form & 2) != 0),
          a(static_cast<std::size_t>(a_stride * (a_turned ? k : m))),
          b(static_cast<std::size_t>(b_stride * (b_turned ? n : k))) {
        std::uint32_t state = 7;
        for (auto* numbers : {&a, &b}) {
            for (T& number : *numbers) {
                state = state * 1664525U + 1013904223U;
                number = static_cast<T>(static_cast<double>(state >> 8) / 0x1p20 - 8);
            }
        }
    }

    Product product(std::vector<T>& c, bool accumulate = false) const {
        return {.dtype = dtype_of<T>(),
                .m = m,
                .n = n,
                .k = k,
                .a = {reinterpret_cast<const std::byte*>(a.data()), a_stride, a_turned},
                .b = {reinterpret_cast<const std::byte*>(b.data()), b_stride, b_turned},
                .c = reinterpret_cast<std::byte*>(c.data()),
                .c_stride = c_stride,
                .accumulate = accumulate};
    }
    std::vector<T> result() const { return std::vector<T>(static_cast<std::size_t>(m * c_stride), T{1}); }
};

template <class T> void check_case(std::int64_t m, std::int64_t n, std::int64_t k, int form, bool accumulate) {
    CAPTURE(m);
    CAPTURE(n);
    CAPTURE(k);
    CAPTURE(form);
    const ThinCase<T> one(m, n, k, form);
    std::vector<T> plain = one.result(), fast = one.result();
    gemm(one.product(plain, accumulate), 1, Kernel::plain);
    gemm(one.product(fast, accumulate), 1);
    const double tolerance = std::is_same_v<T, double>  ? 1e-13 * static_cast<double>(k)
                             : std::is_same_v<T, float> ? 1e-4 * static_cast<double>(k)
                                                        : 0;
    double worst = 0;
    for (std::size_t i = 0; i < plain.size(); ++i) {  // gaps as well: nothing is written there
        worst = std::max(worst, std::abs(static_cast<double>(plain[i]) - static_cast<double>(fast[i])));
    }
    CHECK(worst <= tolerance);
    for (const int threads : {2, 3, 7}) {
        std::vector<T> several = one.result();
        gemm(one.product(several, accumulate), threads);
        const bool same = several == fast;                        // by name, else all numbers would be printed
        CHECK((same || !thin_gemm_suits(one.product(several))));  // BLAS does not promise it
    }
}

}  // namespace

TEST_CASE("which products are thin depends on how the large operand lies") {
    std::vector<double> c(1);
    std::vector<float> single(1);
    CHECK(thin_gemm_suits(ThinCase<double>(1000, 17, 1000, 0).product(c)));
    CHECK_FALSE(thin_gemm_suits(ThinCase<float>(1000, 17, 1000, 0).product(single)));
    CHECK(thin_gemm_suits(ThinCase<float>(1000, 17, 1000, 1).product(single)));
    CHECK_FALSE(thin_gemm_suits(ThinCase<double>(1000, 25, 1000, 1).product(c)));  // no longer thin
    CHECK_FALSE(thin_gemm_suits(ThinCase<double>(1000, 4, 8, 0).product(c)));      // nor is a short sum
    CHECK_FALSE(thin_gemm_suits(ThinCase<double>(16, 16, 1000, 0).product(c)));    // both are small
}

TEST_CASE("thin products from either side, in all forms: right, and the same bits on any number of threads") {
    for (const int form : {0, 1, 2, 3, 4, 6}) {
        for (const auto& [few, many, k] : std::vector<std::array<std::int64_t, 3>>{{1, 1, 32},
                                                                                   {1, 700, 77},
                                                                                   {2, 500, 1030},
                                                                                   {3, 65, 400},
                                                                                   {5, 129, 33},
                                                                                   {17, 300, 100},
                                                                                   {24, 193, 811}}) {
            check_case<double>(many, few, k, form, false);
            check_case<double>(few, many, k, form, true);
            check_case<float>(many, few, k, form, true);
            check_case<float>(few, many, k, form, false);
        }
    }
}

TEST_CASE("more threads than pieces of a long thin product: rows of many runs, packed a part at a time") {
    for (const int form : {0, 1, 4}) {
        check_case<double>(4100, 3, 13000, form, false);
        check_case<float>(2, 2500, 12289, form, true);
    }
}

TEST_CASE("a small C of a long sum is summed in pieces") {
    CHECK(pieces_of_k(1, 65536) == 32);
    CHECK(pieces_of_k(1, 4095) == 1);
    CHECK(pieces_of_k(0, 1 << 30) == 32);
    CHECK(pieces_of_k(8, 1 << 20) == 4);
    CHECK(pieces_of_k(1000, 1 << 20) == 1);
    for (const int form : {0, 3}) {
        check_case<double>(1, 1, 70000, form, true);
        check_case<double>(20, 1, 9000, form, false);
        check_case<float>(3, 100, 9000, form, false);
        check_case<double>(70, 100, 9000, form, true);
        check_case<std::int64_t>(5, 6, 5000, form, true);
    }
}

TEST_CASE("a sum in pieces reports its progress") {
    const ThinCase<double> one(30, 30, 20000, 0);
    std::vector<double> c = one.result(), shares;
    gemm(one.product(c), 2, Kernel::fast, [&](double done) { shares.push_back(done); });
    CHECK(std::is_sorted(shares.begin(), shares.end()));
    CHECK(shares.back() == 1.0);
}

TEST_CASE("numbers that are not finite stay in their rows") {
    ThinCase<double> one(200, 2, 100, 0);
    one.a[static_cast<std::size_t>(5 * one.a_stride + 99)] = HUGE_VAL;
    std::vector<double> c = one.result();
    gemm(one.product(c), 2);
    for (std::int64_t i = 0; i < one.m; ++i) {
        CHECK(std::isfinite(c[static_cast<std::size_t>(i * one.c_stride)]) == (i != 5));
    }
}
