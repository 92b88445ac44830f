// Times every strategy of libtilewise on one layout, in turns with the limit: each rank one contiguous part, in plain
// calls.
//
// io_strategies FILE N PxQ BLOCK read|overwrite|fresh ROUNDS [HINT=VALUE …]
// FILE has 4096 bytes and then N × N float64; BLOCK 0 means one block a rank, else blocks dealt out cyclically.
// `overwrite` writes into the file as it is, `fresh` into a new file beside it that then takes its name. Prints JSON:
// for each side the seconds of every round (the slowest rank, from barrier to barrier), and bytes and calls of the
// last.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <iostream>
#include <string>
#include <unistd.h>
#include <vector>

#include "tilewise/base/buffer.hpp"
#include "tilewise/io/transfer.hpp"
#include "tilewise/mpi/mpi.hpp"
#include "tilewise/mpi/together.hpp"

namespace {

using namespace tilewise;

struct Side {
    std::string name;
    std::vector<double> seconds;
    Counters count{};
    bool right = true;
};

struct Case {
    mpi::Communicator comm{MPI_COMM_WORLD};
    io::Region region;
    grid::Grid grid;
    std::int64_t n = 0, block = 0;
    std::string mode;
    io::Hints hints;
    Buffer memory;

    grid::Share share(int rank) const {
        const grid::Place place = grid.place(rank);
        if (block > 0) {
            return grid::block_cyclic(grid, place, n, n, block);
        }
        return grid::Block{grid::Partition(n, grid.rows)[place.row], grid::Partition(n, grid.columns)[place.column]};
    }
    grid::Range half() const { return grid::Partition(n * n, comm.size())[comm.rank()]; }

    /// Rank 0 makes the file that is written; the one before goes first, as a user's would.
    void prepare() const {
        comm.barrier();
        if (mode == "fresh" && comm.rank() == 0) {
            unlink((region.path + ".done").c_str());
            unlink(region.path.c_str());
            const int file = open(region.path.c_str(), O_RDWR | O_CREAT, 0644);
            if (file < 0 || ftruncate(file, region.file_bytes) != 0) {
                std::perror("making the file");
                MPI_Abort(comm.get(), 1);
            }
            close(file);
        }
        comm.barrier();
    }
    void finish() const {
        comm.barrier();
        if (mode == "fresh" && comm.rank() == 0 &&
            std::rename(region.path.c_str(), (region.path + ".done").c_str()) != 0) {
            MPI_Abort(comm.get(), 1);
        }
    }

    template <class F> double time(const F& f) const {
        prepare();
        const auto begin = std::chrono::steady_clock::now();
        f();
        finish();
        double mine = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count(), worst = 0;
        MPI_Allreduce(&mine, &worst, 1, MPI_DOUBLE, MPI_MAX, comm.get());
        return worst;
    }

    void limit(Side& side) const {
        const std::int64_t bytes = half().size() * 8, at = region.offset + half().begin * 8;
        side.seconds.push_back(time([&] {
            const io::PosixFile file(region.path, region.name,
                                     mode == "read" ? io::PosixFile::Mode::read : io::PosixFile::Mode::write);
            mode == "read" ? file.read(memory.data(), bytes, at) : file.write(memory.data(), bytes, at);
        }));
    }

    void strategy(Side& side) const {
        Ledger ledger;
        ledger.start(mode == "read" ? Phase::input : Phase::output);
        Context context{comm, ledger, 1};
        const auto strategy = io::make_strategy(io::strategy_named(side.name), hints);
        const io::Transfer transfer{region, [this](int rank) { return share(rank); }, memory.data()};
        auto* numbers = reinterpret_cast<double*>(memory.data());
        const grid::Share mine = share(comm.rank());
        if (mode == "read") {
            std::memset(memory.data(), 0xFF, static_cast<std::size_t>(mine.size()) * 8);
        } else {
            fill(mine, numbers);
        }
        side.seconds.push_back(time(
            [&] { strategy.move(context, transfer, mode == "read" ? io::Direction::read : io::Direction::write); }));
        if (mode == "read") {
            side.right = side.right && holds(mine, numbers);
        }
        side.count = ledger.count();
    }

