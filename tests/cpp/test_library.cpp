// The four operations on matrices in memory: any distribution in, any out, against plain loops over global indices
// and against LAPACK.
#include <cmath>

#include "library_cases.hpp"
#include "tilewise/kernel/factor/lapack.hpp"

using namespace tilewise;
using namespace tilewise::test;

namespace {

template <class T> void multiply_at_random(Random& random, std::int64_t m, std::int64_t n, std::int64_t k) {
    const MPI_Comm comm = MPI_COMM_WORLD;
    const bool transposed_a = draw(random, 0, 1) == 1, transposed_b = draw(random, 0, 1) == 1;
    Local<T> a(random, transposed_a ? k : m, transposed_a ? m : k, comm),
        b(random, transposed_b ? n : k, transposed_b ? k : n, comm), c(random, m, n, comm);
    CAPTURE(m);
    CAPTURE(n);
    CAPTURE(k);
    CAPTURE(a.name());
    CAPTURE(b.name());
    CAPTURE(c.name());
    const auto in_a = [&](std::int64_t i, std::int64_t j) {
        return transposed_a ? number_at(j, i, 1) : number_at(i, j, 1);
    };
    const auto in_b = [&](std::int64_t i, std::int64_t j) {
        return transposed_b ? number_at(j, i, 2) : number_at(i, j, 2);
    };
    a.fill([](std::int64_t i, std::int64_t j) { return as<T>(number_at(i, j, 1)); });
    b.fill([](std::int64_t i, std::int64_t j) { return as<T>(number_at(i, j, 2)); });
    const Matrix left = transposed_a ? transposed(a.view()) : a.view(),
                 right = transposed_b ? transposed(b.view()) : b.view();
    const Report report = multiply(comm, left, right, c.view(), {.verify = draw(random, 0, 1) == 1});
    CHECK(c.wrong([&](T found, std::int64_t i, std::int64_t j) {
        std::int64_t sum = 0;
        for (std::int64_t l = 0; l < k; ++l) {
            sum += in_a(i, l) * in_b(l, j);
        }
        return found == as<T>(sum);
    }) == 0);
    CHECK(report.total >= report.compute);
}

template <class T> void transpose_at_random(Random& random, std::int64_t rows, std::int64_t columns) {
    const MPI_Comm comm = MPI_COMM_WORLD;
    Local<T> a(random, rows, columns, comm), b(random, columns, rows, comm);
    CAPTURE(rows);
    CAPTURE(columns);
    CAPTURE(a.name());
    CAPTURE(b.name());
    const auto value = [&](std::int64_t i, std::int64_t j) { return as<T>(i * columns + j); };
    a.fill(value);
    const auto as_it_is = [&](T found, std::int64_t i, std::int64_t j) { return found == value(i, j); };
    const auto transposed_value = [&](T found, std::int64_t i, std::int64_t j) { return found == value(j, i); };
    transpose(comm, a.view(), b.view(), {.verify = draw(random, 0, 1) == 1});
    CHECK(b.wrong(transposed_value) == 0);
    CHECK(a.wrong(as_it_is) == 0);
    Local<T> copy(random, rows, columns, comm);  // the transpose of the transpose: redistribution and nothing else
    transpose(comm, transposed(a.view()), copy.view());
    CHECK(copy.wrong(as_it_is) == 0);
}

std::vector<double> lapack_values(std::vector<double> matrix, int m, int n) {
    std::vector<double> values(static_cast<std::size_t>(std::min(m, n))), work(1);
    std::vector<int> whole_work(static_cast<std::size_t>(8 * std::min(m, n)));
    int info = 0, least = 1, size = -1;
    double none = 0;
    for (int pass = 0; pass < 2; ++pass) {  // row by row is the transpose column by column, of the same values
        TILEWISE_BLAS(dgesdd_)("N", &n, &m, matrix.data(), &n, values.data(), &none, &least, &none, &least, work.data(),
                               &size, whole_work.data(), &info);
        size = static_cast<int>(work[0]);
        work.resize(static_cast<std::size_t>(size));
    }
    CHECK(info == 0);
    return values;
}

template <class T> void decompose_at_random(Random& random, std::int64_t m, std::int64_t n, const SvdOptions& options) {
    const MPI_Comm comm = MPI_COMM_WORLD;
    const std::int64_t k = options.components > 0 ? options.components : std::min(m, n);
    Local<double> a(random, m, n, comm);
    Local<T> u(random, m, k, comm), vt(random, k, n, comm);
    CAPTURE(m);
    CAPTURE(n);
    CAPTURE(a.name());
    CAPTURE(u.name());
    CAPTURE(vt.name());
    a.fill([](std::int64_t i, std::int64_t j) { return std::sin(static_cast<double>(i * 7 + j * j + 3 * i * j)); });
    const std::vector<double> matrix = a.whole(comm);
    const std::vector<double> expected = lapack_values(matrix, static_cast<int>(m), static_cast<int>(n));
    const Svd found = svd(comm, a.view(), u.view(), vt.view(), options);
    const double slack = (std::is_same_v<T, float> ? 1e-5 : 1e-12) * expected[0] * static_cast<double>(m + n);
    REQUIRE(std::ssize(found.values) == k);
    for (std::size_t j = 0; j < found.values.size(); ++j) {
        CHECK(std::abs(found.values[j] - expected[j]) <= slack);
    }
    const std::vector<double> left = u.whole(comm), right = vt.whole(comm);
    const auto at = [](const std::vector<double>& all, std::int64_t columns, std::int64_t i, std::int64_t j) {
        return all[static_cast<std::size_t>(i * columns + j)];
    };
    double error = 0;  // of A·vⱼ − σⱼ·uⱼ, so that fewer components than all can be looked at, too
    for (std::int64_t j = 0; j < k; ++j) {
        for (std::int64_t i = 0; i < m; ++i) {
            double sum = 0;
            for (std::int64_t l = 0; l < n; ++l) {
                sum += at(matrix, n, i, l) * at(right, n, j, l);
            }
            error = std::max(error, std::abs(sum - found.values[static_cast<std::size_t>(j)] * at(left, k, i, j)));
        }
        double length = 0;
        for (std::int64_t i = 0; i < m; ++i) {
            length += at(left, k, i, j) * at(left, k, i, j);
        }
        error = std::max(error, std::abs(length - 1));
    }
    CHECK(error <= (options.algorithm == SvdAlgorithm::randomized ? 1e-6 * expected[0] : slack));
    CHECK(u.wrong([](T, auto, auto) { return true; }) == 0);
    const Svd values = svd(comm, transposed(a.view()), {}, {}, options);
    for (std::size_t j = 0; j < found.values.size(); ++j) {
        CHECK(std::abs(values.values[j] - expected[j]) <= slack);
    }
}

/// Plain sweeps, with a border of zeros or the other side beyond the edges.
std::vector<double> swept(std::vector<double> field, std::int64_t rows, std::int64_t columns,
                          const StencilOptions& options) {
    const std::int64_t side = std::lround(std::sqrt(static_cast<double>(options.weights.size()))), radius = side / 2;
    for (std::int64_t step = 0; step < options.steps; ++step) {
        std::vector<double> next(field.size());
        for (std::int64_t i = 0; i < rows; ++i) {
            for (std::int64_t j = 0; j < columns; ++j) {
                for (std::int64_t a = 0; a < side; ++a) {
                    for (std::int64_t b = 0; b < side; ++b) {
                        std::int64_t y = i + a - radius, x = j + b - radius;
                        if (options.boundary == Boundary::periodic) {
                            y = (y + rows) % rows;
                            x = (x + columns) % columns;
                        }
                        if (y >= 0 && y < rows && x >= 0 && x < columns) {
                            next[static_cast<std::size_t>(i * columns + j)] +=
                                options.weights[static_cast<std::size_t>(a * side + b)] *
                                field[static_cast<std::size_t>(y * columns + x)];
                        }
                    }
                }
            }
        }
        field = next;
    }
    return field;
}

template <class From, class To> void sweep_at_random(Random& random, std::int64_t rows, std::int64_t columns) {
    const MPI_Comm comm = MPI_COMM_WORLD;
    Local<From> a(random, rows, columns, comm);
    Local<To> b(random, rows, columns, comm);
    CAPTURE(rows);
    CAPTURE(columns);
    CAPTURE(a.name());
    CAPTURE(b.name());
    a.fill([](std::int64_t i, std::int64_t j) { return static_cast<From>(number_at(i, j, 3)); });
    StencilOptions options;
    options.weights = {0.0, 0.125, 0.0, 0.25, 0.5, 0.0625, 0.03125, 0.125, 0.0};
    options.steps = draw(random, 0, 5);
    options.boundary = draw(random, 0, 1) == 0 ? Boundary::zero : Boundary::periodic;
    const std::vector<double> expected = swept(a.whole(comm), rows, columns, options);
    stencil(comm, a.view(), b.view(), options);
    CHECK(b.wrong([&](To found, std::int64_t i, std::int64_t j) {
        return std::abs(static_cast<double>(found) - expected[static_cast<std::size_t>(i * columns + j)]) < 1e-5;
    }) == 0);
}

}  // namespace

