// Tests of what a machine or a size cannot have: skipped with the reason, on every rank; and of MPI calls that fail.
#include <cstring>
#include <doctest/doctest.h>
#include <fstream>

#include "faulty_mpi.hpp"
#include "measure_file_cases.hpp"
#include "tilewise/measure/buffers.hpp"
#include "tilewise/measure/file_sample.hpp"
#include "tilewise/measure/measure.hpp"
#include "tilewise/measure/ping.hpp"
#include "tilewise/mpi/datatype.hpp"
#include "tilewise/mpi/window.hpp"

using namespace tilewise;
using namespace tilewise::measure;
using namespace tilewise::test::measured_files;
using test::FaultyMpi;

namespace {

constexpr Stop quick{4, 8, 1, 0.5, 0.02};
constexpr std::int64_t no_memory_has = std::int64_t{1} << 46;

Point point_of(const std::string& kind, const std::string& name, std::int64_t bytes) {
    Point point;
    point.kind = kind;
    point.name = name;
    point.pattern = kind == "ping" ? "roundtrip" : "library";
    point.bytes = bytes;
    point.pairs = {{0, 1}};
    point.size = bytes;
    point.dtype = "float64";
    return point;
}

/// The reason, which must be the same on every rank, with nothing measured.
std::string skipped(World& world, const Point& point) {
    Measurement found;
    for (const KindEntry& kind : kinds) {
        found = kind.name == point.kind ? kind.measure(world.context, point, quick, Clock{}) : found;
    }
    CHECK(found.series.empty());
    std::size_t mine = std::hash<std::string>{}(found.skipped), first = mine;
    MPI_Bcast(&first, sizeof first, MPI_BYTE, 0, world.comm.get());
    CHECK(mine == first);
    return found.skipped;
}

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

}  // namespace

TEST_CASE("limits: sizes that arrays, sums and ranks cannot have are skipped") {
    World world;
    Point small = point_of("memory", "copy", 4096);
    small.threads = 96;
    CHECK(has(skipped(world, small), "fewer cache lines of 64 than there are threads, 96"));
    CHECK(has(skipped(world, point_of("memory", "triad", 8)), "8 bytes has fewer cache lines"));
    CHECK(has(skipped(world, point_of("memory", "read", 4097)), "4097 bytes are not a whole number"));
    if (world.comm.size() > 1) {
        CHECK(has(skipped(world, point_of("collective", "allreduce", 12)), "12 bytes are not a whole number"));
        CHECK(has(skipped(world, point_of("collective", "allreduce", std::int64_t{1} << 35)), "at most 2147483647"));
    } else {
        CHECK(has(skipped(world, point_of("collective", "bcast", 8)), "no partner to exchange with"));
    }
}

TEST_CASE("limits: what no memory holds is skipped before any of it is taken, with both numbers") {
    World world;
    const auto lacks = [&](const Point& point) {
        const std::string reason = skipped(world, point);
        CAPTURE(reason);
        CHECK(has(reason, " bytes of malloc memory, and of the "));
        CHECK(has(reason, " bytes free there at most 80 % are used"));
    };
    lacks(point_of("memory", "copy", no_memory_has));
    lacks(point_of("compute", "gemm", std::int64_t{1} << 22));
    CHECK(has(skipped(world, point_of("compute", "gemm", std::int64_t{1} << 40)), "more numbers than can be counted"));
    if (world.comm.size() > 1) {
        lacks(point_of("ping", "blocking", no_memory_has));
        lacks(point_of("ping", "put", no_memory_has));
        for (const char* name : {"bcast", "scatter", "gather", "alltoallv"}) {
            lacks(point_of("collective", name, no_memory_has));
        }
    }
    CHECK(lacks_host_memory(world.comm, 1).empty());
    const MemoryBudget tight{"node", "malloc", 0.5, 100 * world.comm.size()};
    CHECK(exceeds_budget(world.comm, world.comm, tight, 50).empty());
    CHECK(has(exceeds_budget(world.comm, world.comm, tight, world.comm.rank() == 0 ? 51 : 50), "at most 50 %"));
}

TEST_CASE("limits: a stage counts as host memory for a device's memory only") {
    World world;
    CHECK(has(lacks_host_memory(world.comm, no_memory_has, "pinned"), "bytes of pinned memory"));
    CHECK(lacks_host_memory(world.comm, 1, "pinned").empty());
    Point point =
        world.point("two_phase", std::int64_t{1} << 36, 1 << 10);  // a stage of all blocks, of which no host has room
    point.buffer = "device";
    const Measurement found = world.run(point, fake_hooks(1, std::int64_t{1} << 60));
    CHECK(has(found.skipped, "bytes of pinned memory"));
    point.buffer = "managed";
    CHECK(!has(world.run(point, fake_hooks(1, std::int64_t{1} << 60)).skipped, "bytes of pinned memory"));
    CHECK(FakeDevice::alive == 0);
}

