// Tests of I/O: every strategy over several ways to cut a matrix, against a file written with the C library.
#include <array>
#include <cstdio>
#include <doctest/doctest.h>
#include <fcntl.h>
#include <fstream>
#include <sys/stat.h>
#include <unistd.h>
#include <vector>

#include "io_cases.hpp"
#include "tilewise/base/error.hpp"

using namespace tilewise;
using namespace tilewise::test;

namespace {

bool has_direct_access() {
    const int descriptor = open("/tmp", O_RDWR | O_TMPFILE | O_DIRECT, 0600);
    close(descriptor);
    return descriptor >= 0;
}

}  // namespace

TEST_CASE("every strategy reads and writes every cut, at an odd offset") {
    const mpi::Communicator comm(MPI_COMM_WORLD);
    for (const auto& [rows, columns] :
         std::vector<std::array<std::int64_t, 2>>{{13, 7}, {1, 40}, {40, 1}, {2, 2}, {0, 5}, {97, 61}, {1, 2200000}}) {
        // So small that even these matrices take several stages; ROMIO has the same words for its own.
        const io::Hints small_buffers =
            columns < 1000
                ? io::Hints{{"cb_buffer_size", "4096"}, {"ind_rd_buffer_size", "4096"}, {"ind_wr_buffer_size", "4096"}}
                : io::Hints{};
        std::vector<std::int32_t> values(static_cast<std::size_t>(rows * columns));
        for (std::size_t i = 0; i < values.size(); ++i) {
            values[i] = static_cast<std::int32_t>(i * 7 + 1);
        }
        for (const auto& entry : io::strategies) {
            if (entry.name == "per_rank") {
                continue;  // it takes tiles, see below
            }
            if (entry.name == "uncached" && !has_direct_access()) {
                MESSAGE("uncached is not tested: the file system of /tmp has no O_DIRECT");
                continue;
            }
            for (const Distribution distribution : distributions) {
                CAPTURE(entry.name);
                CAPTURE(rows);
                CAPTURE(columns);
                Ledger ledger;
                ledger.start(Phase::input);
                Context context{comm, ledger, 2};
                const Scratch scratch(comm);
                scratch.fill(13, values);
                const io::Region r = region(scratch.path, rows, columns, 13);
                const auto share_of = [&, distribution](int rank) {
                    return distribution(rank, comm.size(), rows, columns);
                };
                const grid::Share mine = share_of(comm.rank());
                std::vector<std::int32_t> share(static_cast<std::size_t>(mine.size()) + 1, -5);
                const auto strategy = entry.make(small_buffers);

                const io::Transfer transfer{r, share_of, reinterpret_cast<std::byte*>(share.data())};
                strategy.move(context, transfer, io::Direction::read);

                std::vector<std::int32_t> wanted;
                for_elements(mine, [&](std::int64_t i, std::int64_t j) {
                    wanted.push_back(values[static_cast<std::size_t>(i * columns + j)]);
                });
                wanted.push_back(-5);
                CHECK(share == wanted);
                CHECK(ledger.phase() == Phase::input);
                CHECK(ledger.count().useful >= 0);
                if (entry.only_reads) {
                    CHECK_THROWS_AS(strategy.move(context, transfer, io::Direction::write), UsageError);
                    continue;
                }

                for (auto& value : share) {
                    value = -value;
                }
                io::Output output(context, r, io::strategy_named(entry.name), small_buffers, true);
                output.store(context, share_of, reinterpret_cast<std::byte*>(share.data()));
                output.finish(context, false);
                CHECK(output.holds_what_was_written(context));
                auto expected = values;
                for (auto& value : expected) {
                    value = -value;
                }
                CHECK(scratch.numbers(13, values.size()) == expected);
            }
        }
    }
}

