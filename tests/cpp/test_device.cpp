// Tests of memory on graphics processors, against the driver of the tests (tests/cuda/driver.cpp), which counts what
// nobody gave back: content, devices of ranks, messages, and every fault that the driver can play.
//
// Without that driver there is nothing to test; ctest runs them with it as devices-N.
#include <csignal>
#include <cstdlib>
#include <dlfcn.h>
#include <set>
#include <sys/wait.h>
#include <unistd.h>

#include "measure_file_cases.hpp"
#include "tilewise/base/memory.hpp"
#include "tilewise/device/block_memory.hpp"
#include "tilewise/device/driver.hpp"
#include "tilewise/measure/ping.hpp"

using namespace tilewise;
using namespace tilewise::measure;
using namespace tilewise::test::measured_files;

namespace {

const std::array<std::string, 3> kinds_of_memory{"pinned", "device", "managed"};

/// The driver of the tests; each test begins and ends with a device as new, and nothing held.
class Driver {
public:
    Driver() {
        REQUIRE((is_there() || std::getenv("CUDA_TEST_EXPECTED") == nullptr));
        if (is_there()) {
            library_ = dlopen("libcuda.so.1", RTLD_NOW);
            plays("");
            CHECK(held() == 0);
        }
    }
    ~Driver() {
        if (is_there()) {
            CHECK(held() == 0);
            plays("");
            dlclose(library_);
        }
    }
    static bool is_there() { return device::presence().simulated; }

    long held() const { return call<long (*)()>("cuda_test_held")(); }
    /// From now on, `after` calls later; on `rank` alone where that is said.
    void plays(const std::string& fault, int after = 0, const std::string& rank = "") const {
        setenv("CUDA_TEST_FAULT", fault.c_str(), 1);
        setenv("CUDA_TEST_AFTER", std::to_string(after).c_str(), 1);
        setenv("CUDA_TEST_RANK", rank.c_str(), 1);
        call<void (*)()>("cuda_test_renew")();
    }

private:
    template <class F> F call(const char* name) const { return reinterpret_cast<F>(dlsym(library_, name)); }
    void* library_ = nullptr;
};

Measurement messages(World& world, const std::string& name, const std::string& pattern, const std::string& buffer,
                     bool direct, std::int64_t bytes = 3001) {
    Point point;
    point.kind = "ping";
    point.name = name;
    point.pattern = pattern;
    point.bytes = bytes;
    point.buffer = buffer;
    point.direct = direct;
    point.pairs = {{world.comm.size() - 1, 0}};
    return ping(world.context, point, Stop{.least = 2, .most = 2, .warmup = 0, .relative = 1, .seconds = 0.01},
                Clock{});
}

bool notes(const Measurement& found, const std::string& text) {
    return std::any_of(found.notes.begin(), found.notes.end(),
                       [&](const std::string& note) { return note.find(text) != std::string::npos; });
}

}  // namespace

TEST_CASE("devices: the driver says what there is") {
    const Driver driver;
    if (!Driver::is_there()) {
        return;
    }
    const device::Facts facts = device::facts();
    REQUIRE(facts.devices.size() == 2);
    CHECK(facts.driver == "12.4");
    CHECK(facts.devices[1].name == "simulated device (1, GPU-00000000-0000-0000-0000-000000000001)");
    CHECK(facts.devices[1].memory == std::int64_t{256} << 20);
    CHECK(facts.devices[1].compute == "9.0");
    CHECK((facts.devices[0].unified_addressing && facts.devices[0].managed && facts.devices[0].migrates));
    CHECK(facts.devices[0].peers == std::vector<int>{1});
    driver.plays("no_peer");
    CHECK(device::facts().devices[0].peers.empty());
}

