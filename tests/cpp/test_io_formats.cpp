// Tests of texts and tiles: every way to cut a matrix, written and read by any ranks, against what the C++ library
// reads and writes.
#include <array>
#include <cmath>
#include <complex>
#include <cstring>
#include <doctest/doctest.h>
#include <sstream>

#include "io_cases.hpp"
#include "tilewise/base/error.hpp"

using namespace tilewise;
using namespace tilewise::test;

namespace {

double number(std::int64_t i, std::int64_t j) { return static_cast<double>(i * 1000 + j) / 7.0 - 3; }

std::vector<double> numbers_of(const grid::Share& share) {
    std::vector<double> all;
    for_elements(share, [&](std::int64_t i, std::int64_t j) { all.push_back(number(i, j)); });
    return all;
}

io::Region text_region(const std::string& path, std::int64_t rows, std::int64_t columns, char separator) {
    io::Region r;
    r.path = r.name = path;
    r.rows = rows;
    r.columns = columns;
    r.text = io::TextLines{separator, columns, false};
    return r;
}

void put(const Scratch& scratch, const std::string& content) {
    if (scratch.comm.rank() == 0) {
        std::ofstream(scratch.path, std::ios::binary) << content;
    }
    scratch.comm.barrier();
}

std::string content_of(const Scratch& scratch) {
    scratch.comm.barrier();
    std::ifstream in(scratch.path, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
}

}  // namespace

TEST_CASE("a text is written in whole lines by any ranks, and read in any cut") {
    const mpi::Communicator comm(MPI_COMM_WORLD);
    // The last one has more numbers than one stage, and lines that cross the pieces of the index.
    for (const auto& [rows, columns] :
         std::vector<std::array<std::int64_t, 2>>{{13, 7}, {1, 40}, {40, 1}, {2500, 61}}) {
        for (const auto strategy :
             {io::StrategyKind::two_phase, io::StrategyKind::root, io::StrategyKind::root_collective}) {
            for (const Distribution distribution : distributions) {
                CAPTURE(rows);
                CAPTURE(strategy);
                Ledger ledger;
                ledger.start(Phase::input);
                Context context{comm, ledger, 2};
                const Scratch scratch(comm, ".csv");
                put(scratch, "");
                io::Region r = text_region(scratch.path, rows, columns, ',');
                const auto share_of = [&, distribution](int rank) {
                    return distribution(rank, comm.size(), rows, columns);
                };
                std::vector<double> share = numbers_of(share_of(comm.rank()));

                io::Output output(context, r, strategy, {}, true);
                output.store(context, share_of, reinterpret_cast<std::byte*>(share.data()));
                output.finish(context, false);
                CHECK(output.holds_what_was_written(context));

                std::istringstream lines(content_of(scratch));
                std::string line;
                bool same = true;
                std::int64_t i = 0;
                for (; std::getline(lines, line); ++i) {
                    std::istringstream fields(line);
                    std::string field;
                    std::int64_t j = 0;
                    for (; std::getline(fields, field, ','); ++j) {
                        same = same && std::stod(field) == number(i, j);
                    }
                    same = same && j == columns;
                }
                CHECK(same);
                CHECK(i == rows);

                r.file_bytes = static_cast<std::int64_t>(content_of(scratch).size());
                std::vector<double> read(share.size(), -1);
                io::Input(context, r, strategy, {})
                    .load(context, Dtype::float64, share_of, reinterpret_cast<std::byte*>(read.data()));
                CHECK(read == share);
            }
        }
    }
}

TEST_CASE("a text in parts: bands follow each other, and any band can be read") {
    const mpi::Communicator comm(MPI_COMM_WORLD);
    Ledger ledger;
    ledger.start(Phase::input);
    Context context{comm, ledger, 1};
    const Scratch scratch(comm, ".txt");
    put(scratch, "# first\n\n");
    io::Region r = text_region(scratch.path, 20, 3, ' ');
    r.offset = 9;
    const auto band = [&](std::int64_t begin, std::int64_t end) {
        return [=, &comm](int rank) {
            const grid::Range mine = grid::Partition(end - begin, comm.size())[rank];
            return grid::Share(grid::Block{{begin + mine.begin, begin + mine.end}, {0, 3}});
        };
    };
    io::Output output(context, r, io::StrategyKind::two_phase, {}, false);
    for (const auto& [begin, end] : std::vector<std::array<std::int64_t, 2>>{{0, 11}, {11, 12}, {12, 20}}) {
        std::vector<double> share = numbers_of(band(begin, end)(comm.rank()));
        output.store(context, band(begin, end), reinterpret_cast<std::byte*>(share.data()));
    }
    output.finish(context, false);
    r.file_bytes = static_cast<std::int64_t>(content_of(scratch).size());
    const io::Input input(context, r, io::StrategyKind::two_phase, {});
    for (const auto& [begin, end] : std::vector<std::array<std::int64_t, 2>>{{12, 20}, {0, 1}, {3, 17}}) {
        const std::vector<double> share = numbers_of(band(begin, end)(comm.rank()));
        std::vector<double> read(share.size());
        input.load(context, Dtype::float64, band(begin, end), reinterpret_cast<std::byte*>(read.data()));
        CHECK(read == share);
    }
}

TEST_CASE("complex numbers as pairs, stored by columns") {
    const mpi::Communicator comm(MPI_COMM_WORLD);
    Ledger ledger;
    ledger.start(Phase::input);
    Context context{comm, ledger, 1};
    const Scratch scratch(comm, ".mtx");
    const std::string content = "1 2\n% between\n3 -4\n0 1\n5e0 6\n7 8\n9 10";
    put(scratch, content);
    io::Region r = text_region(scratch.path, 3, 2, ' ');
    r.dtype = Dtype::complex128;
    r.column_major = true;
    r.text = io::TextLines{' ', 2, true};
    r.file_bytes = static_cast<std::int64_t>(content.size());
    std::vector<std::complex<double>> data(6);
    io::Input(context, r, io::StrategyKind::two_phase, {})
        .load(context, Dtype::complex128, whole(3, 2), reinterpret_cast<std::byte*>(data.data()));
    CHECK(data == std::vector<std::complex<double>>{{1, 2}, {3, -4}, {0, 1}, {5, 6}, {7, 8}, {9, 10}});
}

TEST_CASE("what a text lost is the same on any ranks, however often it was read") {
    const mpi::Communicator comm(MPI_COMM_WORLD);
    Ledger ledger;
    ledger.start(Phase::input);
    Context context{comm, ledger, 2};
    const Scratch scratch(comm, ".csv");
    // Four pieces and more: losses on every 1000th line, the first of each kind known.
    std::string content = "names;are;above\n";
    for (int line = 2; line <= 60001; ++line) {
        content += line % 1000 == 7 ? "\t;9007199254740993;1e400\n" : line == 2 ? "NA;1,5;\n" : "0,25;-1e3;1234567\n";
    }
    put(scratch, content);
    io::Region r = text_region(scratch.path, 60000, 3, ';');
    r.offset = 16;
    r.file_bytes = static_cast<std::int64_t>(content.size());
    r.text->decimal = ',';
    r.text->missing = {"NA"};
    const auto any_cut = [&](int rank) { return distributions.back()(rank, comm.size(), 60000, 3); };
    std::vector<double> share(static_cast<std::size_t>(any_cut(comm.rank()).size()));
    for (const auto strategy : {io::StrategyKind::two_phase, io::StrategyKind::root}) {
        io::Input(context, r, strategy, {})
            .load(context, Dtype::float64, any_cut, reinterpret_cast<std::byte*>(share.data()));
    }
    std::vector<double> expected;
    for_elements(any_cut(comm.rank()), [&](std::int64_t i, std::int64_t j) {
        const bool lost = (i + 2) % 1000 == 7;
        expected.push_back(j == 0   ? (lost || i == 0 ? NAN : 0.25)
                           : j == 1 ? (lost     ? 9007199254740992.0
                                       : i == 0 ? 1.5
                                                : -1e3)
                                    : (lost     ? INFINITY
                                       : i == 0 ? NAN
                                                : 1234567));
    });
    CHECK(std::equal(share.begin(), share.end(), expected.begin(), expected.end(),
                     [](double a, double b) { return a == b || (std::isnan(a) && std::isnan(b)); }));
    int met = ledger.met_loss() ? 1 : 0, any = 0;
    mpi::check(MPI_Allreduce(&met, &any, 1, MPI_INT, MPI_MAX, comm.get()), "MPI_Allreduce");
    CHECK(any == 1);
    const io::TextLosses losses = io::count_losses(context, r);
    CHECK(std::array{losses.rounded.count, losses.rounded.line, losses.rounded.column} ==
          std::array<std::int64_t, 3>{60, 7, 2});
    CHECK(std::array{losses.overflow.count, losses.overflow.line, losses.overflow.column} ==
          std::array<std::int64_t, 3>{60, 7, 3});
}

TEST_CASE("too many lines are found by counting, on every rank, before anything is parsed") {
    const mpi::Communicator comm(MPI_COMM_WORLD);
    Ledger ledger;
    ledger.start(Phase::input);
    Context context{comm, ledger, 1};
    const Scratch scratch(comm, ".txt");
    put(scratch, "1 2\n3 4\n5 6\n");
    io::Region r = text_region(scratch.path, 2, 2, ' ');
    r.file_bytes = 12;
    CHECK_THROWS_WITH_AS(io::Input(context, r, io::StrategyKind::two_phase, {}),
                         doctest::Contains("has 3 lines of numbers where 2 were expected"), Error);
}

TEST_CASE("tiles are written and read by any ranks in any cut") {
    const mpi::Communicator comm(MPI_COMM_WORLD);
    const std::int64_t rows = 17, columns = 11;
    for (const Distribution distribution : distributions) {
        Ledger ledger;
        ledger.start(Phase::input);
        Context context{comm, ledger, 2};
        const std::vector<grid::Block> blocks{
            {{0, 9}, {0, 4}}, {{0, 5}, {4, 11}}, {{5, 17}, {4, 11}}, {{9, 17}, {0, 4}}};
        std::vector<std::unique_ptr<Scratch>> files;
        io::Region r;
        r.path = r.name = "A.tiles";
        r.rows = rows;
        r.columns = columns;
        for (std::size_t i = 0; i < blocks.size(); ++i) {
            files.push_back(std::make_unique<Scratch>(comm, std::string(1, static_cast<char>('a' + i))));
            put(*files.back(), std::string(static_cast<std::size_t>(5 + blocks[i].size() * 8), 'x'));
            r.tiles.push_back({files.back()->path, 5, blocks[i]});
        }
        const auto share_of = [&, distribution](int rank) { return distribution(rank, comm.size(), rows, columns); };
        std::vector<double> share = numbers_of(share_of(comm.rank()));

        io::Output output(context, r, io::StrategyKind::positioned, {}, true);
        output.store(context, share_of, reinterpret_cast<std::byte*>(share.data()));
        output.finish(context, false);
        CHECK(output.holds_what_was_written(context));
        for (std::size_t i = 0; i < blocks.size(); ++i) {
            const std::string bytes = content_of(*files[i]);
            const std::vector<double> expected = numbers_of(blocks[i]);
            CHECK(bytes.substr(0, 5) == "xxxxx");
            CHECK(bytes.substr(5) == std::string(reinterpret_cast<const char*>(expected.data()), expected.size() * 8));
        }
        std::vector<double> read(share.size());
        io::Input(context, r, io::StrategyKind::collective, {})
            .load(context, Dtype::float64, share_of, reinterpret_cast<std::byte*>(read.data()));
        CHECK(read == share);
        if (comm.rank() == 0) {  // a byte that nobody wrote
            std::fstream file(files[1]->path, std::ios::in | std::ios::out | std::ios::binary);
            file.seekp(9);
            file.put('?');
        }
        comm.barrier();
        CHECK_FALSE(output.holds_what_was_written(context));
    }
}

TEST_CASE("tiles with gaps and tiles without a file are read by any ranks") {
    const mpi::Communicator comm(MPI_COMM_WORLD);
    const std::int64_t rows = 17, columns = 11;
    const double missing = -7;
    // Numbers from a row to the next, and from one of a row to the next: padded, gaps that are read, and skipped.
    constexpr std::array<std::array<std::int64_t, 2>, 4> strides{{{16, 1}, {40, 3}, {3000, 1}, {30000, 2000}}};
    for (const auto& [line, step] : strides) {
        io::Region r;
        r.path = r.name = "A.zarr";
        r.rows = rows;
        r.columns = columns;
        r.fill = std::string(reinterpret_cast<const char*>(&missing), sizeof missing);
        std::vector<std::unique_ptr<Scratch>> files;
        for (const grid::Block& block : {grid::Block{{0, 9}, {0, 4}}, {{0, 9}, {4, 11}}, {{9, 17}, {4, 11}}}) {
            files.push_back(std::make_unique<Scratch>(comm, "g" + std::to_string(files.size())));
            const io::Tile tile{.path = files.back()->path, .offset = 24, .block = block, .line = line, .step = step};
            std::string bytes(static_cast<std::size_t>(24 + tile.extent() * 8), 'x');
            for_elements(block, [&](std::int64_t i, std::int64_t j) {
                const double value = number(i, j);
                std::memcpy(bytes.data() + 24 + tile.place(i, j) * 8, &value, 8);
            });
            put(*files.back(), bytes);
            r.tiles.push_back(tile);
        }
        r.tiles.push_back({.path = "", .block = {{9, 17}, {0, 4}}});
        for (const Distribution distribution : distributions) {
            Ledger ledger;
            ledger.start(Phase::input);
            Context context{comm, ledger, 3};
            const auto share_of = [&, distribution](int rank) {
                return distribution(rank, comm.size(), rows, columns);
            };
            std::vector<double> expected;
            for_elements(share_of(comm.rank()), [&](std::int64_t i, std::int64_t j) {
                expected.push_back(i >= 9 && j < 4 ? missing : number(i, j));
            });
            std::vector<double> read(expected.size());
            io::Input(context, r, io::StrategyKind::per_rank, {})
                .load(context, Dtype::float64, share_of, reinterpret_cast<std::byte*>(read.data()));
            CHECK(read == expected);
        }
    }
}

TEST_CASE("what lies behind the rows of a tile is written as zeros") {
    const mpi::Communicator comm(MPI_COMM_WORLD);
    Ledger ledger;
    ledger.start(Phase::input);
    Context context{comm, ledger, 2};
    const grid::Block whole{{0, 5}, {0, 7}}, right{{0, 5}, {4, 7}};
    constexpr std::int64_t bytes = std::int64_t{6} * 4 * 8, written = std::int64_t{19} * 8;
    const Scratch full(comm, "full"), padded(comm, "padded");
    put(full, std::string(bytes, 'x'));
    put(padded, std::string(bytes, 'x'));
    io::Region r;
    r.path = r.name = "A.zarr";
    r.rows = 5;
    r.columns = 7;
    r.file_bytes = bytes;
    r.tiles.push_back({.path = full.path, .block = {{0, 5}, {0, 4}}, .line = 4});
    r.tiles.push_back({.path = padded.path, .block = right, .line = 4});
    const auto share_of = [&](int rank) -> grid::Share { return rank == 0 ? whole : grid::Block{}; };
    std::vector<double> share = numbers_of(share_of(comm.rank()));
    {
        io::Output output(context, r, io::StrategyKind::per_rank, {}, true);
        output.store(context, share_of, reinterpret_cast<std::byte*>(share.data()));
        output.finish(context, false);
        CHECK(output.holds_what_was_written(context));
    }
    std::vector<double> expected(written / 8);
    for_elements(right, [&](std::int64_t i, std::int64_t j) {
        expected[static_cast<std::size_t>(i * 4 + j - 4)] = number(i, j);
    });
    CHECK(content_of(padded).substr(0, written) ==
          std::string(reinterpret_cast<const char*>(expected.data()), written));
    r.file_bytes = bytes + 1;
    CHECK_THROWS_WITH_AS(io::Input(context, r, io::StrategyKind::per_rank, {}),
                         doctest::Contains("has 192 bytes where 193 were expected"), Error);
}
