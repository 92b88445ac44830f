// Tests of sweeps over fields larger than memory: tile after tile and pass after pass give the bits of plain sweeps
// over the whole field.
#include <doctest/doctest.h>
#include <map>
#include <tuple>
#include <vector>

#include "stencil_cases.hpp"
#include "tilewise/base/error.hpp"
#include "tilewise/stencil/tiling.hpp"

using namespace tilewise;
using namespace tilewise::test;

namespace {

kernel::Weights widest() {
    kernel::Weights weights{4, {}};
    for (int i = 0; i < 81; ++i) {
        weights.values.push_back(0.002 + 0.0004 * ((i * 11) % 81));
    }
    return weights;
}

struct Cut {
    std::int64_t rows, columns;
    int depth;
    std::size_t states;  // for 7 sweeps
};

/// Whole rows, whole columns, both, and single cells; one pass, two, and one for each sweep.
constexpr std::array cuts{Cut{5, 43, 7, 0},  Cut{9, 43, 4, 1}, Cut{37, 10, 3, 2}, Cut{8, 9, 2, 2},
                          Cut{37, 43, 1, 2}, Cut{1, 43, 5, 1}, Cut{4, 3, 7, 0},   Cut{1, 1, 6, 1}};

void take(Case& c, const Cut& cut) {
    c.options.tile_rows = cut.rows;
    c.options.tile_columns = cut.columns;
    c.options.depth = cut.depth;
    c.states = cut.states;
}

Case case_on(const mpi::Communicator& comm) {
    Case c;
    c.options.grid = {comm.size(), 1};
    c.options.steps = 7;
    return c;
}

}  // namespace

TEST_CASE("tiles and passes give the bits of plain sweeps over all of the field") {
    const mpi::Communicator comm(MPI_COMM_WORLD);
    const std::array all_weights{star, lopsided, wide(), widest()};
    std::size_t turn = 0;
    for (const Boundary boundary : boundaries) {
        for (std::size_t weights = 0; weights < all_weights.size(); ++weights) {
            for (const Dtype dtype : {Dtype::float32, Dtype::float64}) {
                Case c = case_on(comm);
                c.dtype = c.from_dtype = c.to_dtype = dtype;
                c.from_by_columns = c.to_by_columns = weights % 2 == 1;
                c.options.boundary = boundary;
                c.options.weights = all_weights[weights];
                const Bytes wanted = expected(c).bytes;
                for (const Cut& cut : cuts) {
                    // Ranks that share cores are slow, most of all where they wait after each cell.
                    if (comm.size() > 1 && (++turn % 7 != 0 || cut.columns < 9)) {
                        continue;
                    }
                    take(c, cut);
                    c.options.plain = turn % 3 == 0;
                    CAPTURE(static_cast<int>(boundary));
                    CAPTURE(weights);
                    CAPTURE(cut.rows);
                    CAPTURE(cut.columns);
                    CAPTURE(cut.depth);
                    const Result found = swept(comm, c, 1 + static_cast<int>(turn % 2));
                    REQUIRE((found.bytes == wanted));
                    CHECK(found.outcome.passes == (7 + cut.depth - 1) / cut.depth);
                    CHECK(found.outcome.point_sweeps == 7.0 * 37 * 43);
                }
            }
        }
    }
}

TEST_CASE("tiles of planes in other types and orders, with snapshots and proofs") {
    const mpi::Communicator comm(MPI_COMM_WORLD);
    int turn = 0;
    for (const Boundary boundary : boundaries) {
        for (const bool from_by_columns : {false, true}) {
            for (const auto& [from, to] :
                 {std::pair{Dtype::uint8, Dtype::uint8}, std::pair{Dtype::int64, Dtype::float32},
                  std::pair{Dtype::float32, Dtype::float64}, std::pair{Dtype::float64, Dtype::int16}}) {
                if (comm.size() > 1 && ++turn % 7 != 0) {
                    continue;
                }
                Case c = case_on(comm);
                c.rows = 3 * 29;
                c.from_dtype = from;
                c.to_dtype = to;
                c.from_by_columns = from_by_columns;
                c.to_by_columns = from == Dtype::uint8 ? from_by_columns : !from_by_columns;
                c.dtype = from == Dtype::uint8 ? Dtype::float32 : Dtype::float64;
                c.options.planes = 3;
                c.options.boundary = boundary;
                c.options.weights = lopsided;
                c.options.steps = 11;
                c.options.snapshot_every = 4;
                c.snapshots = 2;
                const Result wanted = expected(c);
                take(c, {.rows = 10, .columns = 15, .depth = 3, .states = 2});
                c.options.verify = Verify::fast;
                const Result found = swept(comm, c);
                CHECK((found.bytes == wanted.bytes));
                CHECK((found.snapshots == wanted.snapshots));
                CHECK(found.outcome.snapshots == std::vector<std::int64_t>{4, 8});
                CHECK(found.outcome.verification->passed);
                CHECK(found.outcome.passes == 5);  // 2 + 2, 2 + 2, 3
            }
        }
    }
}