TEST_CASE("devices: content is made and checked where the memory is, from any byte on") {
    const Driver driver;
    if (!Driver::is_there()) {
        return;
    }
    for (const std::string& name : kinds_of_memory) {
        CAPTURE(name);
        const auto memory = device::make_memory(name, 1);
        CHECK(memory->name() == name);
        const std::int64_t free = memory->free_bytes();
        memory->allocate(5000);
        CHECK((name == "pinned" || memory->free_bytes() < free - 5000));
        CHECK(reinterpret_cast<std::uintptr_t>(memory->device_address()) % page == 0);
        CHECK((memory->address() == nullptr) == (name == "device"));
        const Pattern pattern = Pattern::of(1, 2, 3);
        memory->fill(3, 4997, pattern);
        std::vector<std::byte> plain(4997), copy(4997);
        fill_plainly(plain.data(), 4997, pattern);
        memory->to_host(copy.data(), 3, 4997);
        CHECK(copy == plain);
        CHECK(memory->compare(3, 4997, pattern) == -1);
        for (const std::size_t wrong : {4996, 1234, 0}) {
            copy[wrong] ^= std::byte{1};
            memory->from_host(3, copy.data(), 4997);
            CHECK(memory->compare(3, 4997, pattern) == static_cast<std::int64_t>(wrong));
        }
        std::byte* stage = memory->stage(100);
        stage[99] = memory->stage(200)[199];  // the first has gone
        CHECK(driver.held() > 0);
    }
}

TEST_CASE("devices: the host that touches their memory dies of it") {
    const Driver driver;
    if (!Driver::is_there()) {
        return;
    }
    const auto memory = device::make_memory("device", 0);
    memory->allocate(4096);
    const pid_t child = fork();
    if (child == 0) {
        std::signal(SIGSEGV, SIG_DFL);
        *const_cast<volatile std::byte*>(memory->device_address()) = std::byte{1};
        _exit(0);
    }
    int status = 0;
    REQUIRE(waitpid(child, &status, 0) == child);
    CHECK(WIFSIGNALED(status));
}

TEST_CASE("devices: files are measured from and into memory of the device that is due, by every strategy") {
    World world;
    const Driver driver;
    if (!Driver::is_there()) {
        return;
    }
    for (const std::string& kind : kinds_of_memory) {
        for (const auto& strategy : io::strategies) {
            if (strategy.only_reads) {
                continue;
            }
            CAPTURE(kind);
            CAPTURE(strategy.name);
            Point point = world.point(std::string(strategy.name));
            point.buffer = kind;
            point.shift = 1;
            const Measurement found = world.run(point);
            CHECK(found.skipped.empty());
            CHECK(found.simulated_devices);
            for (std::size_t rank = 0; rank < found.devices.size(); ++rank) {
                CHECK(found.devices[rank].find("(" + std::to_string(rank % 2)) != std::string::npos);
            }
            CHECK((world.comm.rank() > 0 || found.devices.size() == static_cast<std::size_t>(world.comm.size())));
            CHECK(driver.held() == 0);
        }
    }
}

