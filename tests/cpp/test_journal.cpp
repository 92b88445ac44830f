// Tests of what lets a job go on: what a journal holds after a death, states in two files in turn, and a queue that
// gives each piece to one rank.
#include <algorithm>
#include <array>
#include <bit>
#include <doctest/doctest.h>
#include <filesystem>
#include <fstream>
#include <numeric>
#include <sstream>
#include <utility>

#include "io_cases.hpp"
#include "tilewise/io/journal.hpp"
#include "tilewise/mpi/window.hpp"

using namespace tilewise;
using test::Scratch;

namespace {

constexpr std::int64_t rows = 37, columns = 23;

/// A part file, and a folder for its journal.
struct PartFile {
    Scratch file;
    Scratch folder;
    io::Region region;

    explicit PartFile(const mpi::Communicator& comm) : file(comm, "-part"), folder(comm, "-journal") {
        std::vector<std::int32_t> values(rows * columns);
        std::iota(values.begin(), values.end(), 0);
        file.fill(12, values);
        if (comm.rank() == 0) {
            std::filesystem::create_directory(folder.path);
        }
        comm.barrier();
        region.path = file.path;
        region.name = "C.npy";
        region.offset = 12;
        region.rows = rows;
        region.columns = columns;
        region.dtype = Dtype::int32;
    }
    ~PartFile() {
        folder.comm.barrier();
        if (folder.comm.rank() == 0) {
            std::filesystem::remove_all(folder.path);
        }
    }
    PartFile(const PartFile&) = delete;
    PartFile& operator=(const PartFile&) = delete;

    /// What the file holds there.
    std::vector<std::int32_t> values(const grid::Block& block) const {
        std::vector<std::int32_t> found;
        for (std::int64_t i = block.rows.begin; i < block.rows.end; ++i) {
            for (std::int64_t j = block.columns.begin; j < block.columns.end; ++j) {
                found.push_back(static_cast<std::int32_t>(i * columns + j));
            }
        }
        return found;
    }
};

/// All lines of all logs in the folder, read as the front reads them.
std::vector<io::Standing> standing(const std::string& folder) {
    std::vector<io::Standing> found;
    std::vector<std::filesystem::path> logs;
    for (const auto& entry : std::filesystem::directory_iterator(folder)) {
        logs.push_back(entry.path());
    }
    std::sort(logs.begin(), logs.end());
    for (const auto& log : logs) {
        std::ifstream file(log);
        io::Standing piece;
        std::string check;
        piece.start = std::stoi(log.filename());
        while (file >> piece.block.rows.begin >> piece.block.rows.end >> piece.block.columns.begin >>
               piece.block.columns.end >> std::hex >> piece.sum >> check >> std::dec) {
            found.push_back(piece);
        }
    }
    return found;
}

grid::Block tile(std::int64_t index) {
    return {{index % 4 * 10, std::min(rows, index % 4 * 10 + 10)},
            {index / 4 * 8, std::min(columns, index / 4 * 8 + 8)}};
}
constexpr std::int64_t tiles = 12;

}  // namespace

TEST_CASE("a journal holds the tiles that were written down, and no others") {
    const mpi::Communicator comm(MPI_COMM_WORLD);
    Ledger ledger;
    ledger.start(Phase::output, false, {});
    Context context{comm, ledger};
    const PartFile part(comm);
    {
        io::Journal journal(context, part.region, {part.folder.path, 0, false, {}});
        CHECK_FALSE(journal.stop_asked());
        for (std::int64_t index = comm.rank(); index < tiles - 2; index += comm.size()) {
            const auto values = part.values(tile(index));
            journal.wrote(tile(index), reinterpret_cast<const std::byte*>(values.data()));
        }
    }
    comm.barrier();
    auto found = standing(part.folder.path);
    comm.barrier();
    CHECK(std::ssize(found) == tiles - 2);
    const io::Journal journal(context, part.region, {part.folder.path, 1, true, found});
    for (std::int64_t index = 0; index < tiles; ++index) {
        CHECK(journal.holds(tile(index)) == (index < tiles - 2));
    }
    CHECK(journal.holds({{0, 20}, {0, 16}}));  // of several tiles
    CHECK(journal.holds({{0, 20}, {0, 17}}));
    CHECK_FALSE(journal.holds({{0, 21}, {0, 17}}));
    CHECK(journal.resumed().kept == tiles - 2);
    CHECK(journal.resumed().spoilt == 0);
}

