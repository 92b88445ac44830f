// Tests of grid: partitions cover, layouts cover, and every step of every schedule multiplies what its owner really
// has.
#include <algorithm>
#include <doctest/doctest.h>
#include <set>
#include <utility>
#include <vector>

#include "tilewise/grid/layout.hpp"
#include "tilewise/grid/ring.hpp"

using namespace tilewise::grid;

namespace {

/// Counts how often each element of a rows × columns matrix is in one of the blocks.
template <class BlockOf> std::vector<int> covered(std::int64_t rows, std::int64_t columns, int ranks,
                                                  BlockOf block_of) {
    std::vector<int> seen(static_cast<std::size_t>(rows * columns));
    for (int rank = 0; rank < ranks; ++rank) {
        const Block block = block_of(rank);
        for (std::int64_t i = block.rows.begin; i < block.rows.end; ++i) {
            for (std::int64_t j = block.columns.begin; j < block.columns.end; ++j) {
                ++seen[static_cast<std::size_t>(i * columns + j)];
            }
        }
    }
    return seen;
}

void check_layout(const Layout& layout, Remainder remainder) {
    const Shape s = layout.shape();
    const auto once = [](std::int64_t size) { return std::vector<int>(static_cast<std::size_t>(size), 1); };
    const int idle = layout.grid().size() + 1, ranks = layout.size() + idle;  // more than one layer of them
    CHECK(covered(s.m, s.k, ranks, [&](int rank) { return layout.a(rank); }) == once(s.m * s.k));
    CHECK(covered(s.k, s.n, ranks, [&](int rank) { return layout.b(rank); }) == once(s.k * s.n));
    CHECK(covered(s.m, s.n, ranks, [&](int rank) { return layout.c_owned(rank); }) == once(s.m * s.n));

    for (int rank = 0; rank < layout.size(); ++rank) {
        const int first = layout.layer(rank) * layout.grid().size();
        std::vector<int> k_seen(static_cast<std::size_t>(s.k));
        for (const tilewise::grid::Step& step : layout.steps(rank)) {
            const Block a = layout.a(first + step.a_owner), b = layout.b(first + step.b_owner);
            CHECK(a.rows == layout.c(rank).rows);
            CHECK(b.columns == layout.c(rank).columns);
            CHECK(a.columns.begin + step.a_local.begin == step.k.begin);
            CHECK(a.columns.begin + step.a_local.end == step.k.end);
            CHECK(b.rows.begin + step.b_local.begin == step.k.begin);
            CHECK(step.b_local.size() == step.k.size());
            CHECK(step.b_local.end <= b.rows.size());
            CHECK(step.a_local.end <= a.columns.size());
            for (std::int64_t k = step.k.begin; k < step.k.end; ++k) {
                ++k_seen[static_cast<std::size_t>(k)];
            }
        }
        // All layers together see every k once; within a layer each rank sees the layer's share.
        std::int64_t sum = 0;
        for (const int count : k_seen) {
            CHECK(count <= 1);
            sum += count;
        }
        CHECK(sum == Partition(s.k, layout.copies(), remainder)[layout.layer(rank)].size());
    }
    for (int rank = layout.size(); rank < ranks; ++rank) {
        CHECK(layout.layer(rank) >= layout.copies());
        CHECK(layout.a(rank).size() + layout.b(rank).size() + layout.c(rank).size() == 0);
        CHECK(layout.steps(rank).empty());
    }
}

}  // namespace

TEST_CASE("parts cover the range in order, and part_of finds them") {
    for (const Remainder remainder : {Remainder::spread, Remainder::last}) {
        for (std::int64_t count : {0, 1, 2, 5, 7, 12, 100}) {
            for (int parts : {1, 2, 3, 7, 13}) {
                const Partition partition(count, parts, remainder);
                std::int64_t end = 0, largest = 0;
                for (int part = 0; part < parts; ++part) {
                    CHECK(partition[part].begin == end);
                    end = partition[part].end;
                    largest = std::max(largest, partition[part].size());
                    for (std::int64_t i = partition[part].begin; i < end; ++i) {
                        CHECK(partition.part_of(i) == part);
                    }
                }
                CHECK(end == count);
                CHECK(largest == partition.largest());
            }
        }
    }
}

