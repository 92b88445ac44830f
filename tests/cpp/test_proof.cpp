// Tests of Freivalds' check alone: what was planted into a product is found, and no right product is refused, whatever
// its scale and its cut.
#include <algorithm>
#include <cmath>
#include <complex>
#include <doctest/doctest.h>
#include <functional>
#include <limits>
#include <random>
#include <vector>

#include "tilewise/base/error.hpp"
#include "tilewise/multiply/operands.hpp"
#include "tilewise/multiply/proof.hpp"

using namespace tilewise;
using kernel::Kernel;
using multiply::Part;

namespace {

template <class T> constexpr Dtype dtype_for = Dtype::float64;
template <> constexpr Dtype dtype_for<float> = Dtype::float32;
template <> constexpr Dtype dtype_for<std::complex<float>> = Dtype::complex64;
template <> constexpr Dtype dtype_for<std::complex<double>> = Dtype::complex128;
template <> constexpr Dtype dtype_for<std::int64_t> = Dtype::int64;
template <> constexpr Dtype dtype_for<std::uint64_t> = Dtype::uint64;

/// m×k · k×n, all of it on every rank; every rank makes the same.
template <class T> struct Case {
    grid::Shape shape;
    std::vector<T> a, b, c;
    Kernel kernel = Kernel::fast;

    Case(std::int64_t m, std::int64_t n, std::int64_t k)
        : shape{m, n, k},
          a(static_cast<std::size_t>(m * k)),
          b(static_cast<std::size_t>(k * n)),
          c(static_cast<std::size_t>(m * n)) {}

    T& at_a(std::int64_t i, std::int64_t l) { return a[static_cast<std::size_t>(i * shape.k + l)]; }
    T& at_b(std::int64_t l, std::int64_t j) { return b[static_cast<std::size_t>(l * shape.n + j)]; }
    T& at_c(std::int64_t i, std::int64_t j) { return c[static_cast<std::size_t>(i * shape.n + j)]; }

    void fill(const std::function<T(std::int64_t, std::int64_t)>& left,
              const std::function<T(std::int64_t, std::int64_t)>& right) {
        for (std::int64_t l = 0; l < shape.k; ++l) {
            for (std::int64_t i = 0; i < shape.m; ++i) {
                at_a(i, l) = left(i, l);
            }
            for (std::int64_t j = 0; j < shape.n; ++j) {
                at_b(l, j) = right(l, j);
            }
        }
    }

    void multiply(Kernel with) {
        kernel = with;
        kernel::gemm({.dtype = dtype_for<T>,
                      .m = shape.m,
                      .n = shape.n,
                      .k = shape.k,
                      .a = {reinterpret_cast<const std::byte*>(a.data()), shape.k, false},
                      .b = {reinterpret_cast<const std::byte*>(b.data()), shape.n, false},
                      .c = reinterpret_cast<std::byte*>(c.data()),
                      .c_stride = shape.n},
                     1, kernel);
    }

    /// Each rank sees a part of every matrix: rows or columns, as the bits of `cut` say.
    Verification check(const mpi::Communicator& comm, int cut) const {
        const auto part = [&](const std::vector<T>& all, std::int64_t rows, std::int64_t columns, bool by_row) {
            const auto share = [&](std::int64_t length, bool cut_here) {
                return cut_here
                           ? grid::Range{length * comm.rank() / comm.size(), length * (comm.rank() + 1) / comm.size()}
                           : grid::Range{0, length};
            };
            const grid::Block block{share(rows, by_row), share(columns, !by_row)};
            const auto first = block.rows.begin * columns + block.columns.begin;
            return Part{{reinterpret_cast<const std::byte*>(all.data() + first), columns, false}, block};
        };
        Ledger ledger;
        Context context{comm, ledger, 1};
        const Part left = part(a, shape.m, shape.k, (cut & 1) != 0), right = part(b, shape.k, shape.n, (cut & 2) != 0);
        const auto check = multiply::make_random_check(dtype_for<T>, shape, kernel);
        check->prepare(context, right);
        check->see(context, part(c, shape.m, shape.n, (cut & 4) != 0));
        return check->conclude(context, left, right);
    }
};

template <class T> using Real = decltype(std::abs(T{}));

template <class T> T normal_number(std::mt19937_64& random) {
    std::normal_distribution<double> normal;
    if constexpr (std::is_floating_point_v<T>) {
        return static_cast<T>(normal(random));
    } else {
        const auto re = static_cast<Real<T>>(normal(random));
        return {re, static_cast<Real<T>>(normal(random))};
    }
}

std::vector<double> powers_of_ten(std::mt19937_64& random, std::int64_t count, double most) {
    std::uniform_real_distribution<double> exponent(-most, most);
    std::vector<double> all;
    for (std::int64_t i = 0; i < count; ++i) {
        all.push_back(std::pow(10.0, exponent(random)));
    }
    return all;
}

template <class T> long double norm(const std::vector<T>& all, std::int64_t first, std::int64_t step,
                                    std::int64_t count) {
    long double sum = 0;
    for (std::int64_t at = 0; at < count; ++at) {
        const std::complex<long double> number(all[static_cast<std::size_t>(first + at * step)]);
        sum += std::norm(number);
    }
    return std::sqrt(sum);
}

/// Products whose rows and columns have scales of 10^±most; of some, also columns of A against rows of B. Of each, one
/// element is planted above its own bound, and with the right one back, the whole is believed.
template <class T> void plant(const mpi::Communicator& comm, int products, double most, std::uint64_t seed) {
    std::mt19937_64 random(seed);
    std::uniform_int_distribution<std::int64_t> extent(1, 24);
    const double complex_factor = std::is_floating_point_v<T> ? 1 : std::sqrt(2.0);
    double closest = 0;
    for (int product = 0; product < (comm.size() == 1 ? products : products / (2 * comm.size())); ++product) {
        Case<T> c(extent(random), extent(random), extent(random));
        const auto [m, n, k] = c.shape;
        const bool inner = product % 4 == 3;
        const auto rows = powers_of_ten(random, m, inner ? most / 4 : most),
                   columns = powers_of_ten(random, n, inner ? most / 4 : most),
                   across = powers_of_ten(random, k, inner ? most / 2 : 0);
        const auto scaled = [&](double scale) { return normal_number<T>(random) * static_cast<Real<T>>(scale); };
        c.fill([&](auto i,
                   auto l) { return scaled(rows[static_cast<std::size_t>(i)] * across[static_cast<std::size_t>(l)]); },
               [&](auto l, auto j) {
                   return scaled(columns[static_cast<std::size_t>(j)] / across[static_cast<std::size_t>(l)]);
               });
        c.multiply(std::array{Kernel::fast, Kernel::blas, Kernel::plain}[static_cast<std::size_t>(product % 3)]);
        const Verification right = c.check(comm, product);
        CAPTURE(product);
        CAPTURE(right.error / right.tolerance);
        CHECK(right.passed);
        CHECK(right.share == 1);
        closest = std::max(closest, right.error / right.tolerance);

        const std::int64_t i = static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(m)),
                           j = static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(n));
        const long double bound = 4 * complex_factor * right.tolerance * std::sqrt(static_cast<double>(n)) *
                                  norm(c.a, i * k, 1, k) * norm(c.b, j, n, k);
        const double above = 1.1 * std::pow(10.0, std::uniform_real_distribution<double>(0, 2)(random));
        const auto wrong = static_cast<Real<T>>(above * static_cast<double>(bound));
        c.at_c(i, j) += product % 2 == 0 ? wrong : -wrong;
        const Verification planted = c.check(comm, product / 3);
        CAPTURE(planted.error / planted.tolerance);
        CHECK_FALSE(planted.passed);
        c.at_c(i, j) = static_cast<T>(std::numeric_limits<Real<T>>::quiet_NaN());
        CHECK_FALSE(c.check(comm, product).passed);
    }
    MESSAGE(std::string(name_of(dtype_for<T>)) << ": right products came to " << closest << " of the tolerance");
}