TEST_CASE("limits: messages of a derived type, as those beyond 2³¹ bytes are, arrive whole") {
    World world;
    if (world.comm.size() < 2) {
        return;
    }
    constexpr std::int64_t bytes = 30'000;
    const mpi::Datatype whole = mpi::strided(1, bytes, bytes, MPI_BYTE);
    for (const PingEntry& entry : ping_table) {
        CAPTURE(entry.name);
        CAPTURE(entry.pattern);
        const int partner = world.comm.rank() ^ 1;
        const bool in_pair = partner < world.comm.size(), first = world.comm.rank() % 2 == 0;
        std::vector<std::byte> out(bytes, first ? std::byte{3} : std::byte{4}), in(bytes);
        mpi::Exposed exposed = mpi::allocate_window(world.comm, bytes);
        std::memset(exposed.data, 4, bytes);
        world.comm.barrier();
        MPI_Win_lock_all(0, exposed.window.get());
        const Side side{world.comm.get(), partner, first, 1, whole.get(), out.data(), in.data(), exposed.window.get()};
        if (in_pair && (first || !entry.one_sided)) {
            entry.run(side, 2);
        }
        MPI_Win_unlock_all(exposed.window.get());
        world.comm.barrier();
        if (!in_pair) {
            continue;
        }
        if (entry.name == "put") {
            CHECK((first || exposed.data[bytes - 1] == std::byte{3}));
        } else if (entry.name == "get") {
            CHECK((!first || in.back() == std::byte{4}));
        } else if (!first || entry.pattern == "roundtrip") {
            CHECK(in.back() == (first ? std::byte{4} : std::byte{3}));
        }
    }
}

TEST_CASE("limits: where there are no windows, puts and gets are skipped with MPI's reason, and the next point works") {
    World world;
    if (world.comm.size() < 2) {
        return;
    }
    {
        FaultyMpi faults;
        faults.no_windows = true;
        for (const char* name : {"put", "get"}) {
            CHECK(has(skipped(world, point_of("ping", name, 8)), "MPI_Win_allocate"));
        }
    }
    const Measurement found = ping(world.context, point_of("ping", "put", 8), quick, Clock{});
    CHECK(found.skipped.empty());
    CHECK(found.series.size() == 1);
}

TEST_CASE("limits: collectives over several nodes say that the barrier is in them") {
    World world;
    if (world.comm.size() < 2) {
        return;
    }
    FaultyMpi faults;
    faults.everybody_alone = true;
    for (const char* name : {"bcast", "alltoallv"}) {
        const Measurement found = collective(world.context, point_of("collective", name, 64), quick, Clock{});
        CHECK(found.skipped.empty());
        REQUIRE(found.notes.size() == 1);
        CHECK(has(found.notes[0], "ranks on several nodes"));
        REQUIRE(found.series.size() == 1);
        CHECK((world.comm.rank() > 0 || found.series[0].samples.size() >= 3));
    }
}

TEST_CASE("limits: a file that cannot be closed is an error on every rank, and names the file") {
    World world;
    for (const std::string name : {"collective", "independent", "split_collective"}) {
        CAPTURE(name);
        FaultyMpi faults;
        faults.close_fails = world.comm.rank() == world.comm.size() - 1;
        const Point point = world.point(name);
        const Error error = thrown(world, point);
        CHECK(error.kind() == ErrorKind::io);
        CHECK(says(error, point.path + ": MPI_File_close"));
        CHECK(error.rank() == world.comm.size() - 1);
        CHECK(world.clean());
    }
}

TEST_CASE("limits: reads that are to be warm and are not say so") {
    World world;
    Point point = world.point("positioned", 1 << 20, 4);
    FileHooks hooks = file_hooks();
    double stayed = 0;
    hooks.before_reading = [&] {
        const FilePlace place{world.comm.size(), point.blocks, point.bytes, FileLayout::interleaved, false, point.path};
        SampleFiles files(world.comm, place);
        stayed = files.drop_from_cache();
    };
    point.check = "none";
    const Measurement dropped =
        world.run(point, hooks, Stop{.least = 1, .most = 1, .warmup = 0, .relative = 1, .seconds = 0});
    const Measurement warm = world.run(point);
    CHECK(warm.notes.empty());
    if (stayed < 0.9) {  // a file system in memory drops nothing
        REQUIRE(dropped.notes.size() == 1);
        CHECK(has(dropped.notes[0], "these reads are not warm"));
    }
    // Where the first read does not count, those after it are warm again.
    CHECK(world.run(point, hooks, twice).notes.empty());
}
