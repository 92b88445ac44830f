// Tests of multiply as a library: every algorithm and exchange on generated matrices, proofs that find what is wrong.
#include <cmath>
#include <doctest/doctest.h>
#include <limits>
#include <vector>

#include "exchange_cases.hpp"
#include "io_cases.hpp"
#include "tilewise/base/error.hpp"
#include "tilewise/multiply/early_output.hpp"
#include "tilewise/multiply/multiply.hpp"

using namespace tilewise;
using multiply::AlgorithmKind;
using multiply::Options;
using multiply::Outcome;

namespace {

io::Region made(std::int64_t rows, std::int64_t columns, std::uint64_t seed, const char* kind = "normal") {
    io::Region region;
    region.name = "made";
    region.rows = rows;
    region.columns = columns;
    region.generator = kind;
    region.seed = seed;
    return region;
}

multiply::Outcome product(const mpi::Communicator& comm, io::Region a, io::Region b, const Options& options,
                          Dtype dtype = Dtype::float64) {
    a.dtype = b.dtype = dtype;
    Ledger ledger;
    Context context{comm, ledger, 1};
    ledger.start(Phase::input);
    auto outcome = multiply::multiply(context, a, b, nullptr, dtype, options);
    ledger.stop();
    return outcome;
}

/// Every algorithm with every grid that fits this number of ranks, and with some that leave ranks idle.
std::vector<Options> arrangements(int ranks) {
    std::vector<Options> all;
    const auto add = [&](const char* name, grid::Grid grid, int copies) {
        Options options;
        options.algorithm = multiply::algorithm_named(name);
        options.grid = grid;
        options.copies = copies;
        all.push_back(options);
    };
    if (ranks == 1) {
        add("local", {1, 1}, 1);
    }
    for (int rows = 1; rows <= ranks; ++rows) {
        if (ranks % rows == 0) {
            add("summa", {rows, ranks / rows}, 1);
            if (rows * rows == ranks) {
                add("cannon", {rows, rows}, 1);
            }
            if (rows > 1) {
                add("replicated", {1, ranks / rows}, rows);
            }
        }
    }
    if (ranks > 1) {
        add("summa", {1, ranks == 3 ? 1 : ranks - 1}, 1);  // of 3 ranks more are idle than have places
    }
    if (ranks > 2) {
        add("replicated", {1, (ranks - 1) / 2}, 2);
    }
    return all;
}

}  // namespace

TEST_CASE("every algorithm, exchange and type is proved right, on shapes that do not divide") {
    const mpi::Communicator comm(MPI_COMM_WORLD);
    const std::vector<Dtype> others{Dtype::complex64, Dtype::int64, Dtype::float32, Dtype::complex128, Dtype::uint64};
    std::size_t turn = 0;
    for (Options options : arrangements(comm.size())) {
        for (const auto exchange : multiply::exchange_names) {
            const bool torus = options.algorithm == AlgorithmKind::cannon,
                       alone = options.algorithm == AlgorithmKind::local;
            options.exchange = multiply::exchange_named(exchange);
            if ((exchange == "none") != alone || (exchange == "collective" && torus) ||
                (mpi::is_described_once(options.exchange) && !torus) || !test::is_in_library(options.exchange)) {
                continue;
            }
            // Twice each: real numbers as they lie, and transposed operands of the other types in turn.
            turn = (turn + 1) % others.size();
            for (const bool transposed : {false, true}) {
                const Dtype dtype = transposed ? others[turn] : Dtype::float64;
                CAPTURE(static_cast<int>(options.algorithm));
                CAPTURE(exchange);
                CAPTURE(name_of(dtype));
                io::Region a = transposed ? made(23, 17, 1) : made(17, 23, 1),
                           b = transposed ? made(9, 23, 2) : made(23, 9, 2);
                a.transposed = b.transposed = transposed;
                options.repeat = transposed ? 1 : 2;
                const multiply::Outcome outcome = product(comm, a, b, options, dtype);
                REQUIRE(outcome.verification.has_value());
                CHECK(outcome.verification->passed);
                CHECK(outcome.samples.size() == static_cast<std::size_t>(options.repeat));
            }
        }
    }
}

TEST_CASE("panels are found in blocks of several pages, which differ in size by rank") {
    const mpi::Communicator comm(MPI_COMM_WORLD);
    for (Options options : arrangements(comm.size())) {
        for (const auto exchange : {"one_sided_fence", "one_sided_lock", "shared"}) {
            options.exchange = multiply::exchange_named(exchange);
            if (options.algorithm != AlgorithmKind::local) {
                CAPTURE(static_cast<int>(options.algorithm));
                CAPTURE(exchange);
                const multiply::Outcome outcome =
                    product(comm, made(101, 203, 1), made(203, 97, 2), options, Dtype::float64);
                CHECK(outcome.verification->passed);
            }
        }
    }
}