TEST_CASE("no sweeps, one cell, and numbers that are counted once") {
    const mpi::Communicator comm(MPI_COMM_WORLD);
    for (const Boundary boundary : boundaries) {
        Case c = case_on(comm);
        c.options.boundary = boundary;
        c.options.weights = star;
        c.options.steps = 0;
        const Bytes copied = expected(c).bytes;
        take(c, {.rows = 4, .columns = 6, .depth = 1, .states = 0});
        CHECK((swept(comm, c).bytes == copied));
        c.rows = c.columns = 1;
        c.options.steps = 3;
        const Bytes wanted = expected(c).bytes;
        take(c, {.rows = 1, .columns = 1, .depth = 2, .states = 1});
        CHECK((swept(comm, c).bytes == wanted));
    }
    Case c = case_on(comm);
    c.options.boundary = Boundary(Boundary::constant, std::nan(""));
    c.options.weights = star;
    c.options.steps = 2;
    const stencil::Outcome wanted = expected(c).outcome;
    take(c, {.rows = 4, .columns = 6, .depth = 1, .states = 1});
    const stencil::Outcome found = swept(comm, c).outcome;
    CHECK(found.result.non_finite == wanted.result.non_finite);
    CHECK(found.input_non_finite == 0);
}

TEST_CASE("down a strip rows are read once") {
    const mpi::Communicator comm(MPI_COMM_SELF);
    Case c = case_on(comm);
    const Scratch file(comm, ".tiles");
    io::Region from = test::region(file.path, c.rows, c.columns, 0);
    from.dtype = Dtype::float32;
    from.file_bytes = from.bytes();
    std::ofstream(from.path, std::ios::binary) << std::string(static_cast<std::size_t>(from.bytes()), '\1');
    c.options.weights = star;
    take(c, {.rows = 5, .columns = 43, .depth = 4, .states = 1});
    const Counters one = swept(comm, c, from).counted;
    CHECK(one.useful == 2 * from.bytes());
    CHECK(one.written == 2 * from.bytes());
    take(c, {.rows = 37, .columns = 22, .depth = 7, .states = 0});  // two strips: 7 columns of each are read twice
    CHECK(swept(comm, c, from).counted.useful == from.bytes() + 4 * 37 * 14);
}

TEST_CASE("every rank's tiles cover the plane once") {
    for (const bool in_turn : {false, true}) {
        for (const int ranks : {1, 2, 3, 7}) {
            const stencil::Tiling tiling(37, 43, 5, in_turn ? 43 : 9, ranks, in_turn, false);
            std::vector<int> seen(37 * 43);
            for (std::int64_t turn = 0; turn < tiling.turns(); ++turn) {
                for (int rank = 0; rank < ranks; ++rank) {
                    const grid::Block cells = tiling.tile(rank, turn, 3).cells;
                    for (std::int64_t at = 0; at < cells.size(); ++at) {
                        const std::int64_t row = cells.rows.begin + at / cells.columns.size(),
                                           column = cells.columns.begin + at % cells.columns.size();
                        ++seen[static_cast<std::size_t>(row * 43 + column)];
                    }
                }
            }
            CHECK(seen == std::vector<int>(37 * 43, 1));
        }
    }
}

TEST_CASE("what tiles cannot do is refused") {
    const mpi::Communicator comm(MPI_COMM_WORLD);
    const auto refused = [&](const auto& change) {
        Case c = case_on(comm);
        c.options.weights = star;
        take(c, {.rows = 5, .columns = 43, .depth = 4, .states = 1});
        change(c);
        CHECK_THROWS_AS(swept(comm, c), Error);
    };
    refused([](Case& c) { c.options.until_change = 1; });
    refused([](Case& c) { c.options.repeat = 2; });
    refused([](Case& c) { c.states = 0; });
    refused([](Case& c) { c.options.tile_columns = 0; });
    refused([](Case& c) { c.options.verify = Verify::serial; });
    refused([](Case& c) { c.to_dtype = Dtype::float64; });
}