/// Right products of every unpleasant kind, by every kernel.
template <class T> void hostile(const mpi::Communicator& comm) {
    using R = Real<T>;
    using Make = std::function<T(std::int64_t, std::int64_t)>;
    constexpr R least = std::numeric_limits<R>::min(), most = std::numeric_limits<R>::max(),
                u = std::numeric_limits<R>::epsilon() / 2;
    std::mt19937_64 random(7);
    const auto sized = [&](R size) {
        return Make([&random, size](auto, auto) { return normal_number<T>(random) * size; });
    };
    const auto graded =
        Make([&](auto i, auto l) { return normal_number<T>(random) * static_cast<R>(std::pow(0.3, i + l)); });
    const Make lost([](auto, auto l) { return T(l == 0 ? R(1) : std::sqrt(u) * R(0.99)); });
    const Make lost_transposed([&](auto l, auto j) { return lost(j, l); });
    const Make tenth([](auto, auto) { return T(R(0.1)); });
    const Make sparse([&](auto i, auto l) { return (i * 7 + l * 3) % 5 == 0 ? normal_number<T>(random) : T(0); });
    const Make mixed([&](auto i, auto l) {
        return normal_number<T>(random) * std::pow(R(10), static_cast<R>((i * 5 + l * 11) % 37 - 18));
    });
    const std::vector<std::pair<Make, Make>> kinds{
        {graded, graded},
        {sized(std::sqrt(least) / 100), sized(std::sqrt(least) / 100)},
        {sized(least / 1000), sized(1)},
        {sized(least), sized(1 / least / 100)},
        {sized(most / 1000), sized(least)},
        {sized(std::sqrt(most)), sized(std::sqrt(most) / 10)},
        {sized(most / 10), sized(10)},
        {sized(1), sized(most / 100)},
        {lost, lost_transposed},
        {tenth, tenth},
        {sparse, sparse},
        {sized(0), sized(1)},
        {mixed, mixed},
    };
    for (const grid::Shape& shape : std::vector<grid::Shape>{{9, 11, 13},
                                                             {1, 17, 40},
                                                             {17, 1, 40},
                                                             {1, 1, 1500},
                                                             {3, 2, 900},
                                                             {5, 30, 200},
                                                             {3, 2, 0},
                                                             {0, 4, 3},
                                                             {4, 0, 3}}) {
        std::size_t index = 0;
        for (const auto& [left, right] : kinds) {
            for (const Kernel kernel : {Kernel::fast, Kernel::blas, Kernel::plain}) {
                ++index;
                if (comm.size() > 1 && static_cast<int>(index) % (2 * comm.size() + 1) != 0) {
                    continue;
                }
                Case<T> c(shape.m, shape.n, shape.k);
                c.fill(left, right);
                c.multiply(kernel);
                const Verification found = c.check(comm, static_cast<int>(index));
                CAPTURE(index);
                CAPTURE(shape.m);
                CAPTURE(shape.k);
                CAPTURE(found.error / found.tolerance);
                CHECK(found.passed);
                const bool finite =
                    std::all_of(c.c.begin(), c.c.end(), [](T x) { return std::isfinite(std::abs(x / R(4))); });
                CHECK((found.share == 1) == finite);
            }
        }
    }
}

}  // namespace