TEST_CASE("products of matrices dealt out at random, of every type that is computed in") {
    Random random(1);
    for (int round = 0; round < 6; ++round) {
        const std::int64_t m = draw(random, 1, 40), n = draw(random, 1, 40), k = draw(random, 1, 40);
        multiply_at_random<double>(random, m, n, k);
        multiply_at_random<float>(random, n, k, m);
        multiply_at_random<std::int64_t>(random, k, m, n);
        multiply_at_random<std::complex<double>>(random, m, k, n);
    }
    for (const auto& [m, n, k] : {std::array<std::int64_t, 3>{1, 50, 3}, {50, 1, 3}, {1, 1, 60}, {4, 5, 0}}) {
        multiply_at_random<double>(random, m, n, k);
    }
}

TEST_CASE("transposes of matrices dealt out at random, of items of every size") {
    Random random(2);
    for (int round = 0; round < 6; ++round) {
        const std::int64_t rows = draw(random, 1, 60), columns = draw(random, 1, 60);
        transpose_at_random<double>(random, rows, columns);
        transpose_at_random<std::int16_t>(random, columns, rows);
        transpose_at_random<std::complex<float>>(random, rows, 1);
        transpose_at_random<std::complex<double>>(random, 1, columns);
        transpose_at_random<unsigned char>(random, 9, 12);
        transpose_at_random<std::int32_t>(random, 0, columns);
    }
}