TEST_CASE("spread parts differ by at most one; last takes what is left") {
    CHECK(Partition(11, 4)[0].size() == 3);
    CHECK(Partition(11, 4)[3].size() == 2);
    CHECK(Partition(11, 4, Remainder::last)[0].size() == 2);
    CHECK(Partition(11, 4, Remainder::last)[3].size() == 5);
}

TEST_CASE("beyond 31 bits") {
    const Partition partition((std::int64_t{1} << 40) + 1, 3);
    CHECK(partition[2].end == (std::int64_t{1} << 40) + 1);
    CHECK(partition.part_of(std::int64_t{1} << 40) == 2);
}

TEST_CASE("every layout covers A, B and C once, and its steps fit the owners' blocks") {
    for (const Remainder remainder : {Remainder::spread, Remainder::last}) {
        for (const Shape shape : {Shape{7, 5, 11}, Shape{1, 9, 4}, Shape{12, 12, 12}, Shape{3, 2, 1}, Shape{2, 3, 2}}) {
            for (int q = 1; q <= 4; ++q) {
                check_layout(Layout(shape, {q, q}, 1, cannon, remainder), remainder);
            }
            for (const Grid grid : {Grid{1, 1}, Grid{1, 2}, Grid{3, 1}, Grid{2, 3}, Grid{3, 4}}) {
                for (int copies : {1, 2, 3}) {
                    check_layout(Layout(shape, grid, copies, summa, remainder, 3), remainder);
                }
            }
        }
    }
}

TEST_CASE("Cannon's volume is 2(q-1) blocks; SUMMA's is the row and column less what is owned") {
    const Layout torus({12, 12, 12}, {3, 3}, 1, cannon);
    CHECK(received_elements(torus.steps(4), 4, 4, 4) == 2 * 2 * 4 * 4);
    const Layout panels({12, 12, 12}, {2, 3}, 1, summa, Remainder::spread, 5);
    CHECK(received_elements(panels.steps(0), 0, 6, 4) == 6 * (12 - 4) + 4 * (12 - 6));
}

TEST_CASE("within a step no two ranks of a row use the same block of A in Cannon's algorithm") {
    const int q = 4;
    const Layout layout({8, 8, 8}, {q, q}, 1, cannon);
    for (int row = 0; row < q; ++row) {
        for (std::size_t step = 0; step < 4; ++step) {
            std::vector<int> used(static_cast<std::size_t>(q * q));
            for (int column = 0; column < q; ++column) {
                ++used[static_cast<std::size_t>(layout.steps(row * q + column)[step].a_owner)];
            }
            CHECK(*std::max_element(used.begin(), used.end()) == 1);
        }
    }
}

TEST_CASE("in a sweep of the ring every block meets every other one once, moves to neighbours only, and comes home") {
    for (const int blocks : {2, 4, 6, 10, 24}) {
        for (const int ranks : {1, 2, 3, 5}) {
            const Ring ring(blocks, ranks);
            std::set<std::pair<int, int>> met;
            for (int step = 0; step < ring.steps(); ++step) {
                for (int position = 0; position < ring.positions(); ++position) {
                    const int top = ring.block_at({position, Side::top}, step);
                    const int bottom = ring.block_at({position, Side::bottom}, step);
                    CHECK(met.emplace(std::min(top, bottom), std::max(top, bottom)).second);
                    for (const Side side : {Side::top, Side::bottom}) {
                        const Seat here{position, side}, to = ring.next(here);
                        CHECK(ring.block_at(to, step + 1) == ring.block_at(here, step));
                        CHECK(ring.before(to) == here);
                        CHECK(std::abs(ring.rank_of(to.position) - ring.rank_of(position)) <= 1);
                    }
                }
            }
            CHECK(met.size() == static_cast<std::size_t>(blocks * (blocks - 1) / 2));
            for (int position = 0; position < ring.positions(); ++position) {
                CHECK(ring.block_at({position, Side::top}, ring.steps()) == 2 * position);
                CHECK(ring.block_at({position, Side::bottom}, ring.steps()) == 2 * position + 1);
            }
        }
    }
}
