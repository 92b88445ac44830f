// Tests of stencil sweeps as a library: every exchange, halo, boundary, grid and depth gives the bits of one rank's plain sweeps.
#include <algorithm>
#include <cmath>
#include <doctest/doctest.h>
#include <map>
#include <vector>

#include "stencil_cases.hpp"
#include "tilewise/base/error.hpp"

using namespace tilewise;
using namespace tilewise::test;

TEST_CASE("every exchange, halo, boundary, grid and depth gives the bits of plain sweeps on one rank") {
    const mpi::Communicator comm(MPI_COMM_WORLD);
    const std::array all_weights{star, lopsided, wide()};
    std::size_t turn = 0;  // what is not walked through in full is taken in turn
    std::size_t count = 0;
    const std::size_t sample = comm.size() > 2 ? 5 : 2;  // ranks that share cores are slow
    for (const Boundary boundary : boundaries) {
        std::map<std::size_t, Bytes> wanted;
        for (const auto exchange : stencil::exchange_names) {
            for (const auto halo : stencil::halo_names) {
                if (!go_together(exchange, halo, comm.size())) {
                    continue;
                }
                for (const grid::Grid grid : grids(comm.size())) {
                    if (++count % sample != 0) {
                        continue;
                    }
                    ++turn;
                    Case c;
                    c.options.boundary = boundary;
                    c.options.weights = all_weights[turn % 3];
                    c.options.steps = 7;
                    if (wanted[turn % 3].empty()) {
                        wanted[turn % 3] = expected(c).bytes;
                    }
                    c.options.grid = grid;
                    c.options.exchange = exchange;
                    c.options.halo = halo;
                    c.options.depth = halo == "elementwise" ? 1 : std::array{3, 1, 2}[turn / 3 % 3];
                    c.options.plain = turn % 5 == 0;
                    c.options.remainder =
                        turn % 4 == 0 && grid.size() < 6 ? grid::Remainder::last : grid::Remainder::spread;
                    CAPTURE(grid.rows);
                    CAPTURE(exchange);
                    CAPTURE(halo);
                    CAPTURE(static_cast<int>(boundary));
                    CAPTURE(c.options.depth);
                    REQUIRE((swept(comm, c, 1 + static_cast<int>(turn % 2)).bytes == wanted[turn % 3]));
                }
            }
        }
    }
}

TEST_CASE("types, orders of storage, planes, repetitions and snapshots do not change the bits") {
    const mpi::Communicator comm(MPI_COMM_WORLD);
    int turn = 0;
    for (const Boundary boundary : boundaries) {
        for (const bool from_by_columns : {false, true}) {
            for (const auto& [from, to] :
                 {std::pair{Dtype::uint8, Dtype::uint8}, std::pair{Dtype::int64, Dtype::float32},
                  std::pair{Dtype::float32, Dtype::float64}, std::pair{Dtype::float64, Dtype::int16}}) {
                if (comm.size() > 2 && ++turn % 5 != 0) {
                    continue;
                }
                Case c;
                c.rows = 3 * 29;
                c.from_dtype = from;
                c.to_dtype = to;
                c.from_by_columns = from_by_columns;
                c.to_by_columns = from == Dtype::uint8 ? from_by_columns : !from_by_columns;
                c.dtype = from == Dtype::float64 ? Dtype::float64 : Dtype::float32;
                c.options.planes = 3;
                c.options.boundary = boundary;
                c.options.weights = lopsided;
                c.options.steps = 11;
                c.options.snapshot_every = 4;
                c.snapshots = 2;
                const Result wanted = expected(c);
                c.options.grid = grids(comm.size())[grids(comm.size()).size() / 2];
                c.options.exchange = comm.size() == 1 ? "none" : "overlap";
                c.options.depth = 3;
                c.options.repeat = 2;
                c.options.warmup = 1;
                c.options.verify = Verify::serial;
                const Result found = swept(comm, c);
                CHECK((found.bytes == wanted.bytes));
                CHECK((found.snapshots == wanted.snapshots));
                CHECK(found.outcome.snapshots == std::vector<std::int64_t>{4, 8});
                CHECK(found.outcome.samples.size() == 2);
                CHECK(found.outcome.verification->passed);
                c.options.verify = Verify::fast;
                CHECK(swept(comm, c).outcome.verification->passed);
            }
        }
    }
}

