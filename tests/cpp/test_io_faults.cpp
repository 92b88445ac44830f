// Tests of I/O where the system or the library does not keep its word: what was written is gone, what was read never
// came.
#include <cerrno>
#include <doctest/doctest.h>
#include <fcntl.h>
#include <set>
#include <string>
#include <unistd.h>
#include <vector>

#include "faulty_mpi.hpp"
#include "io_cases.hpp"
#include "tilewise/io/read_back.hpp"
#include "tilewise/mpi/together.hpp"
#include "tilewise/transpose/transpose.hpp"

using namespace tilewise;
using namespace tilewise::test;

namespace {

/// What f() throws; an internal Error where it throws nothing.
template <class F> Error thrown_by(const F& f) {
    try {
        f();
    } catch (const Error& error) {
        return error;
    }
    return Error(ErrorKind::internal, "nothing was thrown");
}

struct Job {
    mpi::Communicator comm{MPI_COMM_WORLD};
    Ledger ledger;
    Context context{comm, ledger, 2};
    std::int64_t rows, columns;
    Distribution distribution;
    std::vector<std::int32_t> share;

    Job(std::int64_t r, std::int64_t c, Distribution how) : rows(r), columns(c), distribution(how) {
        ledger.start(Phase::output);
        for_elements(share_of()(comm.rank()), [&](std::int64_t i, std::int64_t j) {
            share.push_back(static_cast<std::int32_t>(i * 1000 + j + 1));
        });
    }
    io::ShareOf share_of() const {
        return [this](int rank) { return distribution(rank, comm.size(), rows, columns); };
    }
    std::byte* data() { return reinterpret_cast<std::byte*>(share.data()); }
};

}  // namespace

TEST_CASE("samples are of the share, and meet each cell that it has something of") {
    constexpr std::int64_t rows = 61, columns = 97, item = 8, cell = 1024;
    for (const Distribution distribution : distributions) {
        for (int ranks = 1; ranks <= 4; ++ranks) {
            std::set<std::int64_t> met, all;
            for (int rank = 0; rank < ranks; ++rank) {
                const grid::Share share = distribution(rank, ranks, rows, columns);
                std::vector<std::int64_t> owned;
                for_elements(share, [&](std::int64_t i, std::int64_t j) { owned.push_back(i * columns + j); });
                for (const std::int64_t element : owned) {
                    all.insert(element * item / cell);
                }
                std::set<std::int64_t> mine;
                for (const io::Sample& sample : io::samples_of(share, columns, item, {0, rows * columns}, cell, rank)) {
                    for (std::int64_t i = 0; i < sample.count; ++i) {
                        REQUIRE(owned[static_cast<std::size_t>(sample.local + i)] == sample.first + i);
                        mine.insert(sample.first + i);
                        met.insert((sample.first + i) * item / cell);
                    }
                }
                if (!owned.empty()) {
                    CHECK(mine.count(owned.front()) == 1);
                    CHECK(mine.count(owned.back()) == 1);
                }
            }
            if (distribution !=
                // blocks dealt out in turn are smaller than these cells, so that whose turn it is may have nothing
                distributions[3]) {
                CHECK(met == all);
            }
        }
    }
    CHECK(io::samples_of({}, 7, 8, {0, 70}, 1024, 0).empty());
}

TEST_CASE("what was written and is gone is found, whatever wrote it") {
    for (const auto& entry : io::strategies) {
        if (entry.name == "per_rank" || entry.name == "uncached" || entry.only_reads) {
            continue;
        }
        for (const Distribution distribution : {distributions[0], distributions[1]}) {
            CAPTURE(entry.name);
            Job job(97, 61, distribution);
            const Scratch scratch(job.comm);
            scratch.fill(13, std::vector<std::int32_t>(97 * 61));
            const io::Region r = region(scratch.path, 97, 61, 13);
            for (const bool lost : {false, true}) {
                io::Output output(job.context, r, io::strategy_named(entry.name), {}, false);
                output.store(job.context, job.share_of(), job.data());
                job.comm.barrier();
                if (lost && job.comm.rank() == 0) {
                    const int file = open(scratch.path.c_str(), O_RDWR);
                    const std::vector<char> zeros(4096);
                    CHECK(pwrite(file, zeros.data(), 4096, r.file_bytes - 4096) == 4096);
                    close(file);
                }
                job.comm.barrier();
                const Error error = thrown_by([&] { output.finish(job.context, false); });
                CHECK(error.kind() == (lost ? ErrorKind::io : ErrorKind::internal));
            }
        }
    }
}

