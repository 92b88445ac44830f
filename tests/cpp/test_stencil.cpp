// Tests of stencil sweeps as a library: every exchange, halo, boundary, grid and depth gives the bits of one rank's
// plain sweeps.
#include <algorithm>
#include <cmath>
#include <doctest/doctest.h>
#include <map>
#include <vector>

#include "exchange_cases.hpp"
#include "stencil_cases.hpp"
#include "tilewise/base/error.hpp"
#include "tilewise/mpi/communicator.hpp"
#include "tilewise/stencil/stencil.hpp"

using namespace tilewise;
using namespace tilewise::test;

TEST_CASE("every exchange, halo, boundary, grid and depth gives the bits of plain sweeps on one rank") {
    const mpi::Communicator comm(MPI_COMM_WORLD);
    const std::array all_weights{star, lopsided, wide()};
    std::size_t turn = 0;  // what is not walked through in full is taken in turn
    std::size_t count = 0;
    // Ranks that share cores are slow. On one rank there is one grid, and two of them have up to six cases an exchange:
    // 6 meets them all in turn.
    const std::size_t sample = comm.size() > 1 ? 6 : 2;
    for (const Boundary boundary : boundaries) {
        std::map<std::size_t, Bytes> wanted;
        for (const auto exchange : stencil::exchange_names) {
            for (const auto halo : stencil::halo_names) {
                if (!go_together(exchange, halo, comm.size())) {
                    continue;
                }
                for (const grid::Grid grid : grids(comm.size())) {
                    if (++count % sample != 0 || !test::is_in_library(stencil::exchange_named(exchange))) {
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
                    c.options.exchange = stencil::exchange_named(exchange);
                    c.options.halo = stencil::halo_named(halo);
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

TEST_CASE("whichever rank has which block, the bits are the same") {
    const mpi::Communicator comm(MPI_COMM_WORLD);
    const auto ranks = static_cast<std::size_t>(comm.size());
    std::vector<int> backwards(ranks), around(ranks);
    for (int rank = 0; rank < comm.size(); ++rank) {
        backwards[static_cast<std::size_t>(rank)] = comm.size() - 1 - rank;
        around[static_cast<std::size_t>(rank)] = (rank + 1) % comm.size();
    }
    std::size_t turn = 0;
    for (const auto exchange : stencil::exchange_names) {
        if (!go_together(exchange, "packed", comm.size()) || !test::is_in_library(stencil::exchange_named(exchange))) {
            continue;
        }
        for (const bool by_columns : {false, true}) {
            Case c;
            c.options.boundary = boundaries[turn++ % boundaries.size()];
            c.options.weights = lopsided;
            c.options.steps = 5;
            c.options.depth = 2;
            c.from_by_columns = by_columns;
            const Bytes wanted = expected(c).bytes;
            c.options.grid = grids(comm.size())[turn % grids(comm.size()).size()];
            c.options.exchange = stencil::exchange_named(exchange);
            c.options.verify = Verify::fast;
            c.options.order = turn % 2 == 0 ? backwards : around;
            CAPTURE(exchange);
            const Result found = swept(comm, c);
            CHECK((found.bytes == wanted));
            CHECK(found.outcome.verification->passed);
        }
    }
}

TEST_CASE("an order of ranks that is none is refused, and MPI's is one") {
    const mpi::Communicator comm(MPI_COMM_WORLD);
    for (const grid::Grid grid : grids(comm.size())) {
        for (const bool periodic : {false, true}) {
            std::vector<int> order = mpi::cartesian_order(comm, grid, periodic);
            std::sort(order.begin(), order.end());
            for (int place = 0; place < comm.size(); ++place) {
                CHECK(order[static_cast<std::size_t>(place)] == place);
            }
        }
    }
    CHECK_THROWS_AS(mpi::cartesian_order(comm, {comm.size() + 1, 1}, false), UsageError);
    const auto laid = [&](std::vector<int> order) {
        return stencil::Layout(8, 8, {2, 1}, grid::Remainder::spread, false, std::move(order)).block(0).rows;
    };
    CHECK(laid({1, 0}) == grid::Range{4, 8});
    CHECK(laid({}) == grid::Range{0, 4});
    for (const std::vector<int>& wrong : {std::vector<int>{0, 0}, {0, 2}, {-1, 0}, {0}, {0, 1, 2}}) {
        CHECK_THROWS_AS(laid(wrong), UsageError);
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
                c.options.exchange = comm.size() == 1 ? mpi::ExchangeKind::none : mpi::ExchangeKind::overlap;
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
            if (outside && boundary == Boundary::constant) {
                return boundary.value;
            }
            const auto moved = [&](std::int64_t k, std::int64_t count) {
                const std::int64_t fold = k < 0 ? 1 : count - 2;  // next to the outer cell, where that is the mirror
                return boundary == Boundary::periodic ? (k + count) % count
                       : boundary == Boundary::mirror && (k < 0 || k >= count)
                           ? fold
                           : std::clamp<std::int64_t>(k, 0, count - 1);
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
                c.options.exchange = stencil::exchange_named(exchange);
                CAPTURE(rows);
                CAPTURE(columns);
                CAPTURE(exchange);
                CAPTURE(static_cast<int>(boundary));
                CHECK((swept(comm, c).bytes == wanted));
            }
        }
    }
}

TEST_CASE("the fast proof looks where ranks meet") {
    const mpi::Communicator comm(MPI_COMM_WORLD);
    Case c;
    c.rows = 300;  // so small that the budget has nothing left for a second patch
    c.columns = 350;
    c.options.weights = lopsided;
    c.options.steps = 3;
    c.options.grid = grids(comm.size())[grids(comm.size()).size() / 2];
    c.options.exchange = comm.size() == 1 ? mpi::ExchangeKind::none : mpi::ExchangeKind::nonblocking;
    const test::Scratch output(comm, ".proved");
    output.fill(0, std::vector<std::int32_t>(static_cast<std::size_t>(c.rows * c.columns), 0));
    io::Region to = test::region(output.path, c.rows, c.columns, 0);
    to.dtype = Dtype::float32;
    const io::Region from = made(c);
    Ledger ledger;
    Context context{comm, ledger, 1};
    ledger.start(Phase::input);
    stencil::stencil(context, from, to, {}, c.dtype, c.options);
    const auto proved = [&](Verify how) {
        c.options.verify = how;
        return stencil::verify(context, from, to, c.dtype, c.options, {c.options.steps}, {{c.rows, 1}, {c.columns, 1}});
    };
    CHECK(proved(Verify::fast).passed);
    const auto middle = [](std::int64_t count, int parts) {
        return parts == 1 ? count / 2 : grid::Partition(count, parts)[parts / 2].begin;
    };
    const std::int64_t row = middle(c.rows, c.options.grid.rows), column = middle(c.columns, c.options.grid.columns);
    const auto corrupt = [&](std::int64_t i, std::int64_t j) {  // twice: as it was
        comm.barrier();
        if (comm.rank() == 0) {
            std::fstream file(output.path, std::ios::binary | std::ios::in | std::ios::out);
            file.seekg((i * c.columns + j) * 4);
            const auto was = static_cast<char>(file.get());
            file.seekp((i * c.columns + j) * 4);
            file.put(static_cast<char>(was ^ 1));
        }
        comm.barrier();
    };
    for (const std::int64_t beside : {-1, 0}) {  // the last cells of one rank, and the first ones of the other
        corrupt(row + beside, column + beside);
        CHECK_FALSE(proved(Verify::fast).passed);
        CHECK(proved(Verify::serial).error == 1);
        corrupt(row + beside, column + beside);
    }
    CHECK(proved(Verify::serial).passed);
}

TEST_CASE("a wrong number is found by both proofs") {
    const mpi::Communicator comm(MPI_COMM_WORLD);
    for (const auto how : {Verify::fast, Verify::serial}) {
        Case c;
        c.options.weights = star;
        c.options.steps = 20;
        c.options.grid = grids(comm.size()).front();
        c.options.exchange = mpi::ExchangeKind::blocking;
        c.options.verify = how;
        const Corrupted corrupted;
        const stencil::Outcome outcome = swept(comm, c).outcome;
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
    c.options.exchange = mpi::ExchangeKind::nonblocking;
    const std::int64_t neighbours = (comm.rank() > 0) + (comm.rank() + 1 < comm.size());
    Counters counted = swept(comm, c).counted;
    CHECK(counted.messages == 3 * neighbours);
    CHECK(counted.exchanged == 3 * neighbours * 2 * c.columns * 4);
    c.options.halo = stencil::HaloForm::elementwise;
    counted = swept(comm, c).counted;
    CHECK(counted.messages == 3 * neighbours * 2 * c.columns);
    c.options.halo = stencil::HaloForm::packed;
    c.options.exchange = mpi::ExchangeKind::shared;
    counted = swept(comm, c).counted;
    CHECK(counted.messages == 0);
    CHECK(counted.copied_in_node == 3 * neighbours * 2 * c.columns * 4);
}

TEST_CASE("numbers that are not finite are counted, and what makes no sense is refused") {
    const mpi::Communicator comm(MPI_COMM_WORLD);
    Case c;
    c.options.weights = star;
    c.options.grid = {comm.size(), 1};
    c.options.exchange = mpi::ExchangeKind::blocking;
    const test::Scratch input(comm, ".input");
    std::vector<std::int32_t> bits(static_cast<std::size_t>(c.rows * c.columns), 0);
    bits[100] = 0x7f800000;  // infinity
    bits.back() = 0x7fc00000;
    input.fill(0, bits);
    io::Region from = test::region(input.path, c.rows, c.columns, 0);
    from.dtype = Dtype::float32;
    CHECK(swept(comm, c, from).outcome.input_non_finite == 2);
    if (comm.size() > 1) {
        c.options.depth = 1000;
        c.options.steps = 1000;
        CHECK_THROWS_WITH_AS(swept(comm, c), doctest::Contains("margins of 1000 cells"), Error);
        c.options.depth = 1;
        c.options.exchange = mpi::ExchangeKind::none;
        CHECK_THROWS_WITH_AS(swept(comm, c), doctest::Contains("one rank"), Error);
    }
    c.options.exchange = mpi::ExchangeKind::collective, c.options.halo = stencil::HaloForm::elementwise;
    CHECK_THROWS_WITH_AS(swept(comm, c), doctest::Contains("elementwise works with"), Error);
    c.options.halo = stencil::HaloForm::packed;
    c.options.planes = 2;
    CHECK_THROWS_WITH_AS(swept(comm, c), doctest::Contains("2 planes"), Error);
    c.options.planes = 1, c.options.repeat = 0;
    CHECK_THROWS_WITH_AS(swept(comm, c), doctest::Contains("at least one repetition"), Error);
    c.options.repeat = 1, c.options.exchange = mpi::ExchangeKind::shared, c.options.halo = stencil::HaloForm::datatype;
    CHECK_THROWS_WITH_AS(swept(comm, c), doctest::Contains("--halo datatype does not work"), Error);
    c.options.halo = stencil::HaloForm::packed;
    c.snapshots = 1;
    CHECK_THROWS_WITH_AS(swept(comm, c), doctest::Contains("snapshots are due"), Error);
}
