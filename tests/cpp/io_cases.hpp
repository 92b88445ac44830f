// What the tests of I/O share: a file that all ranks see, and several ways to cut a matrix among them.
#pragma once

#include <array>
#include <cstdio>
#include <fstream>
#include <string>
#include <unistd.h>
#include <vector>

#include "tilewise/io/corrupt_for_test.hpp"
#include "tilewise/io/transfer.hpp"

namespace tilewise::test {

/// While it lives, operations make one number of their results wrong before they prove them.
struct Corrupted {
    Corrupted() { io::corrupt_results(true); }
    ~Corrupted() { io::corrupt_results(false); }
};

/// A file that all ranks know and rank 0 makes and removes.
struct Scratch {
    mpi::Communicator comm;
    std::string path;

    explicit Scratch(const mpi::Communicator& c, const std::string& ending = "") : comm(c) {
        int id = static_cast<int>(getpid());
        mpi::check(MPI_Bcast(&id, 1, MPI_INT, 0, comm.get()), "MPI_Bcast");
        path = "/tmp/tilewise-test-" + std::to_string(id) + ending;
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

inline io::Region region(const std::string& path, std::int64_t rows, std::int64_t columns, std::int64_t offset) {
    io::Region r;
    r.path = r.name = path;
    r.rows = rows;
    r.columns = columns;
    r.offset = offset;
    r.dtype = Dtype::int32;
    r.file_bytes = offset + rows * columns * 4;
    return r;
}

using Distribution = grid::Share (*)(int rank, int ranks, std::int64_t rows, std::int64_t columns);
inline const std::vector<Distribution> distributions{
    [](int rank, int ranks, std::int64_t rows, std::int64_t columns) -> grid::Share {
        return grid::Block{grid::Partition(rows, ranks)[rank], {0, columns}};
    },
    [](int rank, int ranks, std::int64_t rows, std::int64_t columns) -> grid::Share {
        return grid::Block{{0, rows}, grid::Partition(columns, ranks)[rank]};
    },
    [](int rank, int ranks, std::int64_t rows, std::int64_t columns) -> grid::Share {
        const grid::Grid shape{ranks % 2 == 0 ? 2 : 1, ranks % 2 == 0 ? ranks / 2 : ranks};
        const grid::Place place = shape.place(rank);
        return grid::Block{grid::Partition(rows, shape.rows)[place.row],
                           grid::Partition(columns, shape.columns)[place.column]};
    },
    [](int rank, int ranks, std::int64_t rows, std::int64_t columns) {
        const grid::Grid shape{ranks % 2 == 0 ? 2 : 1, ranks % 2 == 0 ? ranks / 2 : ranks};
        return grid::block_cyclic(shape, shape.place(rank), rows, columns, 3);
    },
    [](int rank, int, std::int64_t rows, std::int64_t columns) {
        return rank == 0 ? grid::Share(grid::Block{{0, rows}, {0, columns}}) : grid::Share();
    }};

/// Element (i, j) of the matrix for each element of a share, in its order.
template <class F> void for_elements(const grid::Share& share, F f) {
    for (const grid::Range& rows : share.rows) {
        for (std::int64_t i = rows.begin; i < rows.end; ++i) {
            for (const grid::Range& columns : share.columns) {
                for (std::int64_t j = columns.begin; j < columns.end; ++j) {
                    f(i, j);
                }
            }
        }
    }
}

/// Every rank wants everything.
inline io::WantedShare whole(std::int64_t rows, std::int64_t columns) {
    return [=](int) { return grid::Share(grid::Block{{0, rows}, {0, columns}}); };
}

}  // namespace tilewise::test
