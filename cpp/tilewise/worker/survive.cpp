// Run, agree on how it went, and where a rank is missing take stock and run again.
// Design: docs/design/publication.md
#include <algorithm>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <fstream>
#include <numeric>
#include <tuple>
#include <type_traits>

#include "tilewise/io/file.hpp"
#include "tilewise/io/journal.hpp"
#include "tilewise/mpi/communicator.hpp"
#include "tilewise/mpi/together.hpp"
#include "tilewise/worker/events.hpp"
#include "tilewise/worker/run.hpp"

namespace tilewise::worker {
namespace {

bool lost_ranks = false;

/// The grid of `ranks` ranks that is most like a square, or a line, where it was one.
grid::Grid grid_of(int ranks, const grid::Grid& was) {
    if (was.columns == 1) {
        return {ranks, 1};
    }
    int rows = 1;
    for (int each = 1; was.rows > 1 && each * each <= ranks; ++each) {
        rows = ranks % each == 0 ? each : rows;
    }
    return {rows, ranks / rows};
}

/// What the logs of a journal say by now, for ranks that go on without a new start of the job by its front.
struct Logged {
    int starts = 0;                    ///< how many there were, as far as a log tells
    std::vector<io::Standing> pieces;  ///< first start first, without lines that are torn or spoilt
};

/// The piece that a line names, if it is whole: it ends with a checksum of what is before it.
bool parse(const std::string& line, io::Standing& piece) {
    const std::size_t space = line.rfind(' ');
    if (space == std::string::npos) {
        return false;
    }
    std::uint64_t check = 0xcbf29ce484222325;  // FNV-1a
    for (std::size_t at = 0; at <= space; ++at) {
        check = (check ^ static_cast<unsigned char>(line[at])) * 0x100000001b3;
    }
    long long numbers[4]{};
    unsigned long long sum = 0, told = 0;
    if (std::sscanf(line.c_str(), "%lld %lld %lld %lld %llx %llx", &numbers[0], &numbers[1], &numbers[2], &numbers[3],
                    &sum, &told) != 6 ||
        told != check) {
        return false;
    }
    piece.block = {{numbers[0], numbers[1]}, {numbers[2], numbers[3]}};
    piece.sum = sum;
    return true;
}

std::tuple<int, std::int64_t, std::int64_t, std::int64_t, std::int64_t> key(const io::Standing& piece) {
    const grid::Block& block = piece.block;
    return {piece.start, block.rows.begin, block.rows.end, block.columns.begin, block.columns.end};
}

/// Reads all logs in `folder`, as the front does (`tilewise.base.journal`). Throws IoError. Not collective.
Logged read_logs(const std::string& folder) {
    Logged found;
    std::error_code error;
    for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
        const std::string name = entry.path().filename().string();
        io::Standing piece;
        int rank = 0, length = 0;
        if (std::sscanf(name.c_str(), "%d-%d.log%n", &piece.start, &rank, &length) != 2 ||
            length != static_cast<int>(name.size())) {
            continue;
        }
        found.starts = std::max(found.starts, piece.start + 1);
        std::ifstream lines(entry.path(), std::ios::binary);
        for (std::string line; std::getline(lines, line) && !lines.eof();) {
            if (parse(line, piece)) {
                found.pieces.push_back(piece);
            }
        }
    }
    if (error) {
        throw system_error(folder + ": could not be read", error.value());
    }
    std::stable_sort(found.pieces.begin(), found.pieces.end(),
                     [](const io::Standing& a, const io::Standing& b) { return key(a) < key(b); });
    const auto same = [](const io::Standing& a, const io::Standing& b) { return key(a) == key(b); };
    found.pieces.erase(std::unique(found.pieces.begin(), found.pieces.end(), same), found.pieces.end());
    return found;
}

/// What is done by now, as the logs say, into the job's journal. @note Collective.
void take_stock(const mpi::Communicator& comm, io::JournalOptions& journal) {
    Logged logged;
    mpi::together(comm, [&] {
        if (comm.rank() == 0) {
            logged = read_logs(journal.folder);
        }
    });
    static_assert(std::is_trivially_copyable_v<io::Standing>);
    std::int64_t facts[2] = {logged.starts, std::ssize(logged.pieces)};
    mpi::check(MPI_Bcast(facts, 2, MPI_INT64_T, 0, comm.get()), "MPI_Bcast");
    logged.pieces.resize(static_cast<std::size_t>(facts[1]));
    constexpr std::size_t at_once = 1 << 20;  // of which each is some dozen bytes
    for (std::size_t begin = 0; begin < logged.pieces.size(); begin += at_once) {
        const std::size_t some = std::min(at_once, logged.pieces.size() - begin);
        mpi::check(MPI_Bcast(logged.pieces.data() + begin, static_cast<int>(some * sizeof(io::Standing)), MPI_BYTE, 0,
                             comm.get()),
                   "MPI_Bcast");
    }
    journal.start = std::max(journal.start + 1, static_cast<int>(facts[0]));
    journal.standing = std::move(logged.pieces);
}

/// Says why the job failed; fewer ranks know of it than the error is thrown by where nobody has died.
void tell(const std::exception_ptr& failure) {
    try {
        std::rethrow_exception(failure);
    } catch (...) {
        const Error error = error_in_flight();
        emit_error(error, std::max(error.rank(), 0));
    }
}

/// Which ranks of the job's first communicator live. @note Collective.
std::vector<int> living(const mpi::Communicator& comm, int first_rank) {
    std::vector<int> all(static_cast<std::size_t>(comm.size()));
    mpi::check(MPI_Allgather(&first_rank, 1, MPI_INT, all.data(), 1, MPI_INT, comm.get()), "MPI_Allgather");
    return all;
}

}  // namespace