TEST_CASE("a close that fails is an IoError that knows why") {
    for (const char* name : {"collective", "split_collective", "independent"}) {
        CAPTURE(name);
        Job job(13, 7, distributions[0]);
        const Scratch scratch(job.comm);
        scratch.fill(13, std::vector<std::int32_t>(13 * 7));
        const io::Region r = region(scratch.path, 13, 7, 13);
        io::Output output(job.context, r, io::strategy_named(name), {}, false);
        FaultyMpi faults;
        faults.close_fails = job.comm.rank() == job.comm.size() - 1;
        const Error error = thrown_by([&] { output.store(job.context, job.share_of(), job.data()); });
        CHECK(error.kind() == ErrorKind::io);
        CHECK(error.error_number() == ENOSPC);
        CHECK(std::string(error.what()).find(scratch.path) == 0);
    }
}

TEST_CASE("a library that reads nothing and says that it has read is not believed") {
    for (const char* name : {"collective", "split_collective", "independent", "shared_pointer", "ordered"}) {
        for (const Distribution distribution : {distributions[0], distributions[1]}) {
            CAPTURE(name);
            Job job(97, 61, distribution);
            const Scratch scratch(job.comm);
            std::vector<std::int32_t> values(97 * 61);
            for (std::size_t i = 0; i < values.size(); ++i) {
                values[i] = static_cast<std::int32_t>(i + 1);
            }
            scratch.fill(13, values);
            const io::Region r = region(scratch.path, 97, 61, 13);
            const io::Input input(job.context, r, io::strategy_named(name), {});
            FaultyMpi faults;
            faults.reads_nothing = true;
            const Error error = thrown_by([&] { input.load_raw(job.context, job.share_of(), job.data()); });
            CHECK(error.kind() == ErrorKind::io);
        }
    }
}

TEST_CASE("of ranks that fail together the one that knows the system's reason speaks") {
    const mpi::Communicator comm(MPI_COMM_WORLD);
    const int knows = comm.size() - 1;
    const Error error = thrown_by([&] {
        mpi::together(comm, [&] {
            throw comm.rank() == knows ? system_error("C.npy", ENOSPC) : IoError("C.npy: something failed");
        });
    });
    CHECK(error.error_number() == ENOSPC);
    CHECK(error.rank() == knows);
    CHECK(std::string(error.what()) == "C.npy: " + system_reason(ENOSPC));
}

TEST_CASE("an output that a proof cannot read fails the verification, and is no wrong request") {
    const mpi::Communicator comm(MPI_COMM_WORLD);
    for (const char* broken : {"1 2\n3 x\n", "1 2\n", "1 2\n3 4 5\n", "\n"}) {
        for (const Verify how : {Verify::fast, Verify::serial}) {
            CAPTURE(broken);
            Ledger ledger;
            ledger.start(Phase::verify);
            Context context{comm, ledger, 1};
            const Scratch from(comm), to(comm, ".txt");
            from.fill(0, {1, 3, 2, 4});
            if (comm.rank() == 0) {
                std::ofstream(to.path) << broken;
            }
            comm.barrier();
            io::Region text = region(to.path, 2, 2, 0);
            text.text = io::TextLines{.separator = ' ', .line_numbers = 2};
            const Error error = thrown_by([&] { transpose::verify(context, region(from.path, 2, 2, 0), text, how); });
            CHECK(error.kind() == ErrorKind::verification);
        }
    }
}
