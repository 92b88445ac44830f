// Every operation fails in every step that may fail, with every kind of error: all ranks throw the same, nothing is
// left behind, and the program goes on.
#include <array>
#include <doctest/doctest.h>
#include <filesystem>
#include <functional>

#include "faulty_mpi.hpp"
#include "io_cases.hpp"
#include "tilewise/convert/convert.hpp"
#include "tilewise/mpi/together.hpp"
#include "tilewise/multiply/multiply.hpp"
#include "tilewise/norm/norm.hpp"
#include "tilewise/stencil/stencil.hpp"
#include "tilewise/svd/jacobi.hpp"
#include "tilewise/svd/svd.hpp"
#include "tilewise/transpose/transpose.hpp"

using namespace tilewise;
using test::Scratch;

namespace {

constexpr std::array kinds{ErrorKind::usage,    ErrorKind::memory,       ErrorKind::io,      ErrorKind::mpi,
                           ErrorKind::launcher, ErrorKind::verification, ErrorKind::stopped, ErrorKind::internal};

template <ErrorKind kind> bool is(const Error& error) { return dynamic_cast<const ErrorOf<kind>*>(&error) != nullptr; }

bool has_type_of(const Error& error, ErrorKind kind) {
    constexpr std::array is_of{is<ErrorKind::usage>,   is<ErrorKind::memory>,   is<ErrorKind::io>,
                               is<ErrorKind::mpi>,     is<ErrorKind::launcher>, is<ErrorKind::verification>,
                               is<ErrorKind::stopped>, is<ErrorKind::internal>};
    return is_of[static_cast<std::size_t>(kind)](error);
}

/// Fails step `step` of the whole communicator on one rank, or counts steps only.
class Fault {
public:
    Fault(const mpi::Communicator& comm, int step, int rank, ErrorKind kind) {
        mpi::set_step_fault(
            [this, size = comm.size(), mine = comm.rank() == rank, step, kind](const mpi::Communicator& who) {
                if (who.size() == size && steps_++ == step && mine) {
                    throw Error(kind, "fault " + std::to_string(step), -1, 0, "; do this");
                }
            });
    }
    Fault(const Fault&) = delete;
    Fault& operator=(const Fault&) = delete;
    ~Fault() { mpi::set_step_fault({}); }

    int steps() const { return steps_; }

private:
    int steps_ = 0;
};

std::int64_t open_files() {
    return std::distance(std::filesystem::directory_iterator("/proc/self/fd"), std::filesystem::directory_iterator());
}

/// An operation and the options that this test has it take.
struct Operation {
    const char* name;
    std::function<void(Context& context)> run;
    bool all_kinds = false;  ///< else the kinds take turns
};

void run(const mpi::Communicator& comm, const Operation& operation) {
    Ledger ledger;
    Context context{comm, ledger, 1};
    ledger.start(Phase::input);
    operation.run(context);
    ledger.stop();
}

void fail(const mpi::Communicator& comm, const Operation& operation, int step, int rank, ErrorKind kind) {
    CAPTURE(operation.name);
    CAPTURE(step);
    CAPTURE(static_cast<int>(kind));
    const Fault fault(comm, step, rank, kind);
    const test::Held held = test::held_now();
    const std::int64_t files = open_files();
    bool thrown = false;
    try {
        run(comm, operation);
    } catch (const Error& error) {
        thrown = true;
        CHECK(has_type_of(error, kind));
        CHECK(error.kind() == kind);
        CHECK(error.agreed_by() == comm.size());
        CHECK(error.rank() == rank);
        CHECK(std::string(error.what()).find("fault " + std::to_string(step)) != std::string::npos);
        CHECK(error.advice() == "; do this");
    }
    CHECK(thrown);
    const test::Held left = test::held_now();
    CHECK(left.windows == held.windows);
    CHECK(left.files == held.files);
    CHECK(left.communicators == held.communicators);
    CHECK(open_files() == files);
}

void fail_everywhere(const mpi::Communicator& comm, const Operation& operation) {
    run(comm, operation);  // libraries keep what they open for the first time
    int steps = 0;
    {
        const Fault counter(comm, -1, 0, ErrorKind::usage);
        run(comm, operation);
        steps = counter.steps();
    }
    CHECK(steps > 2);
    int turn = 0;
    for (int step = 0; step < steps; ++step) {
        for (const ErrorKind kind : kinds) {
            ++turn;
            if (operation.all_kinds || turn % static_cast<int>(kinds.size()) == step % static_cast<int>(kinds.size())) {
                fail(comm, operation, step, turn % comm.size(), kind);
            }
        }
    }
    run(comm, operation);
}

/// A matrix of float64 in a file of its own; its numbers are made where `kind` names a generator.
struct MadeFile {
    Scratch scratch;
    io::Region region;

    MadeFile(const mpi::Communicator& comm, const std::string& ending, std::int64_t rows, std::int64_t columns)
        : scratch(comm, ending) {
        region.path = region.name = scratch.path;
        region.rows = rows;
        region.columns = columns;
        region.file_bytes = region.bytes();
        if (comm.rank() == 0) {
            std::ofstream(scratch.path, std::ios::binary).close();
            std::filesystem::resize_file(scratch.path, static_cast<std::uintmax_t>(region.bytes()));
        }
        comm.barrier();
    }