TEST_CASE("every element planted above its own row-and-column bound is found, and no right product refused") {
    const mpi::Communicator comm(MPI_COMM_WORLD);
    plant<float>(comm, 400, 8, 1);
    plant<double>(comm, 400, 100, 2);
    plant<std::complex<float>>(comm, 100, 8, 3);
    plant<std::complex<double>>(comm, 100, 100, 4);
}

TEST_CASE("right products of hostile kinds are believed") {
    const mpi::Communicator comm(MPI_COMM_WORLD);
    hostile<float>(comm);
    hostile<double>(comm);
    hostile<std::complex<float>>(comm);
    hostile<std::complex<double>>(comm);
}

TEST_CASE("rows and columns that are not finite are left out alone, and wrong numbers beside them found") {
    const mpi::Communicator comm(MPI_COMM_WORLD);
    constexpr double infinity = std::numeric_limits<double>::infinity(), nan = std::numeric_limits<double>::quiet_NaN();
    for (int cut = 0; cut < 8; ++cut) {
        std::mt19937_64 random(5);
        const auto number = [&](auto, auto) { return normal_number<double>(random); };
        Case<double> c(10, 8, 6);
        c.fill(number, number);
        c.at_a(3, 2) = nan;
        c.at_a(7, 0) = -infinity;
        c.at_b(5, 1) = infinity;
        c.multiply(Kernel::fast);
        const Verification found = c.check(comm, cut);
        CHECK(found.passed);
        CHECK(found.share == doctest::Approx(8.0 * 7 / 80));
        CHECK(found.error > 0);
        for (const double wrong : {1e-9, infinity, nan}) {
            auto planted = c;
            planted.at_c(4, 5) += wrong;
            CHECK_FALSE(planted.check(comm, cut).passed);
        }
        c.at_a(4, 4) = 1e308;
        c.at_b(4, 6) = 1e10;
        c.multiply(Kernel::fast);
        CHECK(std::isinf(c.at_c(4, 6)));
        CHECK(c.check(comm, cut).passed);
        CHECK(c.check(comm, cut).share == doctest::Approx(7.0 * 7 / 80));  // without row 4
    }
}