bool has_lost_ranks() { return lost_ranks; }

void run_surviving(const mpi::Communicator& comm, Job job) {
    mpi::survive_losses(true);
    mpi::Communicator now = comm;
    std::vector<int> lost;
    for (;;) {
        std::exception_ptr failure;
        bool finished = true;
        try {
            if (now.size() < comm.size()) {
                const std::vector<int> alive = living(now, comm.rank());
                lost.clear();
                for (int rank = 0; rank < comm.size(); ++rank) {
                    if (std::find(alive.begin(), alive.end(), rank) == alive.end()) {
                        lost.push_back(rank);
                    }
                }
                if (now.rank() == 0) {
                    emit({{"event", "survived"}, {"lost", lost}, {"ranks", now.size()}});
                }
                take_stock(now, job.journal);
                job.ranks = now.size();
                job.grid = grid_of(now.size(), job.grid);
                job.fault.clear();  // it was for ranks by their first numbers
            }
            run(now, job, lost);
        } catch (...) {
            failure = std::current_exception();
            const Error error = error_in_flight();
            finished = now.size() == 1 || (error.agreed_by() >= now.size() && error.kind() != ErrorKind::mpi);
            if (!finished && error.kind() != ErrorKind::mpi) {
                mpi::rethrow_or_abort(now);
            }
        }
        if (!finished) {
            mpi::revoke_all();
        }
        if (mpi::all_finished(now, finished)) {
            if (failure && now.size() == comm.size()) {
                std::rethrow_exception(failure);
            }
            if (failure && now.rank() == 0) {
                tell(failure);
            }
            return;
        }
        const mpi::Communicator rest = mpi::survivors(now);
        if (rest.size() == now.size()) {  // nobody has died: it is an error like any other
            mpi::survive_losses(false);
            if (failure) {
                std::rethrow_exception(failure);
            }
            rest.barrier();  // until a rank that has it ends the job
        }
        now = rest;
        lost_ranks = true;
    }
}

}  // namespace tilewise::worker
