// Tests of sweeping until nothing changes any more: when that is, which snapshots there are then, and what is never at
// rest.
#include <algorithm>
#include <bit>
#include <cmath>
#include <doctest/doctest.h>
#include <vector>

#include "stencil_cases.hpp"

using namespace tilewise;
using namespace tilewise::test;

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
    c.options.exchange = comm.size() == 1 ? mpi::ExchangeKind::none : mpi::ExchangeKind::nonblocking;
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
    CHECK(found.snapshots.back() == Bytes(found.snapshots.back().size(), '?'));  // never reached, and so never written
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

TEST_CASE("planes that come to rest at different sweeps have the snapshots that the last of them reached") {
    const mpi::Communicator comm(MPI_COMM_WORLD);
    Case c;
    c.rows = 3 * 29;
    const test::Scratch input(comm, ".planes");
    std::vector<std::int32_t> bits(static_cast<std::size_t>(c.rows * c.columns), 0);
    for (std::size_t i = 0; i < bits.size();
         ++i) {  // the plane in the middle is at rest from the beginning, the first one soon
        const std::size_t plane = 3 * i / bits.size();
        bits[i] =
            plane == 1 ? 0 : std::bit_cast<std::int32_t>(static_cast<float>((i * i) % 7) * (plane == 0 ? 0.1F : 3));
    }
    input.fill(0, bits);
    io::Region from = test::region(input.path, c.rows, c.columns, 0);
    from.dtype = Dtype::float32;
    c.options.planes = 3;
    c.options.weights = star;
    c.options.boundary = Boundary::reflect;
    c.options.steps = 200;
    c.options.until_change = 0.01;
    c.options.check_every = 5;
    c.options.snapshot_every = 10;
    c.snapshots = 19;
    c.options.grid = grids(comm.size()).back();
    c.options.exchange = comm.size() == 1 ? mpi::ExchangeKind::none : mpi::ExchangeKind::overlap;
    c.options.repeat = 2;
    c.options.verify = Verify::serial;
    const Result found = swept(comm, c, from);
    const std::vector<std::int64_t>& sweeps = found.outcome.sweeps;
    CHECK(sweeps[1] == 5);
    CHECK(sweeps[1] < sweeps[0]);
    CHECK(sweeps[0] < sweeps[2]);
    CHECK(sweeps[2] < c.options.steps);
    CHECK(found.outcome.depth == 4);  // no more than lie between two checks
    CHECK(found.outcome.verification->passed);
    CHECK(std::ssize(found.outcome.snapshots) == sweeps[2] / 10);
    // Each plane's part is that of the plane alone, after its last sweep at most.
    for (std::size_t index = 0; index < found.outcome.snapshots.size(); ++index) {
        for (std::int64_t plane = 0; plane < 3; ++plane) {
            Case alone = c;
            alone.rows = 29;
            alone.options.planes = 1;
            alone.options.until_change = 0;
            alone.options.snapshot_every = 0;
            alone.snapshots = 0;
            alone.options.steps = std::min(found.outcome.snapshots[index], sweeps[static_cast<std::size_t>(plane)]);
            io::Region part =
                test::region(input.path, alone.rows, alone.columns, plane * alone.rows * alone.columns * 4);
            part.dtype = Dtype::float32;
            part.file_bytes = -1;
            const Bytes wanted = expected(alone, part).bytes;
            CHECK(
                std::equal(wanted.begin(), wanted.end(), found.snapshots[index].begin() + plane * std::ssize(wanted)));
        }
    }
}

TEST_CASE("numbers that grow beyond all bounds are not at rest, nor are those that stay infinite") {
    const mpi::Communicator comm(MPI_COMM_WORLD);
    Case c;
    c.options.weights = {1, {0, 0, 0, 0, 1e20, 0, 0, 0, 0}};  // from one sweep to the next to infinity, where it stays
    c.options.steps = 40;
    c.options.until_change = 1e-3;
    c.options.check_every = 1;
    c.options.grid = grids(comm.size()).front();
    c.options.exchange = comm.size() == 1 ? mpi::ExchangeKind::none : mpi::ExchangeKind::blocking;
    const stencil::Outcome outcome = swept(comm, c).outcome;
    CHECK(outcome.sweeps.front() > 1);
    CHECK(outcome.sweeps.front() < 10);
    CHECK(std::isinf(*outcome.last_change));
    REQUIRE(outcome.verification);
    CHECK(outcome.verification->method == "convergence");
    CHECK_FALSE(outcome.verification->passed);
    CHECK(outcome.result.non_finite > 0);
    c.options.until_change = 0;
    const stencil::Outcome all = swept(comm, c).outcome;
    CHECK_FALSE(all.verification);
    CHECK(all.sweeps.front() == 40);
    CHECK(all.result.non_finite >= outcome.result.non_finite);
    CHECK(all.input_non_finite == 0);
}