TEST_CASE("sweeps are those of two loops") {
    const mpi::Communicator comm(MPI_COMM_SELF);
    for (const Boundary boundary : boundaries) {
        Case c;
        c.options.boundary = boundary;
        c.options.weights = lopsided;
        const auto state = [&](std::int64_t steps) {
            c.options.steps = steps;
            return swept(comm, c).bytes;
        };
        const Bytes before = state(0), after = state(1);
        const auto cell = [&](std::int64_t i, std::int64_t j) -> double {
            const bool outside = i < 0 || i >= c.rows || j < 0 || j >= c.columns;
            if (outside && boundary == Boundary::zero) {
                return 0;
            }
            const auto moved = [&](std::int64_t k, std::int64_t count) {
                return boundary == Boundary::periodic ? (k + count) % count : std::clamp<std::int64_t>(k, 0, count - 1);
            };
            return at(before, moved(i, c.rows) * c.columns + moved(j, c.columns));
        };
        double worst = 0;
        for (std::int64_t i = 0; i < c.rows; ++i) {
            for (std::int64_t j = 0; j < c.columns; ++j) {
                double sum = 0;
                for (std::int64_t a = 0; a < 3; ++a) {
                    for (std::int64_t b = 0; b < 3; ++b) {
                        sum += lopsided.values[static_cast<std::size_t>(3 * a + b)] * cell(i + a - 1, j + b - 1);
                    }
                }
                const bool edge = i == 0 || j == 0 || i + 1 == c.rows || j + 1 == c.columns;
                sum = boundary == Boundary::fixed && edge ? cell(i, j) : sum;
                worst = std::max(worst, std::abs(sum - at(after, i * c.columns + j)));
            }
        }
        CHECK(worst < 1e-6);
    }
}

TEST_CASE("small matrices go round in themselves as often as it takes") {
    const mpi::Communicator comm(MPI_COMM_WORLD);
    int turn = 0;
    for (const auto& [rows, columns] :
         {std::pair<std::int64_t, std::int64_t>{1, 1}, {1, 23}, {23, 1}, {2, 24}, {0, 5}}) {
        for (const Boundary boundary : boundaries) {
            Case c;
            c.rows = rows;
            c.columns = columns;
            c.options.boundary = boundary;
            c.options.weights = wide();
            c.options.steps = 5;
            const Bytes wanted = expected(c).bytes;
            const bool by_rows = rows >= 2 * comm.size();
            if (!by_rows && columns < 2 * comm.size() && comm.size() > 1) {
                continue;
            }
            c.options.grid = by_rows ? grid::Grid{comm.size(), 1} : grid::Grid{1, comm.size()};
            for (const auto exchange :
                 {"blocking", "overlap", "persistent", "collective", "one_sided_pscw", "one_sided_lock", "shared"}) {
                if (comm.size() > 2 && ++turn % 4 != 0) {
                    continue;
                }
                c.options.exchange = exchange;
                CAPTURE(rows);
                CAPTURE(columns);
                CAPTURE(exchange);
                CAPTURE(static_cast<int>(boundary));
                CHECK((swept(comm, c).bytes == wanted));
            }
        }
    }
}

TEST_CASE("sweeping ends when nothing changes any more, at the same sweep on any number of ranks") {
    const mpi::Communicator comm(MPI_COMM_WORLD);
    Case c;
    c.options.weights = star;
    c.options.boundary = Boundary::reflect;
    c.options.steps = 100;
    c.options.until_change = 0.02;
    c.options.check_every = c.options.snapshot_every = 5;
    c.snapshots = 19;
    const Result wanted = expected(c);
    c.options.grid = grids(comm.size()).back();
    c.options.exchange = comm.size() == 1 ? "none" : "nonblocking";
    c.options.depth = 3;
    c.options.verify = Verify::fast;
    const Result found = swept(comm, c);
    const std::int64_t sweeps = found.outcome.sweeps.front();
    CHECK(found.outcome.sweeps == wanted.outcome.sweeps);
    CHECK(sweeps % 5 == 0);
    CHECK(sweeps < c.options.steps);
    CHECK(std::ssize(found.outcome.snapshots) == sweeps / 5);
    CHECK(found.outcome.verification->passed);
    CHECK((found.bytes == wanted.bytes));
    CHECK((found.snapshots == wanted.snapshots));
    // The last check looked at the last sweep, and the one before it was not at rest.
    const auto change = [&](std::int64_t sweep) {
        Case fixed = c;
        fixed.options.until_change = 0;
        fixed.options.snapshot_every = 0;
        fixed.snapshots = 0;
        fixed.options.steps = sweep;
        const Bytes after = expected(fixed).bytes;
        fixed.options.steps = sweep - 1;
        const Bytes before = expected(fixed).bytes;
        float most = 0;
        for (std::int64_t i = 0; i < c.rows * c.columns; ++i) {
            most = std::max(most, std::abs(static_cast<float>(at(after, i)) - static_cast<float>(at(before, i))));
        }
        return static_cast<double>(most);
    };
    CHECK(*found.outcome.last_change == change(sweeps));
    CHECK(change(sweeps) < 0.02);
    CHECK(change(sweeps - 5) >= 0.02);
}

