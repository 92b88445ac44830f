// Tests of I/O: every strategy over several ways to cut a matrix, against a file written with the C library.
#include <array>
#include <cstdio>
#include <doctest/doctest.h>
#include <fcntl.h>
#include <fstream>
#include <sys/stat.h>
#include <unistd.h>
#include <vector>

#include "tilewise/base/error.hpp"
#include "tilewise/io/transfer.hpp"

using namespace tilewise;

namespace {

/// A file that all ranks know and rank 0 makes and removes.
struct Scratch {
    mpi::Communicator comm;
    std::string path;

    explicit Scratch(const mpi::Communicator& c) : comm(c) {
        int id = static_cast<int>(getpid());
        mpi::check(MPI_Bcast(&id, 1, MPI_INT, 0, comm.get()), "MPI_Bcast");
        path = "/tmp/tilewise-test-" + std::to_string(id);
    }
    Scratch(const Scratch&) = delete;
    Scratch& operator=(const Scratch&) = delete;
    ~Scratch() {
        comm.barrier();
        if (comm.rank() == 0) {
            std::remove(path.c_str());
        }
    }
    void fill(std::int64_t offset, const std::vector<std::int32_t>& values) const {
        if (comm.rank() == 0) {
            std::ofstream out(path, std::ios::binary);
            out << std::string(static_cast<std::size_t>(offset), '#');
            out.write(reinterpret_cast<const char*>(values.data()), static_cast<std::streamsize>(values.size() * 4));
        }
        comm.barrier();
    }
    std::vector<std::int32_t> numbers(std::int64_t offset, std::size_t count) const {
        comm.barrier();
        std::vector<std::int32_t> values(count);
        std::ifstream in(path, std::ios::binary);
        in.seekg(offset);
        in.read(reinterpret_cast<char*>(values.data()), static_cast<std::streamsize>(count * 4));
        return values;
    }
};

io::Region region(const std::string& path, std::int64_t rows, std::int64_t columns, std::int64_t offset) {
    io::Region r;
    r.path = r.name = path;
    r.rows = rows;
    r.columns = columns;
    r.offset = offset;
    r.dtype = Dtype::int32;
    r.file_bytes = offset + rows * columns * 4;
    return r;
}

bool has_direct_access() {
    const int descriptor = open("/tmp", O_RDWR | O_TMPFILE | O_DIRECT, 0600);
    close(descriptor);
    return descriptor >= 0;
}

using Cut = grid::Block (*)(int rank, int ranks, std::int64_t rows, std::int64_t columns);
const std::vector<Cut> cuts{[](int rank, int ranks, std::int64_t rows, std::int64_t columns) {
                                return grid::Block{grid::Partition(rows, ranks)[rank], {0, columns}};
                            },
                            [](int rank, int ranks, std::int64_t rows, std::int64_t columns) {
                                return grid::Block{{0, rows}, grid::Partition(columns, ranks)[rank]};
                            },
                            [](int rank, int ranks, std::int64_t rows, std::int64_t columns) {
                                const grid::Grid shape{ranks % 2 == 0 ? 2 : 1, ranks % 2 == 0 ? ranks / 2 : ranks};
                                const grid::Place place = shape.place(rank);
                                return grid::Block{grid::Partition(rows, shape.rows)[place.row],
                                                   grid::Partition(columns, shape.columns)[place.column]};
                            }};

}  // namespace

TEST_CASE("every strategy reads and writes every cut, at an odd offset") {
    const mpi::Communicator comm(MPI_COMM_WORLD);
    for (const auto& [rows, columns] :
         std::vector<std::array<std::int64_t, 2>>{{13, 7}, {1, 40}, {40, 1}, {2, 2}, {0, 5}, {1, 2200000}}) {
        std::vector<std::int32_t> values(static_cast<std::size_t>(rows * columns));
        for (std::size_t i = 0; i < values.size(); ++i) {
            values[i] = static_cast<std::int32_t>(i * 7 + 1);
        }
        for (const auto& entry : io::strategies) {
            if (entry.name == "uncached" && !has_direct_access()) {
                MESSAGE("uncached is not tested: the file system of /tmp has no O_DIRECT");
                continue;
            }
            for (const Cut cut : cuts) {
                CAPTURE(entry.name);
                CAPTURE(rows);
                CAPTURE(columns);
                Ledger ledger;
                ledger.start(Phase::input);
                Context context{comm, ledger, 2};
                const Scratch scratch(comm);
                scratch.fill(13, values);
                const io::Region r = region(scratch.path, rows, columns, 13);
                const auto block_of = [&, cut](int rank) { return cut(rank, comm.size(), rows, columns); };
                const grid::Block mine = block_of(comm.rank());
                std::vector<std::int32_t> block(static_cast<std::size_t>(mine.size()) + 1, -5);
                const auto strategy = entry.make({});

                strategy->read(context, {r, block_of, reinterpret_cast<std::byte*>(block.data())});

                bool same = block.back() == -5;
                for (std::int64_t i = 0; i < mine.rows.size(); ++i) {
                    for (std::int64_t j = 0; j < mine.columns.size(); ++j) {
                        same = same && block[static_cast<std::size_t>(i * mine.columns.size() + j)] ==
                                           values[static_cast<std::size_t>((i + mine.rows.begin) * columns + j +
                                                                           mine.columns.begin)];
                    }
                }
                CHECK(same);
                CHECK(ledger.phase() == Phase::input);

                for (auto& value : block) {
                    value = -value;
                }
                io::store(context, *strategy, r, block_of, reinterpret_cast<std::byte*>(block.data()), false);
                auto expected = values;
                for (auto& value : expected) {
                    value = -value;
                }
                CHECK(scratch.numbers(13, values.size()) == expected);
            }
        }
    }
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
    io::load(
        context, *io::strategy_named("positioned", {}), r, Dtype::float64,
        [](int) { return grid::Block{{0, 3}, {0, 2}}; }, reinterpret_cast<std::byte*>(data.data()));
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
        io::load(
            context, *io::strategy_named("positioned", {}), r, Dtype::float64,
            [](int) { return grid::Block{{0, 3}, {0, 2}}; }, reinterpret_cast<std::byte*>(data.data()));
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
    CHECK_THROWS_AS(io::strategy_named("psychic", {}), UsageError);
}