TEST_CASE("an integer product is refused exactly where it could leave 64 bits") {
    const mpi::Communicator comm(MPI_COMM_WORLD);
    const auto refused = [&]<class T>(Case<T> c) {
        bool first = false, any = false;
        for (int cut = 0; cut < 4; ++cut) {  // whole rows or columns of either, by rank
            Ledger ledger;
            Context context{comm, ledger, 1};
            const auto part = [&](const std::vector<T>& all, std::int64_t rows, std::int64_t columns, bool by_row) {
                const grid::Range mine{(by_row ? rows : columns) * comm.rank() / comm.size(),
                                       (by_row ? rows : columns) * (comm.rank() + 1) / comm.size()};
                const grid::Block block{by_row ? mine : grid::Range{0, rows}, by_row ? grid::Range{0, columns} : mine};
                std::vector<T> own;
                for (std::int64_t i = block.rows.begin; i < block.rows.end; ++i) {
                    for (std::int64_t j = block.columns.begin; j < block.columns.end; ++j) {
                        own.push_back(all[static_cast<std::size_t>(i * columns + j)]);
                    }
                }
                return std::pair{own, block};
            };
            const auto [a, a_block] = part(c.a, c.shape.m, c.shape.k, (cut & 1) != 0);
            const auto [b, b_block] = part(c.b, c.shape.k, c.shape.n, (cut & 2) != 0);
            bool threw = false;
            try {
                multiply::refuse_overflow(
                    context, dtype_for<T>, c.shape,
                    {{reinterpret_cast<const std::byte*>(a.data()), a_block.columns.size(), false}, a_block},
                    {{reinterpret_cast<const std::byte*>(b.data()), b_block.columns.size(), false}, b_block});
            } catch (const Error& error) {
                threw = true;
                CHECK(std::string(error.advice()).find("--overflow wrap") != std::string::npos);
            }
            first = cut == 0 ? threw : first;
            any = any || threw;
        }
        CHECK(any == first);  // however it is cut
        return any;
    };
    const auto one = [&]<class T>(std::vector<T> a, std::vector<T> b) {  // a row times a column
        Case<T> c(1, 1, std::ssize(a));
        c.a = a;
        c.b = b;
        return refused(c);
    };
    using I = std::int64_t;
    using U = std::uint64_t;
    constexpr I least = std::numeric_limits<I>::min(), most = std::numeric_limits<I>::max();
    constexpr U all = std::numeric_limits<U>::max();
    CHECK_FALSE(one(std::vector<U>{all}, std::vector<U>{1}));
    CHECK(one(std::vector<U>{all, 1}, std::vector<U>{1, 1}));
    CHECK_FALSE(one(std::vector<U>{all - 1, 1}, std::vector<U>{1, 1}));
    CHECK(one(std::vector<U>{all, all}, std::vector<U>{all, all}));
    CHECK_FALSE(one(std::vector<I>{least}, std::vector<I>{1}));
    CHECK(one(std::vector<I>{least}, std::vector<I>{-1}));
    CHECK(one(std::vector<I>{least, 1}, std::vector<I>{1, -1}));
    CHECK_FALSE(one(std::vector<I>{least, most}, std::vector<I>{1, 1}));
    CHECK_FALSE(one(std::vector<I>{most}, std::vector<I>{-1}));
    CHECK(one(std::vector<I>{most, 1}, std::vector<I>{1, 1}));
    CHECK(one(std::vector<I>{least, least}, std::vector<I>{least, least}));
    Case<I> identity(9, 9, 9), dense(9, 9, 9);
    for (I i = 0; i < 9; ++i) {
        identity.at_a(i, i) = 100'000'000'000'000'000;
        identity.at_b(i, 8 - i) = -90;
        for (I j = 0; j < 9; ++j) {
            dense.at_a(i, j) = i == 4 ? 100'000'000'000'000'000 : 0;
            dense.at_b(i, j) = i == j ? 90 : 1;  // of its columns, none adds up to more than 98
        }
    }
    CHECK_FALSE(refused(identity));
    CHECK(refused(dense));
    dense.at_b(3, 3) = 1;
    for (I i = 0; i < 9; ++i) {
        dense.at_b(i, i) = 80;  // 88 at most: of the mirror image alone
    }
    CHECK_FALSE(refused(dense));
}