TEST_CASE("a wrong number is found by both proofs") {
    const mpi::Communicator comm(MPI_COMM_WORLD);
    for (const auto how : {Verify::fast, Verify::serial}) {
        Case c;
        c.options.weights = star;
        c.options.steps = 20;
        c.options.grid = grids(comm.size()).front();
        c.options.exchange = "blocking";
        c.options.verify = how;
        c.options.tamper = true;
        const Outcome outcome = swept(comm, c).outcome;
        CHECK_FALSE(outcome.verification->passed);
        CHECK(outcome.verification->error == 1);
    }
}

TEST_CASE("messages and bytes are those that the halos say") {
    const mpi::Communicator comm(MPI_COMM_WORLD);
    Case c;
    c.options.weights = star;
    c.options.steps = 6;
    c.options.depth = 2;
    c.options.grid = {comm.size(), 1};
    c.options.exchange = "nonblocking";
    const std::int64_t neighbours = (comm.rank() > 0) + (comm.rank() + 1 < comm.size());
    Counters counted = swept(comm, c).counted;
    CHECK(counted.messages == 3 * neighbours);
    CHECK(counted.exchanged == 3 * neighbours * 2 * c.columns * 4);
    c.options.halo = "elementwise";
    counted = swept(comm, c).counted;
    CHECK(counted.messages == 3 * neighbours * 2 * c.columns);
    c.options.halo = "packed";
    c.options.exchange = "shared";
    counted = swept(comm, c).counted;
    CHECK(counted.messages == 0);
    CHECK(counted.copied_in_node == 3 * neighbours * 2 * c.columns * 4);
}

TEST_CASE("numbers that are not finite are counted, and what makes no sense is refused") {
    const mpi::Communicator comm(MPI_COMM_WORLD);
    Case c;
    c.options.weights = star;
    c.options.grid = {comm.size(), 1};
    c.options.exchange = "blocking";
    const test::Scratch input(comm, ".input");
    std::vector<std::int32_t> bits(static_cast<std::size_t>(c.rows * c.columns), 0);
    bits[100] = 0x7f800000;  // infinity
    bits.back() = 0x7fc00000;
    input.fill(0, bits);
    io::Region from = test::region(input.path, c.rows, c.columns, 0);
    from.dtype = Dtype::float32;
    CHECK(swept(comm, c, from).outcome.non_finite == 2);
    if (comm.size() > 1) {
        c.options.depth = 1000;
        c.options.steps = 1000;
        CHECK_THROWS_WITH_AS(swept(comm, c), doctest::Contains("margins of 1000 cells"), Error);
        c.options.depth = 1;
        c.options.exchange = "none";
        CHECK_THROWS_WITH_AS(swept(comm, c), doctest::Contains("one rank"), Error);
    }
    c.options.exchange = "collective", c.options.halo = "elementwise";
    CHECK_THROWS_WITH_AS(swept(comm, c), doctest::Contains("elementwise goes with"), Error);
    c.options.halo = "packed";
    c.options.planes = 2;
    CHECK_THROWS_WITH_AS(swept(comm, c), doctest::Contains("2 planes"), Error);
    c.options.planes = 1, c.snapshots = 1;
    CHECK_THROWS_WITH_AS(swept(comm, c), doctest::Contains("snapshots are due"), Error);
}
