// Every way to deal out a matrix, as shares that any rank can work out for any other.
#include <algorithm>
#include <map>
#include <numeric>

#include "tilewise/base/error.hpp"
#include "tilewise/base/random.hpp"
#include "tilewise/library/matrix_state.hpp"

namespace tilewise::library {

void require_cover(std::int64_t rows, std::int64_t columns, const std::vector<grid::Block>& blocks,
                   const std::string& name) {
    struct Event {
        std::int64_t row;
        bool begins;  // at the same row what ends goes first
        grid::Range columns;
    };
    std::vector<Event> events;
    std::int64_t area = 0;
    for (const grid::Block& block : blocks) {
        const auto [down, across] = block;
        if (down.begin < 0 || down.size() < 0 || down.end > rows || across.begin < 0 || across.size() < 0 ||
            across.end > columns) {
            throw UsageError(name + ": a block with rows " + std::to_string(down.begin) + " to " +
                             std::to_string(down.end) + " and columns " + std::to_string(across.begin) + " to " +
                             std::to_string(across.end) + " is outside the matrix of " + std::to_string(rows) + "x" +
                             std::to_string(columns));
        }
        if (block.size() > 0) {
            area += block.size();
            events.push_back({down.begin, true, across});
            events.push_back({down.end, false, across});
        }
    }
    std::sort(events.begin(), events.end(), [](const Event& a, const Event& b) {
        return std::tuple(a.row, a.begins, a.columns.begin) < std::tuple(b.row, b.begins, b.columns.begin);
    });
    std::map<std::int64_t, std::int64_t> covered;  // columns of the row that the sweep has come to: begin and end
    for (const Event& event : events) {
        if (!event.begins) {
            covered.erase(event.columns.begin);
            continue;
        }
        const auto next = covered.lower_bound(event.columns.begin);
        const bool free = (next == covered.end() || next->first >= event.columns.end) &&
                          (next == covered.begin() || std::prev(next)->second <= event.columns.begin);
        if (!free) {
            throw UsageError(name + ": blocks overlap in row " + std::to_string(event.row));
        }
        covered.emplace(event.columns.begin, event.columns.end);
    }
    if (area != rows * columns) {
        throw UsageError(name + ": its blocks hold " + std::to_string(area) + " numbers, but " + std::to_string(rows) +
                         "x" + std::to_string(columns) + " are " + std::to_string(rows * columns));
    }
}

}  // namespace tilewise::library