    /// Element (i, j) is i·n + j, so that any misplaced one is seen.
    void fill(const grid::Share& mine, double* numbers) const {
        grid::for_runs(mine, n, {0, n * n}, [&](std::int64_t first, std::int64_t count, std::int64_t local) {
            for (std::int64_t i = 0; i < count; ++i) {
                numbers[local + i] = static_cast<double>(first + i);
            }
        });
    }
    bool holds(const grid::Share& mine, const double* numbers) const {
        bool right = true;
        grid::for_runs(mine, n, {0, n * n}, [&](std::int64_t first, std::int64_t count, std::int64_t local) {
            for (std::int64_t i = 0; i < count; ++i) {
                right = right && numbers[local + i] == static_cast<double>(first + i);
            }
        });
        return right;
    }
};

void print(const Case& job, const std::vector<Side>& sides) {
    std::string separator = "{";
    for (const Side& side : sides) {
        long long mine[4] = {side.count.read, side.count.written, side.count.io_calls, side.right ? 0 : 1};
        long long all[4] = {0, 0, 0, 0};
        MPI_Reduce(mine, all, 4, MPI_LONG_LONG, MPI_SUM, 0, job.comm.get());
        if (job.comm.rank() == 0) {
            std::cout << separator << "\"" << side.name << "\": {\"read\": " << all[0] << ", \"written\": " << all[1]
                      << ", \"calls\": " << all[2] << ", \"right\": " << (all[3] == 0 ? "true" : "false")
                      << ", \"seconds\": [";
            for (std::size_t i = 0; i < side.seconds.size(); ++i) {
                std::cout << (i > 0 ? ", " : "") << side.seconds[i];
            }
            std::cout << "]}";
            separator = ",\n ";
        }
    }
    if (job.comm.rank() == 0) {
        std::cout << "}\n";
    }
}

}  // namespace

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    if (argc < 7) {
        std::cerr << "usage: io_strategies FILE N PxQ BLOCK read|overwrite|fresh ROUNDS [HINT=VALUE …]\n";
        return 2;
    }
    try {
        Case job;
        job.n = std::atoll(argv[2]);
        const std::string shape = argv[3];
        job.grid = {std::atoi(shape.c_str()), std::atoi(shape.c_str() + shape.find('x') + 1)};
        job.block = std::atoll(argv[4]);
        job.mode = argv[5];
        job.region.path = job.region.name = argv[1] + std::string(job.mode == "fresh" ? ".part" : "");
        job.region.rows = job.region.columns = job.n;
        job.region.offset = 4096;
        job.region.file_bytes = 4096 + job.n * job.n * 8;
        for (int i = 7; i < argc; ++i) {
            const std::string word = argv[i];
            job.hints[word.substr(0, word.find('='))] = word.substr(word.find('=') + 1);
        }
        const std::int64_t most = std::max(job.half().size(), job.share(job.comm.rank()).size());
        job.memory = Buffer(static_cast<std::size_t>(most) * 8);
        std::memset(job.memory.data(), 1, job.memory.bytes());
        std::vector<Side> sides{{"limit", {}}};
        for (const auto& entry : io::strategies) {
            if (entry.name != "per_rank") {  // it takes tiles, and then every rank its own file: the limit itself
                sides.push_back({std::string(entry.name), {}});
            }
        }
        const int rounds = std::atoi(argv[6]);
        for (int round = -1; round < rounds; ++round) {  // one to warm up
            for (std::size_t turn = 0; turn < sides.size(); ++turn) {
                Side& side = sides[round % 2 == 0 ? turn : sides.size() - 1 - turn];
                side.name == "limit" ? job.limit(side) : job.strategy(side);
                if (round < 0) {
                    side.seconds.clear();
                }
            }
        }
        print(job, sides);
    } catch (const std::exception& error) {
        std::cerr << "io_strategies: " << error.what() << '\n';
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    MPI_Finalize();
    return 0;
}
