// Tests of the decomposition by rotations on matrices with structure: equal, clustered and graded singular values,
// dependent columns, any scale; on every rank count, exchange and start, each to 1e-13·√n in the Frobenius norm, and to
// gejsv's digits where columns alone are graded.
#include <array>
#include <cmath>
#include <cstdlib>
#include <doctest/doctest.h>
#include <functional>
#include <random>
#include <string>

#include "svd_cases.hpp"
#include "svd_kernel_cases.hpp"
#include "tilewise/svd/jacobi.hpp"

using namespace tilewise;
using namespace tilewise::test;

namespace {

/// On one rank, and on several, which take turns on few cores; TILEWISE_STRUCTURED=504 makes it 2016 matrices on 1 to 4
/// ranks.
int count_of_matrices([[maybe_unused]] int ranks) {
    if (const char* wanted = std::getenv("TILEWISE_STRUCTURED")) {
        return std::atoi(wanted);
    }
#ifdef TILEWISE_SANITIZED
    return 36;
#else
    return ranks == 1 ? 504 : ranks == 2 ? 120 : 48;
#endif
}

class Random {
public:
    explicit Random(unsigned seed) : engine_(seed) {}

    double uniform(double low, double high) { return std::uniform_real_distribution<double>(low, high)(engine_); }
    int below(int count) { return std::uniform_int_distribution<int>(0, count - 1)(engine_); }
    unsigned seed() { return static_cast<unsigned>(engine_()); }
    double normal() { return normal_(engine_); }

private:
    std::mt19937_64 engine_;
    std::normal_distribution<double> normal_;
};

std::size_t at(std::int64_t value) { return static_cast<std::size_t>(value); }

std::vector<double> numbers(std::int64_t count, const std::function<double(std::int64_t)>& value) {
    std::vector<double> all;
    for (std::int64_t i = 0; i < count; ++i) {
        all.push_back(value(i));
    }
    return all;
}

Dense filled(std::int64_t rows, std::int64_t columns, const std::function<double(std::int64_t, std::int64_t)>& value) {
    Dense a(rows, columns);
    for (std::int64_t i = 0; i < rows; ++i) {
        for (std::int64_t j = 0; j < columns; ++j) {
            a(i, j) = value(i, j);
        }
    }
    return a;
}

Dense repeated(std::int64_t n, Random& random) {
    const double step = random.uniform(0.3, 3);
    return with_values(n, numbers(n, [&](auto) { return std::pow(10.0, -step * random.below(7)); }), random.seed());
}

Dense clustered(std::int64_t n, Random& random) {
    const double width = std::pow(10.0, random.uniform(-16, -5));
    const auto value = [&](auto) { return std::pow(10.0, -4.0 * random.below(3)) * (1 + width * random.normal()); };
    return with_values(n, numbers(n, value), random.seed());
}

/// Columns of any scale, in any order.
Dense graded(std::int64_t n, Random& random) {
    const double range = random.uniform(1, 20);
    const Dense q = orthonormal(n, n, random.seed());
    const std::vector<double> scales = numbers(n, [&](auto) { return std::pow(10.0, -range * random.uniform(0, 1)); });
    return filled(n, n, [&](auto i, auto j) { return q(i, j) * scales[at(j)]; });
}

Dense graded_rows(std::int64_t n, Random& random) { return transposed(graded(n, random)); }

Dense kronecker(std::int64_t n, Random& random) {
    const std::int64_t side = std::min<std::int64_t>(n, 2 + random.below(9));
    const Dense block = random.below(2) == 0
                            ? normal(side, side, random.seed())
                            : filled(side, side, [](auto i, auto j) { return 1.0 / double(i + j + 1); });
    return filled(n / side * side, n / side * side,
                  [&](auto i, auto j) { return i / side == j / side ? block(i % side, j % side) : 0.0; });
}

Dense circulant(std::int64_t n, Random& random) {
    const double width = random.uniform(1, 60);
    return filled(n, n, [&](auto i, auto j) {
        const auto d = static_cast<double>(std::min(std::abs(i - j), n - std::abs(i - j)));
        return std::exp(-d * d / width);
    });
}

Dense laeuchli(std::int64_t n, Random& random) {
    const double small = std::pow(10.0, -random.uniform(1, 12));
    return filled(n + 1, n, [&](auto i, auto j) { return i == 0 ? 1.0 : i == j + 1 ? small : 0.0; });
}

Dense kahan(std::int64_t n, Random& random) {
    const double angle = random.uniform(0.3, 1.5), c = std::cos(angle), s = std::sin(angle);
    return filled(n, n, [&](auto i, auto j) { return std::pow(s, double(i)) * (i == j ? 1.0 : i < j ? -c : 0.0); });
}

Dense deficient(std::int64_t n, Random& random) {
    const std::int64_t rank = 1 + random.below(static_cast<int>(n));
    return product(normal(n + random.below(9), rank, random.seed()), normal(rank, n, random.seed()));
}

Dense scaled(std::int64_t n, Random& random) {
    const double scale = std::array{1e-300, 1e-140, 1e140, 1e290}[at(random.below(4))];
    return with_values(n, numbers(n, [&](auto i) { return scale * std::pow(10.0, -double(i % 5)); }), random.seed());
}

Dense bidiagonal(std::int64_t n, Random&) {
    return filled(n, n, [](auto i, auto j) { return i == j || j == i + 1 ? std::ldexp(1.0, -int(i)) : 0.0; });
}

Dense equal_and_zero_columns(std::int64_t n, Random& random) {
    Dense a = normal(n + 3, n, random.seed());
    for (std::int64_t j = 1; j < n; ++j) {
        const int kind = random.below(4);
        for (std::int64_t i = 0; i < a.rows && kind < 3; ++i) {
            a(i, j) = kind == 0 ? 0 : a(i, 0);
        }
    }
    return a;
}

struct Family {
    const char* name;
    Dense (*make)(std::int64_t n, Random& random);
};

constexpr std::array families{
    Family{"repeated", repeated},        Family{"clustered", clustered},
    Family{"graded columns", graded},    Family{"graded rows", graded_rows},
    Family{"Kronecker", kronecker},      Family{"circulant", circulant},
    Family{"Laeuchli", laeuchli},        Family{"Kahan", kahan},
    Family{"rank-deficient", deficient}, Family{"scaled", scaled},
    Family{"bidiagonal", bidiagonal},    Family{"equal and zero columns", equal_and_zero_columns}};

/// ‖I − QᵀQ‖ in the norm of Frobenius.
double distance_from_identity(const Dense& q) {
    Dense gram = product(transposed(q), q);
    for (std::int64_t i = 0; i < gram.rows; ++i) {
        gram(i, i) -= 1;
    }
    return norm_of(gram);
}

/// Both times a power of two that keeps squares within the range of numbers.
double residual(Dense a, Decomposed got) {
    const double factor = got.s[0] > 0 ? std::ldexp(1.0, -std::ilogb(got.s[0])) : 1;
    for (double& value : a.values) {
        value *= factor;
    }
    for (double& value : got.s) {
        value *= factor;
    }
    return got.residual(a);
}

std::vector<double> gejsv_of(const Dense& a) {
    kernel::Matrix columns(a.rows, a.columns);
    for (std::int64_t i = 0; i < a.rows; ++i) {
        for (std::int64_t j = 0; j < a.columns; ++j) {
            columns.column(j)[i] = a(i, j);
        }
    }
    return svd_cases::gejsv_values(columns);
}

}  // namespace

