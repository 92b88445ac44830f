// Tests of our own product kernel: tiles of every instruction set here against plain loops, the model of the caches,
// and the table of processors.
#include <algorithm>
#include <array>
#include <cmath>
#include <doctest/doctest.h>
#include <limits>
#include <vector>

#include "tilewise/base/random.hpp"
#include "tilewise/kernel/isa/backend.hpp"
#include "tilewise/kernel/product/gemm.hpp"
#include "tilewise/kernel/product/gemm_tiled.hpp"

using namespace tilewise;
using namespace tilewise::kernel;

namespace {

template <class T>
constexpr Dtype dtype_for = std::is_same_v<T, float>    ? Dtype::float32
                            : std::is_same_v<T, double> ? Dtype::float64
                                                        : Dtype::uint64;

template <class T> std::vector<T> numbers(std::int64_t count, std::uint64_t seed) {
    std::vector<T> all(static_cast<std::size_t>(count));
    for (std::size_t i = 0; i < all.size(); ++i) {
        if constexpr (std::is_integral_v<T>) {
            all[i] = mix(seed + i);  // products and sums of these wrap
        } else {
            all[i] = static_cast<T>(uniform(mix(seed + i)) - 0.5);
        }
    }
    return all;
}

/// Operands with more memory between rows than they need, one form of four.
template <class T> struct Case {
    std::int64_t m, n, k;
    std::vector<T> a, b, c;
    Product product;

    Case(std::int64_t rows, std::int64_t columns, std::int64_t depth, bool a_turned, bool b_turned, bool accumulate)
        : m(rows),
          n(columns),
          k(depth) {
        const std::int64_t a_stride = (a_turned ? m : k) + 5, b_stride = (b_turned ? k : n) + 1;
        a = numbers<T>(a_stride * (a_turned ? k : m), 1);
        b = numbers<T>(b_stride * (b_turned ? n : k), 2);
        c = numbers<T>((n + 3) * m, 3);
        product = {.dtype = dtype_for<T>,
                   .m = m,
                   .n = n,
                   .k = k,
                   .a = {reinterpret_cast<const std::byte*>(a.data()), a_stride, a_turned},
                   .b = {reinterpret_cast<const std::byte*>(b.data()), b_stride, b_turned},
                   .c = nullptr,
                   .c_stride = n + 3,
                   .accumulate = accumulate};
    }
    Product into(std::vector<T>& result) const {
        Product here = product;
        here.c = reinterpret_cast<std::byte*>(result.data());
        return here;
    }
};

/// What lies between C's rows counts as well: it must stay as it was.
template <class T> double difference(const std::vector<T>& x, const std::vector<T>& y) {
    double worst = 0;
    for (std::size_t i = 0; i < x.size(); ++i) {
        worst = std::max(worst, std::abs(static_cast<double>(x[i]) - static_cast<double>(y[i])));
    }
    return worst;
}

template <class T> void check_set(const GemmSet& set) {
    const auto& tiles = set.tiles<T>();
    TiledGemm tiled;
    const auto check = [&](std::int64_t m, std::int64_t n, std::int64_t k, int form) {
        const Case<T> one(m, n, k, (form & 1) != 0, (form & 2) != 0, (form & 4) != 0);
        std::vector<T> plain = one.c, fast = one.c;
        plain_gemm(one.into(plain));
        tiled(one.into(fast), set);
        [[maybe_unused]] const double rounding =
            static_cast<double>(std::numeric_limits<T>::epsilon()) * static_cast<double>(k + 2);
        CAPTURE(m);
        CAPTURE(n);
        CAPTURE(k);
        CAPTURE(form);
        if constexpr (std::is_integral_v<T>) {
            CHECK((plain == fast));  // in brackets, else all numbers would be printed
        } else {
            CHECK(difference(plain, fast) <= rounding);
        }
    };
    // Every part of a tile: all rows, and columns that end anywhere in a register.
    for (std::int64_t m = 1; m <= 2 * tiles.rows; ++m) {
        for (std::int64_t n = 1; n <= tiles.columns + 1; n += n % 5 == 3 ? 4 : 1) {
            check(m, n, 3 + m % 4, static_cast<int>((m + n) % 8));
        }
    }
    for (int form = 0; form < 8; ++form) {  // more than one block of rows and of k, with rests of all
        check(301, 53, 1021, form);
        check(19, 2 * tiles.columns, 130, form);
    }
}

}  // namespace

TEST_CASE("tiles of every instruction set agree with plain loops, at every edge") {
    for (const KnownBackend& row : backends()) {
        if (row.supported()) {
            CAPTURE(row.set.name);
            check_set<float>(row.set.gemm);
            check_set<double>(row.set.gemm);
            check_set<std::uint64_t>(row.set.gemm);
        }
    }
}

TEST_CASE("tiles: the same bits however k is handed over in slices, and however C is cut") {
    const std::int64_t m = 83, n = 131;
    for (const std::int64_t k : {500, 1600, 2100}) {
        const Case<double> one(m, n, k, false, false, false);
        std::vector<double> whole = one.c, sliced = one.c, cut = one.c;
        TiledGemm tiled;
        tiled(one.into(whole));
        std::int64_t steps = 0;
        for (std::int64_t begin = 0; begin < k; begin += steps) {
            steps = tiled_gemm_slice(Dtype::float64, 768, k - begin);
            REQUIRE(steps > 0);
            Product part = one.into(sliced);
            part.k = steps;
            part.a.data += begin * static_cast<std::int64_t>(sizeof(double));
            part.b.data += begin * part.b.stride * static_cast<std::int64_t>(sizeof(double));
            part.accumulate = begin > 0;
            tiled(part);
        }
        for (std::int64_t row = 0; row < m; row += 7) {
            Product part = one.into(cut);
            part.m = std::min<std::int64_t>(7, m - row);
            part.a.data += row * part.a.stride * static_cast<std::int64_t>(sizeof(double));
            part.c += row * part.c_stride * static_cast<std::int64_t>(sizeof(double));
            tiled(part);
        }
        CHECK(difference(whole, sliced) == 0);
        CHECK(difference(whole, cut) == 0);
    }
}