TEST_CASE("a product that is larger than memory is computed tile by tile, by any exchange") {
    const mpi::Communicator comm(MPI_COMM_WORLD);
    const std::vector<grid::Shape> stages{{17, 9, 23}, {5, 4, 7}, {1, 9, 23}, {17, 2, 1}, {6, 3, 30}};
    std::size_t turn = 0;
    for (Options options : arrangements(comm.size())) {
        if (options.algorithm != AlgorithmKind::local && options.algorithm != AlgorithmKind::summa) {
            continue;
        }
        for (const auto exchange : multiply::exchange_names) {
            options.exchange = multiply::exchange_named(exchange);
            if ((exchange == "none") != (options.algorithm == AlgorithmKind::local) ||
                mpi::is_described_once(options.exchange) || !test::is_in_library(options.exchange)) {
                continue;
            }
            // Of exchanges, of which there are many, each meets one of the parts on each grid, in turn.
            const std::size_t parts = options.algorithm == AlgorithmKind::local ? stages.size() : 1;
            for (std::size_t part = 0; part < parts; ++part) {
                options.stage = stages[turn % stages.size()];
                constexpr std::array types{Dtype::float64, Dtype::complex64, Dtype::int64};
                const Dtype dtype = types[++turn % types.size()];
                const bool transposed = turn % 2 == 0;
                CAPTURE(exchange);
                CAPTURE(name_of(dtype));
                CAPTURE(options.stage.m);
                io::Region a = transposed ? made(23, 17, 1) : made(17, 23, 1),
                           b = transposed ? made(9, 23, 2) : made(23, 9, 2);
                a.transposed = b.transposed = transposed;
                options.remainder = turn % 5 == 0 ? grid::Remainder::last : grid::Remainder::spread;
                CHECK(product(comm, a, b, options, dtype).verification->passed);
                if (options.remainder == grid::Remainder::spread) {  // rank 0 has some of each tile
                    const test::Corrupted corrupted;
                    CHECK_FALSE(product(comm, a, b, options, dtype).verification->passed);
                }
            }
        }
    }
}

TEST_CASE("one wrong element is found, whatever the type") {
    const mpi::Communicator comm(MPI_COMM_WORLD);
    for (const Dtype dtype : {Dtype::float32, Dtype::float64, Dtype::complex128, Dtype::uint64}) {
        Options options = arrangements(comm.size()).front();
        options.exchange = comm.size() == 1 ? mpi::ExchangeKind::none : mpi::ExchangeKind::overlap;
        const test::Corrupted corrupted;
        CHECK_FALSE(
            product(comm, made(40, 50, 3, "random"), made(50, 60, 4, "random"), options, dtype).verification->passed);
    }
}

TEST_CASE("numbers that cannot be checked are counted, not condemned") {
    const mpi::Communicator comm(MPI_COMM_WORLD);
    Options options = arrangements(comm.size()).front();
    options.exchange = comm.size() == 1 ? mpi::ExchangeKind::none : mpi::ExchangeKind::nonblocking;
    // Graded columns reach 1e-20 of the largest: rounding of tiny rows must not look like an error.
    const multiply::Outcome outcome = product(comm, made(30, 30, 5, "graded"), made(30, 30, 6, "graded"), options);
    CHECK(outcome.verification->passed);
}

TEST_CASE("integers that could overflow are refused with the bound") {
    const mpi::Communicator comm(MPI_COMM_WORLD);
    Options options = arrangements(comm.size()).front();
    options.exchange = comm.size() == 1 ? mpi::ExchangeKind::none : mpi::ExchangeKind::blocking;
    const auto ramp = [](std::int64_t rows, std::int64_t columns) { return made(rows, columns, 0, "ramp"); };
    CHECK_THROWS_AS(
        product(comm, ramp(8, std::int64_t{1} << 20), ramp(std::int64_t{1} << 20, 8), options, Dtype::int64), Error);
    CHECK_NOTHROW(product(comm, ramp(4, 6), ramp(6, 5), options, Dtype::int64));
}

TEST_CASE("streamed output is cut into nearly equal parts of whole tiles") {
    using multiply::EarlyOutput;
    const auto parts = EarlyOutput::parts(8192, 65536);
    REQUIRE(parts.size() == 8);
    CHECK(parts[0].size() == 1024);
    CHECK(parts[7].end == 8192);
    CHECK(EarlyOutput::parts(100, 65536).size() == 1);
    CHECK(EarlyOutput::parts(0, 8).size() == 1);
    CHECK(EarlyOutput::parts(1025, std::int64_t{1} << 30).size() == 3);
}

TEST_CASE("an arrangement that makes no sense is refused with what would") {
    const mpi::Communicator comm(MPI_COMM_WORLD);
    Options options;
    options.algorithm = AlgorithmKind::cannon;
    options.grid = {1, comm.size() + 1};
    CHECK_THROWS_WITH_AS(product(comm, made(4, 4, 1), made(4, 4, 2), options), doctest::Contains("square"), UsageError);
    CHECK_THROWS_WITH_AS(multiply::algorithm_named("strassen"), doctest::Contains("local, cannon, summa, replicated"),
                         UsageError);
    options.algorithm = AlgorithmKind::summa;
    CHECK_THROWS_WITH_AS(product(comm, made(4, 5, 1), made(4, 4, 2), options), doctest::Contains("do not match"),
                         UsageError);
}

TEST_CASE("what a rank receives is what its algorithm says, and nothing more") {
    const mpi::Communicator comm(MPI_COMM_WORLD);
    for (Options options : arrangements(comm.size())) {
        if (options.algorithm == AlgorithmKind::local || options.algorithm == AlgorithmKind::replicated) {
            continue;
        }
        options.exchange = mpi::ExchangeKind::nonblocking;
        Ledger ledger;
        Context context{comm, ledger, 1};
        ledger.start(Phase::input);
        const multiply::Outcome outcome =
            multiply::multiply(context, made(24, 24, 1), made(24, 24, 2), nullptr, Dtype::float64, options);
        CHECK(ledger.count().exchanged == outcome.ideal_exchanged);
    }
}