TEST_CASE("matrices with structure converge, to the last digits, by every exchange and start") {
    const mpi::Communicator comm(MPI_COMM_WORLD);
    Random random(static_cast<unsigned>(comm.size()));
    const std::vector<std::string> exchanges =
        comm.size() == 1 ? std::vector<std::string>{"none"}
                         : std::vector<std::string>{"blocking", "nonblocking", "overlap", "one_sided_lock"};
    const int count = count_of_matrices(comm.size());
    for (int turn = 0; turn < count; ++turn) {
        const Family& family = families[at(turn) % families.size()];
        const std::int64_t n = turn % 25 == 0 ? 131 + random.below(20) : 2 + random.below(50);
        const Dense a = family.make(n, random);
        svd::Options options;
        options.exchange = svd::exchange_named(exchanges[at(turn / 3) % exchanges.size()]);
        options.inner = turn % 7 == 0 ? kernel::Inner::rotations : kernel::Inner::blocks;
        options.start = turn % 2 == 0 ? svd::StartKind::eigen : svd::StartKind::qr;
        options.blocks = static_cast<int>(std::min<std::int64_t>(2 * comm.size() * (1 + random.below(3)),
                                                                 std::max<std::int64_t>(n, 4 * comm.size()) / 2 * 2));
        CAPTURE(turn);
        CAPTURE(family.name);
        CAPTURE(n);
        CAPTURE(mpi::name_of(options.exchange));
        CAPTURE(static_cast<int>(options.inner));
        CAPTURE(static_cast<int>(options.start));
        CAPTURE(options.blocks);
        const Decomposed got = decomposed(comm, a, options);
        CHECK(got.outcome.diagnostics.converged);
        CHECK(got.outcome.diagnostics.sweeps < 20);
        if (comm.rank() == 0) {
            const double limit = 1e-13 * std::sqrt(static_cast<double>(a.columns));
            CHECK(residual(a, got) <= limit);
            CHECK(distance_from_identity(got.u) <= limit);
            CHECK(distance_from_identity(transposed(got.vt)) <= limit);
            if (family.make == graded) {
                const std::vector<double> expected = gejsv_of(a);
                for (std::size_t i = 0; i < expected.size(); ++i) {
                    CHECK(std::abs(got.s[i] - expected[i]) <= 1e-12 * expected[i]);
                }
            }
        }
    }
}