namespace tilewise::inline api {
namespace {

std::uint64_t fingerprint_of(std::initializer_list<std::int64_t> numbers, std::uint64_t sum = 0) {
    return std::accumulate(numbers.begin(), numbers.end(), sum, [](std::uint64_t so_far, std::int64_t number) {
        return mix(so_far ^ mix(static_cast<std::uint64_t>(number)));
    });
}

void require(bool holds, const std::string& what) {
    if (!holds) {
        throw UsageError("a distribution needs " + what);
    }
}

std::shared_ptr<Distribution::Cut> cut_of(std::int64_t rows, std::int64_t columns, int ranks, std::uint64_t sum) {
    require(rows >= 0 && columns >= 0, "numbers of rows and columns that are not negative");
    require(ranks >= 1, "at least one rank");
    auto cut = std::make_shared<Distribution::Cut>();
    *cut = {rows, columns, ranks, {}, fingerprint_of({rows, columns, ranks}, sum)};
    return cut;
}

grid::Place place_in(const ProcessGrid& grid, int rank) {
    return grid.order == Order::row_major ? grid::Place{rank / grid.columns, rank % grid.columns}
                                          : grid::Place{rank % grid.rows, rank / grid.rows};
}

std::uint64_t sum_of(std::int64_t kind, const ProcessGrid& grid) {
    require(grid.rows >= 1 && grid.columns >= 1, "a grid of at least one rank");
    return fingerprint_of({kind, grid.rows, grid.columns, static_cast<std::int64_t>(grid.order)});
}

}  // namespace

Distribution Distribution::by_rows(std::int64_t rows, std::int64_t columns, int ranks) {
    return by_blocks(rows, columns, {ranks, 1});
}

Distribution Distribution::by_columns(std::int64_t rows, std::int64_t columns, int ranks) {
    return by_blocks(rows, columns, {1, ranks});
}

Distribution Distribution::by_blocks(std::int64_t rows, std::int64_t columns, const ProcessGrid& grid) {
    auto cut = cut_of(rows, columns, grid.rows * grid.columns, sum_of(1, grid));
    cut->shares_of = [=](int rank) -> std::vector<grid::Share> {
        const grid::Place place = place_in(grid, rank);
        return {grid::Block{grid::Partition(rows, grid.rows)[place.row],
                            grid::Partition(columns, grid.columns)[place.column]}};
    };
    return Distribution(std::move(cut));
}

Distribution Distribution::block_cyclic(std::int64_t rows, std::int64_t columns, const BlockCyclic& blocks) {
    const auto [grid, down, across, first_row, first_column] = blocks;
    const std::uint64_t sum = fingerprint_of({down, across, first_row, first_column}, sum_of(2, grid));
    auto cut = cut_of(rows, columns, grid.rows * grid.columns, sum);
    require(down >= 1 && across >= 1, "blocks of at least one number");
    require(first_row >= 0 && first_row < grid.rows && first_column >= 0 && first_column < grid.columns,
            "a first block that lies on its grid");
    cut->shares_of = [=](int rank) -> std::vector<grid::Share> {
        const grid::Place place = place_in(blocks.grid, rank);
        const auto turn = [](int at, int first, int turns) { return (at - first + turns) % turns; };
        return {
            {grid::dealt_ranges(rows, blocks.row_block, turn(place.row, blocks.row_source, blocks.grid.rows),
                                blocks.grid.rows),
             grid::dealt_ranges(columns, blocks.column_block,
                                turn(place.column, blocks.column_source, blocks.grid.columns), blocks.grid.columns)}};
    };
    return Distribution(std::move(cut));
}

Distribution Distribution::scalapack(const int* descriptor, const ProcessGrid& grid) {
    require(descriptor[0] == 1, "a dense descriptor, whose first number is 1");
    return block_cyclic(descriptor[2], descriptor[3],
                        {grid, descriptor[4], descriptor[5], descriptor[6], descriptor[7]});
}

Distribution Distribution::on_rank(std::int64_t rows, std::int64_t columns, int ranks, int rank) {
    return of_blocks(rows, columns, ranks, {{rank, 0, rows, 0, columns}});
}

Distribution Distribution::of_blocks(std::int64_t rows, std::int64_t columns, int ranks,
                                     std::vector<OwnedBlock> blocks) {
    std::uint64_t sum = fingerprint_of({3});
    std::vector<grid::Block> all;
    for (const auto& [rank, top, bottom, left, right] : blocks) {
        require(rank >= 0 && rank < ranks, "blocks on existing ranks");
        sum = fingerprint_of({rank, top, bottom, left, right}, sum);
        all.push_back({{top, bottom}, {left, right}});
    }
    auto cut = cut_of(rows, columns, ranks, sum);
    library::require_cover(rows, columns, all, "a distribution");
    const auto by_rank = std::make_shared<std::vector<std::vector<grid::Share>>>(static_cast<std::size_t>(ranks));
    for (std::size_t index = 0; index < blocks.size(); ++index) {
        (*by_rank)[static_cast<std::size_t>(blocks[index].rank)].emplace_back(all[index]);
    }
    cut->shares_of = [by_rank](int rank) { return (*by_rank)[static_cast<std::size_t>(rank)]; };
    return Distribution(std::move(cut));
}

std::int64_t Distribution::rows() const { return cut_->rows; }
std::int64_t Distribution::columns() const { return cut_->columns; }
int Distribution::ranks() const { return cut_->ranks; }
std::int64_t Distribution::pieces(int rank) const { return std::ssize(cut_->shares_of(rank)); }
std::int64_t Distribution::local_rows(int rank, std::int64_t piece) const {
    return cut_->shares_of(rank).at(static_cast<std::size_t>(piece)).height();
}
std::int64_t Distribution::local_columns(int rank, std::int64_t piece) const {
    return cut_->shares_of(rank).at(static_cast<std::size_t>(piece)).width();
}

}  // namespace tilewise::inline api
