// Tests of decompositions as a textbook has them: from the columns of A, until off(AᵀA) is small, and on one thread.
#include <array>
#include <doctest/doctest.h>

#include "svd_cases.hpp"

using namespace tilewise;
using namespace tilewise::test;

TEST_CASE("every shape is decomposed from its columns as they are, over all ranks and serially") {
    const mpi::Communicator comm(MPI_COMM_WORLD);
    for (const Named& shape : shapes()) {
        CAPTURE(shape.name);
        const std::vector<double> wanted = values_of(shape.matrix);
        svd::Options options = options_for(comm);
        options.start = svd::StartKind::none;
        const Decomposed got = decomposed(comm, shape.matrix, options);
        check_all(shape.matrix, got, wanted);
        CHECK(got.outcome.diagnostics.start_used == "none");
        options.inner = kernel::Inner::rotations;
        options.repeat = 2;
        check_all(shape.matrix, decomposed(comm, shape.matrix, options, true), wanted);
        options.algorithm = svd::AlgorithmKind::serial;
        if (comm.size() > 1) {
            options.exchange = mpi::ExchangeKind::none;
            CHECK_THROWS_WITH_AS(decomposed(comm, shape.matrix, options), doctest::Contains("serial works on one rank"),
                                 UsageError);
            continue;
        }
        const Decomposed alone = decomposed(comm, shape.matrix, options);
        check_all(shape.matrix, alone, wanted);
        CHECK(alone.outcome.diagnostics.start_used == "none");
    }
}

TEST_CASE("off(AᵀA) is the sum of squares beside the diagonal, and sweeps end below a threshold of it") {
    const mpi::Communicator comm(MPI_COMM_WORLD);
    Dense a = normal(40, 30);
    const auto off_of = [](const Dense& m) {
        const Dense gram = product(transposed(m), m);
        double sum = 0;
        for (std::int64_t i = 0; i < gram.rows; ++i) {
            for (std::int64_t j = 0; j < gram.columns; ++j) {
                sum += i == j ? 0 : gram(i, j) * gram(i, j);
            }
        }
        return sum;
    };
    svd::Options options = options_for(comm);
    options.start = svd::StartKind::none;
    if (comm.size() == 1) {  // one pair of blocks: all products are found before anything turns
        const Decomposed got = decomposed(comm, a, options);
        CHECK(got.outcome.diagnostics.off_squares[0] == doctest::Approx(off_of(a)).epsilon(1e-12));
    }
    options.blocks = 6 * comm.size();
    for (const auto inner : {kernel::Inner::blocks, kernel::Inner::rotations}) {
        CAPTURE(inner);
        options.inner = inner;
        options.off_squares = 0;
        const std::vector<double> off = decomposed(comm, a, options).outcome.diagnostics.off_squares;
        REQUIRE(off.size() >= 4);
        CHECK(off[0] > 0.05 * off_of(a));
        CHECK(off[0] <= off_of(a) * (1 + 1e-12));
        CHECK(off[1] < off[0]);
        CHECK(off.back() < 1e-12 * off[0]);
        options.off_squares = std::sqrt(off[1] * off[2]);
        const svd::Diagnostics sooner = decomposed(comm, a, options).outcome.diagnostics;
        CHECK(sooner.sweeps == 3);
        CHECK(sooner.converged);
        CHECK(sooner.off_squares == std::vector<double>(off.begin(), off.begin() + 3));
        // A scale that squares would not survive is taken out of A, not out of these.
        Dense large = a;
        for (double& value : large.values) {
            value *= 0x1p200;
        }
        options.off_squares *= 0x1p800;
        CHECK(decomposed(comm, large, options).outcome.diagnostics.sweeps == 3);
    }
    Dense two(3, 2);
    two.values = {1, 2, 0, 1, 0, 3};  // the product of both columns is 2
    options = options_for(comm);
    options.start = svd::StartKind::none;
    options.inner = kernel::Inner::rotations;
    CHECK(decomposed(comm, two, options).outcome.diagnostics.off_squares[0] == doctest::Approx(8));
}
