// tilewise-worker: takes a job in on rank 0, does it on all ranks, and sends events out. See docs/reference/seam.md.
#include <algorithm>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <sys/prctl.h>
#include <unistd.h>

#include "tilewise/base/buffer.hpp"
#include "tilewise/base/ledger.hpp"
#include "tilewise/base/work.hpp"
#include "tilewise/device/driver.hpp"
#include "tilewise/io/chunked.hpp"
#include "tilewise/io/strategy/mapped.hpp"
#include "tilewise/kernel/isa/backend.hpp"
#include "tilewise/measure/transpose_tile.hpp"
#include "tilewise/mpi/communicator.hpp"
#include "tilewise/mpi/mpi.hpp"
#include "tilewise/mpi/together.hpp"
#include "tilewise/worker/constants.hpp"
#include "tilewise/worker/crash_report.hpp"
#include "tilewise/worker/events.hpp"
#include "tilewise/worker/fault.hpp"
#include "tilewise/worker/front_connection.hpp"
#include "tilewise/worker/job.hpp"
#include "tilewise/worker/run.hpp"
#include "tilewise/worker/shm_cleanup.hpp"

namespace tilewise::worker {
namespace {

struct Arguments {
    bool describe = false;
    bool version = false;
    bool devices = false;             ///< say what graphics processors there are
    bool unpack = false;              ///< unpack the chunks that the job on standard input names, and nothing else
    std::size_t transposed_item = 0;  ///< bytes; above 0: find the best tile for it, and do nothing else
    int threads = 1;
    int expect = 0;       ///< ranks that a foreign launcher has started, or 0
    bool joined = false;  ///< the launcher started the front as well: what other ranks print reaches a terminal
};

Arguments parse_arguments(int argc, char** argv) {
    Arguments arguments;
    for (int i = 1; i < argc; ++i) {
        const std::string word = argv[i];
        if (word == "--describe") {
            arguments.describe = true;
        } else if (word == "--devices") {
            arguments.devices = true;
        } else if (word == "--version") {
            arguments.version = true;
        } else if (word == "--unpack") {
            arguments.unpack = true;
        } else if (word == "--transpose-tile" && i + 2 < argc) {
            arguments.transposed_item = std::strtoul(argv[++i], nullptr, 10);
            arguments.threads = std::max(std::atoi(argv[++i]), 1);
            if (arguments.transposed_item < 1 || arguments.transposed_item > 16) {
                throw UsageError("--transpose-tile takes the bytes of an item, 1 to 16, and a number of threads");
            }
        } else if (word == "--expect" && i + 1 < argc) {
            arguments.expect = std::atoi(argv[++i]);
        } else if (word == "--joined") {
            arguments.joined = true;
        } else {
            throw UsageError("unknown argument '" + word + "'; this program is started by tilewise");
        }
    }
    return arguments;
}

/// What MPI must expect of threads. FUNNELED, since others of this process compute beside the one that calls MPI,
/// unless the front says that none do: for SINGLE Open MPI leaves out locks, which cost a short message half its time
/// again.
int thread_level() {
    const char* wish = std::getenv("TILEWISE_MPI_THREADS");
    return wish != nullptr && std::strcmp(wish, "single") == 0 ? MPI_THREAD_SINGLE : MPI_THREAD_FUNNELED;
}

/// The rank as the launcher's environment numbers it: where MPI does not know the launcher, it is all there is.
int rank_by_environment() {
    for (const char* name : {"PMI_RANK", "PMIX_RANK", "OMPI_COMM_WORLD_RANK", "SLURM_PROCID"}) {
        if (const char* value = std::getenv(name)) {
            return std::atoi(value);
        }
    }
    return 0;
}

/// The one line that is the job: Open MPI 5 does not hand on the end of standard input. Launchers hand on what fits
/// into a pipe, and some give up when it is full: so the front sends no more than `job_window` bytes ahead of what it
/// hears to have been read.
std::string read_job_text() {
    std::string text, piece(1 << 14, ' ');
    std::size_t told = 0;
    for (;;) {
        const ssize_t got = ::read(STDIN_FILENO, piece.data(), piece.size());
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got < 0) {
            throw IoError(std::string("the job could not be read: ") + std::strerror(errno));
        }
        if (got == 0) {
            return text;
        }
        text.append(piece, 0, static_cast<std::size_t>(got));
        if (text.back() == '\n') {
            return text;
        }
        if (text.size() >= told + job_window / 2) {
            told = text.size();
            emit({{"event", "reading"}, {"bytes", told}});
        }
    }
}

/// What graphics processors there are, as the driver says, for the front that asks. As JSON; docs/reference/seam.md has
/// its fields.
std::string describe_devices() {
    const device::Facts facts = device::facts();
    std::vector<Json> devices;
    for (const device::DeviceFacts& one : facts.devices) {
        devices.push_back(Json{{"name", one.name},
                               {"compute", one.compute},
                               {"memory", one.memory},
                               {"unified_addressing", one.unified_addressing},
                               {"managed", one.managed},
                               {"migrates", one.migrates},
                               {"peers", one.peers}});
    }
    const Json said{{"driver", facts.driver},
                    {"trouble", facts.found.trouble},
                    {"simulated", facts.found.simulated},
                    {"devices", devices}};
    return said.text();
}

/// Unpacks samples of packed inputs as ranks would, but in a process of its own and without MPI: writes the numbers of
/// each input of the job in `text`, row by row as the file stores them, to `out`. The inputs are in chunks, one after
/// the other: the front compares them with what the format's own library reads there. Throws UsageError for what cannot
/// be unpacked.
void unpack_samples(const std::string& text, std::ostream& out) {
    const Job job = parse_job(text);
    break_unpacking_if_told(job.fault);
    io::ChunkUnpacker::Memory memory;
    Array<std::byte> row;
    std::atomic<std::int64_t> read = 0, calls = 0;
    for (const io::Region& region : job.inputs) {
        if (region.chunks == nullptr) {
            throw UsageError(region.name + " is not in chunks");
        }
        const io::ChunkUnpacker unpacker(region);
        const auto count = static_cast<std::int64_t>(region.chunks->offsets.size());
        for (std::int64_t chunk = 0; chunk < count; ++chunk) {
            const grid::Block block = unpacker.block_of(chunk);
            const std::byte* numbers = unpacker.unpack(chunk, memory, read, calls);
            const std::int64_t bytes = block.columns.size() * static_cast<std::int64_t>(size_of(region.dtype));
            row.grow(bytes);
            for (std::int64_t i = block.rows.begin; i < block.rows.end; ++i) {
                unpacker.copy_row(numbers, block, i, block.columns, row.raw());
                out.write(reinterpret_cast<const char*>(row.raw()), bytes);
            }
        }
    }
}

Job receive_job(const mpi::Communicator& comm) {
    std::string text;
    Job job;
    mpi::together(comm, [&] {
        if (comm.rank() == 0) {
            text = read_job_text();
            job = parse_job(text);
        }
    });
    auto length = static_cast<int>(text.size());
    mpi::check(MPI_Bcast(&length, 1, MPI_INT, 0, comm.get()), "MPI_Bcast");
    text.resize(static_cast<std::size_t>(length));
    mpi::check(MPI_Bcast(text.data(), length, MPI_CHAR, 0, comm.get()), "MPI_Bcast");
    // After the text, as versions without this step would have it: they then refuse the text by its protocol.
    mpi::require_same(comm, "the worker", build_version(), "install the same tilewise on every host");
    mpi::together(comm, [&] {
        if (comm.rank() != 0) {
            job = parse_job(text);
        }
    });
    return job;
}

int work(const Arguments& arguments) {
    const mpi::Communicator comm(MPI_COMM_WORLD);
    if (arguments.expect > 0 && arguments.expect != comm.size()) {
        if (rank_by_environment() == 0) {
            emit_error(LauncherError("the launcher started " + std::to_string(arguments.expect) +
                                     " processes, but MPI sees " + std::to_string(comm.size()) +
                                     ": it belongs to another MPI library than " + mpi::library_version()),
                       0);
        }
        return 2;
    }
    if (comm.size() > 1 && !is_simulated) {
        join_output(comm, arguments.joined);
    }
    try {
        mpi::no_return(comm, [&] {
            const Job job = receive_job(comm);
            if (job.command != "quit") {
                job.survive&& mpi::can_survive() ? run_surviving(comm, job) : run(comm, job);
            }
        });
    } catch (...) {
        const Error error = error_in_flight();
        if (comm.rank() == 0) {
            emit_error(error, std::max(error.rank(), 0));
        }
    }
    return 0;
}

}  // namespace

}  // namespace tilewise::worker