TEST_CASE("C is cut into no more parts than it has tiles, and evenly") {
    for (const int threads : {1, 2, 7, 64}) {
        for (const auto& [m, n] : std::vector<std::array<std::int64_t, 2>>{{64, 96}, {1024, 1024}, {5000, 100}}) {
            const Cuts cuts =
                tiled_gemm_cuts({.dtype = Dtype::float64, .m = m, .n = n, .k = 500, .a = {}, .b = {}}, threads);
            CHECK(cuts.rows * cuts.row_unit < m + cuts.row_unit);
            CHECK(cuts.columns * cuts.column_unit < n + cuts.column_unit);
            CHECK(cuts.rows * cuts.columns <= 4 * threads);
            if (m * n >= 1024 * 1024 && threads <= 2) {
                CHECK(cuts.rows * cuts.columns % threads == 0);  // else one would wait for the other
            }
        }
    }
}

TEST_CASE("the model of the caches: plain numbers for known processors") {
    const auto blocks = [](ProcessorId::Kind kind, int family, int model, std::int64_t rows, std::int64_t columns) {
        return blocking_for(processor_of({kind, family, model}).caches, rows, columns, 8);
    };
    using Kind = ProcessorId::Kind;
    // depth, rows, columns of blocks of doubles: 8 × 24 with AVX-512, 4 × 12 with AVX2, 8 × 6 with NEON
    CHECK(blocks(Kind::amd, 0x1a, 0x02, 8, 24) == Blocking{512, 128, 1032});  // Zen 5: half a MiB for A
    CHECK(blocks(Kind::amd, 0x19, 0x11, 8, 24) == Blocking{512, 128, 1032});  // Zen 4
    CHECK(blocks(Kind::amd, 0x19, 0x01, 4, 12) == Blocking{352, 92, 1500});   // Zen 3
    CHECK(blocks(Kind::amd, 0x17, 0x31, 4, 12) == Blocking{352, 92, 1500});   // Zen 2
    CHECK(blocks(Kind::intel, 6, 0x55, 8, 24) == Blocking{512, 128, 1032});   // Skylake-SP
    CHECK(blocks(Kind::intel, 6, 0x6a, 8, 24) == Blocking{576, 144, 1032});   // Ice Lake-SP
    CHECK(blocks(Kind::intel, 6, 0x8f, 8, 24) == Blocking{704, 184, 1032});   // Sapphire Rapids
    CHECK(blocks(Kind::intel, 6, 0xad, 8, 24) == Blocking{704, 184, 1032});   // Granite Rapids
    CHECK(blocks(Kind::intel, 6, 0x3f, 4, 12) == Blocking{256, 64, 1032});    // Haswell
    CHECK(blocks(Kind::arm, 0x41, 0xd0c, 8, 6) == Blocking{512, 128, 1026});  // Neoverse N1
    CHECK(blocks(Kind::arm, 0x41, 0xd4f, 8, 6) == Blocking{704, 184, 1026});  // Neoverse V2
}

TEST_CASE("the model of the caches: blocks fit where they are to stay") {
    for (const Processor& row : processors()) {
        for (const std::int64_t size : {4, 8}) {
            for (const auto& [rows, vectors, width] :
                 std::vector<std::array<std::int64_t, 3>>{{8, 3, 64}, {4, 3, 32}, {8, 3, 16}}) {
                const std::int64_t columns = vectors * width / size;
                const Blocking blocking = blocking_for(row.caches, rows, columns, size);
                CAPTURE(row.name);
                CHECK(blocking.rows % rows == 0);
                CHECK(blocking.columns % columns == 0);
                CHECK(blocking.depth * blocking.rows * size <= row.caches.second * 640);
                // beside it two panels of B, and one of A
                CHECK(blocking.depth * (blocking.rows + 2 * columns + rows) * size <= row.caches.second * 1280);
            }
        }
    }
}

TEST_CASE("every processor has one row") {
    using Kind = ProcessorId::Kind;
    CHECK(processor_of({Kind::amd, 0x1a, 0x02}).name == "Zen 5");
    CHECK(processor_of({Kind::amd, 0x19, 0x11}).name == "Zen 4");
    CHECK(processor_of({Kind::amd, 0x19, 0x61}).name == "Zen 4");
    CHECK(processor_of({Kind::amd, 0x19, 0x21}).name == "Zen 3");
    CHECK(processor_of({Kind::amd, 0x17, 0x31}).name == "Zen, Zen 2");
    CHECK(processor_of({Kind::amd, 0x1b, 0x00}).name == "other AMD");
    CHECK(processor_of({Kind::intel, 6, 0x8f}).name == "Sapphire Rapids");
    CHECK(processor_of({Kind::intel, 6, 0x3f}).name == "other Intel");
    CHECK(processor_of({Kind::arm, 0x41, 0xd40}).name == "Neoverse V1");
    CHECK(processor_of({Kind::arm, 0x61, 0x22}).name == "other Arm");
    CHECK(processor_of({}).name == "unknown");
    CHECK(&processor() == &processor());
}