TEST_CASE("devices: blocks go straight between files and the device, in whatever parts, in every layout") {
    World world;
    const Driver driver;
    if (!Driver::is_there()) {
        return;
    }
    Point point = world.point("gpudirect", 131'072 + 4096, 3);
    point.buffer = "device";
    point.cache = "direct";
    point.shift = 1;
    for (const std::string layout : {"interleaved", "contiguous", "per_rank"}) {
        CAPTURE(layout);
        point.layout = layout;
        CHECK(world.run(point).skipped.empty());
        CHECK(driver.held() == 0);
        CHECK(world.clean());
    }
    for (const auto& [fault, text] : {std::pair{"storage_lacks", "cuFileDriverOpen failed with 5001"},
                                      std::pair{"storage_failed", "GPUDirect Storage failed with 5008"},
                                      std::pair{"storage_ended", ": the file ends"},
                                      std::pair{"wrong_bytes", "came back wrong from its byte 20000 on"}}) {
        driver.plays(fault);
        const Error error = thrown(world, point);
        CHECK(error.kind() == ErrorKind::io);
        CHECK(says(error, text));
        CHECK(driver.held() == 0);
        CHECK(world.clean());
    }
    driver.plays("");
    point.cache = "warm";
    CHECK(world.run(point).skipped.find("--cache direct") != std::string::npos);
    point.buffer = "managed";
    CHECK(world.run(point).skipped.find("--buffer device") != std::string::npos);
}

TEST_CASE("devices: what fails on one is one error on every rank, and nothing stays behind") {
    World world;
    const Driver driver;
    if (!Driver::is_there()) {
        return;
    }
    const std::string last = std::to_string(world.comm.size() - 1);
    const auto fails = [&](const std::string& fault, const std::string& buffer, int after, const std::string& rank) {
        Point point = world.point("positioned", 5000, 3);
        point.buffer = buffer;
        driver.plays(fault, after, rank);
        const Error error = thrown(world, point);
        CHECK(driver.held() == 0);
        driver.plays("");
        CHECK(world.clean());
        return error;
    };
    for (const std::string& rank : {std::string(), last}) {
        const int first_rank = rank.empty() ? 0 : world.comm.size() - 1;
        CAPTURE(rank);
        for (const std::string& kind : kinds_of_memory) {
            CAPTURE(kind);
            const Error error = fails("out_of_memory", kind, 0, rank);
            CHECK(error.kind() == ErrorKind::memory);
            CHECK(error.rank() == first_rank);
            CHECK(says(error, "CUDA_ERROR_OUT_OF_MEMORY"));
            CHECK(says(error, "of 15000 bytes failed on graphics processor " + std::to_string(first_rank % 2)));
        }
        const Error launch = fails("launch_failed", "managed", 1, rank);
        CHECK(launch.kind() == ErrorKind::io);
        CHECK(launch.rank() == first_rank);
        CHECK(says(launch, "CUDA_ERROR_LAUNCH_FAILED"));
        const Error wrong = fails("wrong_bytes", "device", 2, rank);
        CHECK(says(wrong, "came back wrong from its byte 2500 on"));
        int calls = 0;
        for (bool lost = true; lost; calls += 7) {  // ever later, until it gets through
            const Error error = fails("lost", "device", calls, rank);
            lost = error.kind() == ErrorKind::io;
            CHECK((lost || error.kind() == ErrorKind::internal));
            CHECK(says(error, lost ? "CUDA_ERROR_UNKNOWN" : ""));
            CHECK((!lost || error.rank() == first_rank));
        }
        CHECK(calls > 70);
    }
    Point point = world.point("positioned", 64 << 20, 4);
    point.buffer = "managed";
    CHECK(world.run(point).skipped.find("bytes of managed memory") != std::string::npos);
}

TEST_CASE("devices: messages go straight where MPI takes their addresses, else through pinned memory") {
    World world;
    const Driver driver;
    if (!Driver::is_there() || world.comm.size() < 2) {
        return;
    }
    setenv("CUDA_TEST_READABLE", "1", 1);  // as if this MPI took the addresses of devices
    for (const std::string& buffer : kinds_of_memory) {
        for (const bool direct : {false, true}) {
            for (const PingEntry& entry : ping_table) {
                CAPTURE(buffer);
                CAPTURE(direct);
                CAPTURE(entry.name);
                const Measurement found =
                    messages(world, std::string(entry.name), std::string(entry.pattern), buffer, direct);
                CHECK(found.skipped.empty() == (!entry.one_sided || buffer == "pinned"));
                if (!found.skipped.empty()) {
                    CHECK(says(Error(ErrorKind::usage, found.skipped), "blocking and nonblocking"));
                    continue;
                }
                CHECK(found.simulated_devices);
                CHECK(notes(found, "staged") == (buffer != "pinned" && !direct));
                CHECK(notes(found, "direct") == (buffer != "pinned" && direct));
                CHECK(driver.held() == 0);
            }
        }
    }
    unsetenv("CUDA_TEST_READABLE");
    driver.plays("no_peer");
    CHECK(notes(messages(world, "blocking", "roundtrip", "device", false), "refuse peer access") ==
          (world.comm.size() % 2 == 0));  // of three, the first and the last share a device
}

TEST_CASE("devices: a message that arrives wrong is an error on every rank") {
    World world;
    const Driver driver;
    if (!Driver::is_there() || world.comm.size() < 2) {
        return;
    }
    driver.plays("wrong_bytes", 0, "0");
    try {
        messages(world, "blocking", "roundtrip", "device", false);
        CHECK(false);
    } catch (const Error& error) {
        CHECK(says(error, "from rank 0 arrived wrong from its byte 1500 on"));
    }
}