TEST_CASE("messages that are larger than the buffers that they are packed into arrive whole") {
    Random random(3);
    transpose_at_random<double>(random, 1500, 1301);
    transpose_at_random<std::complex<double>>(random, 2, 400'001);
}

TEST_CASE("decompositions of matrices dealt out at random have LAPACK's values, and vectors that belong to them") {
    Random random(4);
    for (int round = 0; round < 2; ++round) {
        const std::int64_t m = draw(random, 1, 30), n = draw(random, 1, 30);
        decompose_at_random<double>(random, m, n, {});
        decompose_at_random<float>(random, n, m, {});
        decompose_at_random<double>(random, m + 60, 7, {.components = 3});
    }
    decompose_at_random<double>(random, 60, 50, {.algorithm = SvdAlgorithm::randomized, .components = 4});
}

TEST_CASE("sweeps over matrices dealt out at random, from any real type to another") {
    Random random(5);
    for (int round = 0; round < 3; ++round) {
        const std::int64_t rows = draw(random, 6, 50), columns = draw(random, 6, 50);
        sweep_at_random<double, double>(random, rows, columns);
        sweep_at_random<float, float>(random, columns, rows);
        sweep_at_random<std::int16_t, double>(random, rows, rows);
    }
}

TEST_CASE("every algorithm and exchange of a product works in memory") {
    const MPI_Comm comm = MPI_COMM_WORLD;
    const int ranks = size_of_comm(comm);
    Random random(6);
    Local<double> a(random, 37, 29, comm), b(random, 29, 31, comm);
    a.fill([](std::int64_t i, std::int64_t j) { return static_cast<double>(number_at(i, j, 1)); });
    b.fill([](std::int64_t i, std::int64_t j) { return static_cast<double>(number_at(i, j, 2)); });
    std::vector<MultiplyOptions> all;
    for (const Exchange exchange : {Exchange::blocking, Exchange::collective, Exchange::one_sided_lock}) {
        if (ranks > 1) {
            all.push_back({.exchange = exchange, .grid = {ranks, 1}});
        }
    }
    if (ranks == 4) {
        all.push_back({.algorithm = MultiplyAlgorithm::cannon, .exchange = Exchange::persistent});
        all.push_back({.algorithm = MultiplyAlgorithm::replicated, .grid = {1, 2}, .copies = 2});
    }
    for (MultiplyOptions options : all) {
        options.verify = true;
        Local<double> c(random, 37, 31, comm);
        CHECK(multiply(comm, a.view(), b.view(), c.view(), options).verification->passed);
    }
}

TEST_CASE("a result may lie where an input lay") {
    const MPI_Comm comm = MPI_COMM_WORLD;
    Random random(7);
    Local<double> a(random, 33, 33, comm);
    a.fill([](std::int64_t i, std::int64_t j) { return static_cast<double>(100 * i + j); });
    transpose(comm, a.view(), a.view());
    CHECK(a.wrong([](double found, std::int64_t i, std::int64_t j) {
        return found == static_cast<double>(100 * j + i);
    }) == 0);
}