TEST_CASE("what is not what was written, or is beyond the matrix, is not held") {
    const mpi::Communicator comm(MPI_COMM_WORLD);
    Ledger ledger;
    ledger.start(Phase::output, false, {});
    Context context{comm, ledger};
    const PartFile part(comm);
    {
        io::Journal journal(context, part.region, {part.folder.path, 0, false, {}});
        if (comm.rank() == 0) {
            for (std::int64_t index = 0; index < 4; ++index) {
                auto values = part.values(tile(index));
                values[5] += index == 1 ? 1 : 0;  // the file holds another number
                journal.wrote(tile(index), reinterpret_cast<const std::byte*>(values.data()));
            }
        }
    }
    comm.barrier();
    auto found = standing(part.folder.path);
    comm.barrier();
    found[2].sum ^= 1;
    found.push_back({0, {{30, rows + 1}, {0, 8}}, 0});
    found.push_back({0, {{-1, 3}, {0, 8}}, 0});
    const io::Journal journal(context, part.region, {part.folder.path, 1, false, found});
    CHECK(journal.holds(tile(0)));
    CHECK_FALSE(journal.holds(tile(1)));
    CHECK_FALSE(journal.holds(tile(2)));
    CHECK(journal.holds(tile(3)));
    CHECK(journal.resumed().spoilt == 4);
}

TEST_CASE("halves of a tile by two starts are no tile") {
    const mpi::Communicator comm(MPI_COMM_WORLD);
    Ledger ledger;
    ledger.start(Phase::output, false, {});
    Context context{comm, ledger};
    const PartFile part(comm);
    const grid::Block upper{{0, 5}, {0, 8}}, lower{{5, 10}, {0, 8}};
    for (const int start : {0, 1}) {
        io::Journal journal(context, part.region, {part.folder.path, start, false, {}});
        if (comm.rank() == 0) {
            const auto values = part.values(start == 0 ? upper : lower);
            journal.wrote(start == 0 ? upper : lower, reinterpret_cast<const std::byte*>(values.data()));
        }
        comm.barrier();
    }
    const auto found = standing(part.folder.path);
    comm.barrier();
    const io::Journal journal(context, part.region, {part.folder.path, 2, false, found});
    CHECK(journal.holds(upper));
    CHECK(journal.holds(lower));
    CHECK_FALSE(journal.holds({{0, 10}, {0, 8}}));
}

namespace {

/// Two files of the same size, and a folder.
struct Slots {
    PartFile even, odd;

    explicit Slots(const mpi::Communicator& comm) : even(comm), odd(comm) {}
    io::CheckpointOptions options(int start, std::vector<io::Saved> saved = {}) const {
        return {
            .folder = even.folder.path, .start = start, .slots = {even.region, odd.region}, .saved = std::move(saved)};
    }
};

/// Keeps a state of which every rank has every so many rows; the file of the slot, `part`, is left as it is.
void keep(const Context& context, io::Checkpoints& checkpoints, const PartFile& part, std::int64_t version) {
    for (std::int64_t row = context.comm.rank(); row < rows; row += context.comm.size()) {
        const grid::Block block{{row, row + 1}, {0, columns}};
        const auto values = part.values(block);
        checkpoints.wrote(version, block, reinterpret_cast<const std::byte*>(values.data()));
    }
    checkpoints.complete(context, version, {0.5, static_cast<double>(version)});
}

/// The last whole state of each slot in a log of rank 0 and those of others, as the front finds them.
std::vector<io::Saved> saved(const std::string& folder) {
    std::vector<io::Saved> found;
    std::vector<std::pair<std::array<std::int64_t, 2>, io::Standing>> pieces;
    for (const auto& entry : std::filesystem::directory_iterator(folder)) {
        std::ifstream file(entry.path());
        for (std::string line; std::getline(file, line);) {
            std::istringstream words(line);
            std::array<std::int64_t, 2> at{};
            std::string word;
            words >> at[0] >> at[1] >> word;
            if (word == "whole") {
                io::Saved& state = found.emplace_back(io::Saved{static_cast<int>(at[0]), at[1], {}, {}});
                for (std::uint64_t fact = 0; words >> std::hex >> fact && state.facts.size() < 2;) {
                    state.facts.push_back(std::bit_cast<double>(fact));
                }
                continue;
            }
            io::Standing piece;
            piece.block.rows.begin = std::stoll(word);
            words >> piece.block.rows.end >> piece.block.columns.begin >> piece.block.columns.end >> std::hex >>
                piece.sum;
            pieces.emplace_back(at, piece);
        }
    }
    for (io::Saved& state : found) {
        for (const auto& [at, piece] : pieces) {
            if (at[0] == state.slot && at[1] == state.version) {
                state.pieces.push_back(piece);
            }
        }
    }
    std::sort(found.begin(), found.end(), [](const auto& a, const auto& b) { return a.version > b.version; });
    return found;
}

}  // namespace