int main(int argc, char** argv) {
    using namespace tilewise;
    worker::Arguments arguments;
    try {
        arguments = worker::parse_arguments(argc, argv);
        if (arguments.transposed_item > 0) {
            kernel::backend();
        }
    } catch (const Error& error) {
        std::cerr << "tilewise-worker: " << error.what() << '\n';
        return 2;
    }
    if (arguments.describe) {
        std::cout << worker::describe() << '\n';
        return 0;
    }
    if (arguments.devices) {
        std::cout << worker::describe_devices() << '\n';
        return 0;
    }
    if (arguments.version) {
        std::cout << worker::build_version() << '\n';
        return 0;
    }
    if (arguments.unpack) {
        try {
            worker::unpack_samples(worker::read_job_text(), std::cout);
            return std::cout.flush() ? 0 : 1;
        } catch (const std::exception& error) {
            std::cerr << error.what() << '\n';
            return 2;
        }
    }
    if (arguments.transposed_item > 0) {
        const measure::MeasuredTile best = measure::transpose_tile(arguments.transposed_item, arguments.threads);
        const worker::Json said{{"rows", best.tile.rows},
                                {"columns", best.tile.columns},
                                {"streaming", best.tile.streaming},
                                {"bytes_per_second", best.bytes_per_second}};
        std::cout << said.text() << '\n';
        return 0;
    }
    if (char* phase = std::getenv("TILEWISE_PHASE"); phase != nullptr && *phase != '\0') {
        show_phase_at(phase);  // where the kernel shows it to others
    }
    prctl(PR_SET_PDEATHSIG, SIGKILL);  // no rank outlives what started it
    std::signal(SIGPIPE, SIG_IGN);
    std::signal(SIGXFSZ, SIG_IGN);  // a write beyond a limit then fails, and can say where
    if (!is_simulated) {            // those ranks are one process, whose signals and end are no rank's own
        worker::tell_of_signals(worker::rank_by_environment());
        worker::hold_line(worker::Front::by_environment());
        worker::sweep_segments();
    }
    int provided = 0, rank = 0;
    MPI_Init_thread(&argc, &argv, worker::thread_level(), &provided);
    // What belongs to no communicator of ours, such as a request that a lost rank has made invalid, must not print and
    // abort.
    for (const MPI_Comm comm : {MPI_COMM_WORLD, MPI_COMM_SELF}) {
        MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    }
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (!is_simulated) {
        worker::tell_of_signals(rank);  // once more: libraries that MPI has loaded may have their own handlers
    }
    io::set_bus_error_message(worker::tell_of_bus_error);
    mpi::set_last_words(worker::speak_and_abort);
    const int code = worker::work(arguments);
    worker::leave_output();
    if (worker::has_lost_ranks()) {
        _exit(code);
    }
    MPI_Finalize();
    return code;
}