    MadeFile& fill(const mpi::Communicator& comm) {
        io::Region made = region;
        made.path.clear();
        made.generator = "normal";
        run(comm, {"fill", [&](Context& context) {
                       convert::convert(context, made, region,
                                        {.hints = {}, .grid = {comm.size(), 1}, .band_bytes = 4096});
                   }});
        return *this;
    }
};

}  // namespace

TEST_CASE("errors: every operation fails alike on all ranks in every step, and can be called again") {
    const mpi::Communicator comm(MPI_COMM_WORLD);
    if (comm.size() != 3) {
        return;  // three ranks have a middle one, and make grids that are not square
    }
    MadeFile a(comm, ".a", 24, 18), b(comm, ".b", 18, 21), c(comm, ".c", 24, 21), transposed(comm, ".t", 18, 24),
        same(comm, ".s", 24, 18), tall(comm, ".tall", 60, 6);
    MadeFile u(comm, ".u", 24, 18), s(comm, ".sigma", 1, 18), vt(comm, ".vt", 18, 18);
    for (MadeFile* input : {&a, &b, &tall}) {
        input->fill(comm);
    }
    const auto multiply = [&](const char* exchange, const char* io, grid::Grid grid) {
        return [&, exchange, io, grid](Context& context) {
            multiply::Options options;
            options.exchange = multiply::exchange_named(exchange);
            options.read = options.write = io::strategy_named(io);
            options.grid = grid;
            options.read_back = true;
            multiply::multiply(context, a.region, b.region, &c.region, Dtype::float64, options);
        };
    };
    const auto transpose = [&](const char* algorithm, const char* exchange, const char* io) {
        return [&, algorithm, exchange, io](Context& context) {
            transpose::Options options;
            options.algorithm = transpose::algorithm_named(algorithm);
            options.exchange = mpi::exchange_named(exchange, mpi::exchange_names_without());
            options.read = options.write = io::strategy_named(io);
            options.grid = {3, 1};
            options.verify = Verify::fast;
            transpose::transpose(context, a.region, transposed.region, options);
        };
    };
    const auto stencil = [&](const char* exchange, const char* halo, const char* io) {
        return [&, exchange, halo, io](Context& context) {
            stencil::Options options;
            options.steps = 3;
            options.weights.radius = 1;
            options.weights.values = {0, 0.25, 0, 0.25, 0, 0.25, 0, 0.25, 0};
            options.exchange = stencil::exchange_named(exchange);
            options.halo = stencil::halo_named(halo);
            options.read = options.write = io::strategy_named(io);
            options.grid = {3, 1};
            options.verify = Verify::fast;
            stencil::stencil(context, a.region, same.region, {}, Dtype::float64, options);
        };
    };
    const auto svd = [&](const char* algorithm, const char* exchange, svd::StartKind start) {
        return [&, algorithm, exchange, start](Context& context) {
            svd::Options options;
            options.algorithm = svd::algorithm_named(algorithm);
            options.exchange = svd::exchange_named(exchange);
            options.start = start;
            options.components = 4;
            options.verify = Verify::fast;
            const auto cut = [](io::Region region, std::int64_t rows, std::int64_t columns) {
                region.rows = rows;
                region.columns = columns;
                region.file_bytes = -1;
                return region;
            };
            const svd::Files files{cut(u.region, 24, 4), cut(s.region, 1, 4), cut(vt.region, 4, 18), {}};
            svd::decompose(context, a.region, files, Dtype::float64, options);
        };
    };
    const auto values = [&](Context& context) {
        svd::Options options;
        options.exchange = mpi::ExchangeKind::blocking;
        options.values_only = true;
        io::Region sigma = s.region;
        sigma.columns = 6;
        sigma.file_bytes = -1;
        svd::decompose(context, tall.region, {{}, sigma, {}, {}}, Dtype::float64, options);
    };
    const std::vector<Operation> operations{
        {"multiply", multiply("overlap", "positioned", {1, 3}), true},
        {"multiply, shared memory", multiply("shared", "collective", {3, 1})},
        {"multiply, windows", multiply("one_sided_lock", "two_phase", {1, 3})},
        {"multiply, fences", multiply("one_sided_fence", "sieve", {1, 3})},
        {"transpose", transpose("swap", "one_sided_lock", "positioned"), true},
        {"transpose, shared memory", transpose("swap", "shared", "split_collective")},
        {"transpose, gathered", transpose("gather", "nonblocking", "positioned")},
        {"transpose, read again", transpose("reread", "none", "independent")},
        {"transpose, staged", transpose("staged", "none", "mapped")},
        {"stencil", stencil("overlap", "packed", "positioned"), true},
        {"stencil, shared memory", stencil("shared", "packed", "collective")},
        {"stencil, windows", stencil("one_sided_lock", "datatype", "root")},
        {"stencil, neighbourhood", stencil("collective", "datatype", "root_collective")},
        {"svd", svd("jacobi", "overlap", svd::StartKind::eigen), true},
        {"svd, windows", svd("jacobi", "one_sided_lock", svd::StartKind::qr)},
        {"svd, randomized", svd("randomized", "none", svd::StartKind::eigen)},
        {"svd, values of a tall matrix", values},
        {"convert",
         [&](Context& context) {
             convert::convert(context, a.region, same.region,
                              {.hints = {}, .grid = {3, 1}, .band_bytes = 1024, .sync = true, .read_back = true});
         },
         true},
        {"norm", [&](Context& context) { norm::norms(context, a.region, {.hints = {}, .band_bytes = 1024}); }, true},
    };
    for (const Operation& operation : operations) {
        fail_everywhere(comm, operation);
    }
}