TEST_CASE("a job goes on from the newest state that is what was written") {
    const mpi::Communicator comm(MPI_COMM_WORLD);
    Ledger ledger;
    ledger.start(Phase::output, false, {});
    Context context{comm, ledger};
    const Slots slots(comm);
    {
        io::Checkpoints checkpoints(context, slots.options(0));
        CHECK(checkpoints.found() == nullptr);
        CHECK(checkpoints.next() == 0);
        keep(context, checkpoints, slots.even, 40);
        CHECK(checkpoints.next() == 1);
        keep(context, checkpoints, slots.odd, 50);
    }
    comm.barrier();
    auto states = saved(slots.even.folder.path);
    comm.barrier();
    REQUIRE(states.size() == 2);
    SUBCASE("both are") {
        const io::Checkpoints checkpoints(context, slots.options(1, states));
        REQUIRE(checkpoints.found() != nullptr);
        CHECK(checkpoints.found()->version == 50);
        CHECK(checkpoints.found()->facts == std::vector<double>{0.5, 50});
        CHECK(checkpoints.next() == 0);  // the other stays until a newer one is whole
        CHECK(checkpoints.restored().spoilt == 0);
    }
    SUBCASE("the newer has another number") {
        states[0].pieces.front().sum ^= 1;
        const io::Checkpoints checkpoints(context, slots.options(1, states));
        REQUIRE(checkpoints.found() != nullptr);
        CHECK(checkpoints.found()->version == 40);
        CHECK(checkpoints.next() == 1);
        CHECK(checkpoints.restored().spoilt == 1);
    }
    SUBCASE("of both a piece is missing") {
        states[0].pieces.pop_back();
        states[1].pieces.pop_back();
        const io::Checkpoints checkpoints(context, slots.options(1, states));
        CHECK(checkpoints.found() == nullptr);
        CHECK_FALSE(checkpoints.restored().version);
        CHECK(checkpoints.restored().spoilt == 2);
    }
    SUBCASE("one is in a file that there is not") {
        states[0].slot = 2;
        const io::Checkpoints checkpoints(context, slots.options(1, states));
        CHECK(checkpoints.found()->version == 40);
    }
}

TEST_CASE("all ranks hear at once that it is time for a state, or to end") {
    const mpi::Communicator comm(MPI_COMM_WORLD);
    Ledger ledger;
    ledger.start(Phase::output, false, {});
    Context context{comm, ledger};
    const Slots slots(comm);
    using Wish = io::Checkpoints::Wish;
    const auto heard = [&](io::Checkpoints& checkpoints, Wish wish) {
        std::int64_t calls = 0;
        while (checkpoints.wish(context) != wish) {
            ++calls;
        }
        std::array<std::int64_t, 2> bounds{calls, -calls};
        mpi::check(MPI_Allreduce(MPI_IN_PLACE, bounds.data(), 2, MPI_INT64_T, MPI_MAX, comm.get()), "MPI_Allreduce");
        return bounds[0] == -bounds[1];
    };
    io::CheckpointOptions options = slots.options(0);
    options.every = 0.01;
    io::Checkpoints often(context, options);
    CHECK(heard(often, Wish::save));
    keep(context, often, slots.even, 1);
    CHECK(heard(often, Wish::save));
    io::Checkpoints never(context, slots.options(1));
    CHECK(never.wish(context) == Wish::none);
    if (comm.rank() == 0) {
        std::ofstream(slots.even.folder.path + "/stop").close();
    }
    CHECK(heard(never, Wish::save_and_stop));
}

TEST_CASE("a queue gives each piece to one rank") {
    const mpi::Communicator comm(MPI_COMM_WORLD);
    constexpr std::int64_t count = 200;
    std::vector<int> mine(count), all(count);
    {
        mpi::Queue queue(comm);
        for (std::int64_t index = queue.next(); index < count; index = queue.next()) {
            mine[static_cast<std::size_t>(index)] += 1;
        }
        CHECK(queue.next() > count);
    }
    mpi::check(MPI_Allreduce(mine.data(), all.data(), count, MPI_INT, MPI_SUM, comm.get()), "MPI_Allreduce");
    CHECK(std::count(all.begin(), all.end(), 1) == count);
}