TEST_CASE("root_collective collects bands by Gatherv, by Igatherv, and ahead of what is written") {
    const mpi::Communicator comm(MPI_COMM_WORLD);
    for (const char* gather : {"blocking", "nonblocking", "overlap"}) {
        CAPTURE(gather);
        const io::Hints hints{{"gather", gather}};
        for (const auto& [rows, columns] : std::vector<std::array<std::int64_t, 2>>{{97, 61}, {1500, 3001}, {0, 5}}) {
            for (const Distribution distribution : distributions) {
                Ledger ledger;
                ledger.start(Phase::output);
                Context context{comm, ledger, 1};
                const Scratch scratch(comm);
                const auto size = static_cast<std::size_t>(rows * columns);
                scratch.fill(13, std::vector<std::int32_t>(size));
                const auto share_of = [&, distribution](int rank) {
                    return distribution(rank, comm.size(), rows, columns);
                };
                std::vector<std::int32_t> share;
                for_elements(share_of(comm.rank()), [&](std::int64_t i, std::int64_t j) {
                    share.push_back(static_cast<std::int32_t>(3 * (i * columns + j) + 1));
                });
                const io::Region r = region(scratch.path, rows, columns, 13);
                io::Output output(context, r, io::StrategyKind::root_collective, hints, true);
                output.store(context, share_of, reinterpret_cast<std::byte*>(share.data()));
                output.finish(context, false);
                std::vector<std::int32_t> expected(size);
                for (std::size_t k = 0; k < size; ++k) {
                    expected[k] = static_cast<std::int32_t>(3 * k + 1);
                }
                CHECK(scratch.numbers(13, size) == expected);
            }
        }
    }
    CHECK_THROWS_AS(io::make_strategy(io::StrategyKind::root_collective, {{"gather", "late"}}), UsageError);
}

TEST_CASE("load converts, and gives the transpose of what is stored by columns") {
    const mpi::Communicator comm(MPI_COMM_WORLD);
    Ledger ledger;
    ledger.start(Phase::input);
    Context context{comm, ledger, 1};
    const Scratch scratch(comm);
    scratch.fill(0, {1, 2, 3, 4, 5, 6});
    io::Region r = region(scratch.path, 3, 2, 0);  // columns (1 2 3) and (4 5 6)
    r.column_major = true;
    CHECK(r.stored_transposed());
    std::vector<double> data(6);
    io::Input(context, r, io::StrategyKind::positioned, {})
        .load(context, Dtype::float64, whole(3, 2), reinterpret_cast<std::byte*>(data.data()));
    CHECK(data == std::vector<double>{1, 2, 3, 4, 5, 6});
}

TEST_CASE("a file of the wrong size, a missing one and a directory are the same IoError on every rank") {
    const mpi::Communicator comm(MPI_COMM_WORLD);
    Ledger ledger;
    ledger.start(Phase::input);
    Context context{comm, ledger, 1};
    const Scratch scratch(comm);
    scratch.fill(0, {1, 2, 3});
    std::vector<double> data(6);
    const auto load = [&](const io::Region& r) {
        io::Input(context, r, io::StrategyKind::positioned, {})
            .load(context, Dtype::float64, whole(3, 2), reinterpret_cast<std::byte*>(data.data()));
    };
    const auto kind_of = [&](const io::Region& r) {
        try {
            load(r);
        } catch (const Error& error) {
            return error.kind();
        }
        return ErrorKind::internal;
    };
    CHECK(kind_of(region(scratch.path, 3, 2, 0)) == ErrorKind::io);
    CHECK(kind_of(region("/nowhere/at-all", 3, 2, 0)) == ErrorKind::io);
    CHECK(kind_of(region("/tmp", 3, 2, 0)) == ErrorKind::io);
    CHECK_THROWS_WITH_AS(
        io::strategy_named("psychic"),
        "unknown I/O strategy 'psychic'; expected one of root, root_collective, per_rank, collective, "
        "split_collective, independent, shared_pointer, ordered, positioned, sieve, mapped, two_phase, "
        "uncached",
        UsageError);
    for (const auto& entry : io::strategies) {
        CHECK(static_cast<std::size_t>(io::strategy_named(entry.name)) ==
              static_cast<std::size_t>(&entry - io::strategies.data()));
    }
    CHECK(io::strategy_named("root") == io::StrategyKind::root);
    CHECK(io::strategy_named("positioned") == io::StrategyKind::positioned);
    CHECK(io::strategy_named("uncached") == io::StrategyKind::uncached);
}
