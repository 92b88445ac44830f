// Tests of the memory that blocks of files come from: its content, what is refused, and a device's, which is only a
// fake where there is none.
#include <set>

#include "measure_file_cases.hpp"
#include "tilewise/device/block_memory.hpp"
#include "tilewise/measure/buffers.hpp"

using namespace tilewise;
using namespace tilewise::measure;
using namespace tilewise::test::measured_files;

TEST_CASE("patterns: content depends on rank, block, round and offset, and a wrong byte is found wherever it is") {
    std::set<std::uint64_t> seeds;
    for (int rank = -1; rank < 5; ++rank) {
        for (std::int64_t block = 0; block < 5; ++block) {
            for (int round = 0; round < 2; ++round) {
                seeds.insert(Pattern::of(rank, block, round).seed);
            }
        }
    }
    CHECK(seeds.size() == 6 * 5 * 2);
    const Pattern pattern = Pattern::of(3, 4, 1);
    for (const std::int64_t bytes : {1, 7, 8, 9, 29}) {
        for (const std::int64_t start : {0, 3}) {
            std::vector<std::byte> memory(static_cast<std::size_t>(start + bytes + 1), std::byte{0xee});
            std::byte* data = memory.data() + start;
            fill_plainly(data, bytes, pattern);
            for (std::int64_t i = 0; i < bytes; ++i) {
                CHECK(data[i] == static_cast<std::byte>(pattern.byte(i)));
            }
            CHECK(data[bytes] == std::byte{0xee});
            CHECK(compare_plainly(data, bytes, pattern) == -1);
            for (std::int64_t i = bytes - 1; i >= 0; --i) {
                data[i] ^= std::byte{1};
                CHECK(compare_plainly(data, bytes, pattern) == i);
            }
        }
    }
}

TEST_CASE("file: memory that calls cannot reach goes through a stage, on the device that is due") {
    World world;
    for (const auto& strategy : io::strategies) {
        if (strategy.only_reads) {
            continue;
        }
        for (const std::string cache : {"warm", "direct"}) {
            CAPTURE(strategy.name);
            CAPTURE(cache);
            Point point = world.point(std::string(strategy.name));
            point.buffer = "device";
            point.cache = cache;
            point.shift = 2;
            point.gpus = 2;
            const Measurement found = world.run(point, fake_hooks(3));
            if (found.skipped.empty() && world.comm.rank() == 0) {
                REQUIRE(found.devices.size() == static_cast<std::size_t>(world.comm.size()));
                for (std::size_t rank = 0; rank < found.devices.size(); ++rank) {
                    CHECK(found.devices[rank] == "Fake (" + std::to_string(rank % 2) + ", GPU-0)");
                }
            }
            CHECK((cache == "direct" || found.skipped.empty()));
            CHECK(FakeDevice::alive == 0);
        }
    }
    for (const std::string kind : {"pinned", "managed"}) {  // calls reach these
        for (const auto& strategy : io::strategies) {
            if (strategy.only_reads) {
                continue;
            }
            CAPTURE(strategy.name);
            Point point = world.point(std::string(strategy.name));
            point.buffer = kind;
            point.shift = 1;
            const Measurement found = world.run(point, fake_hooks(3));
            CHECK(found.skipped.empty());
            CHECK((world.comm.rank() > 0 || found.devices.size() == static_cast<std::size_t>(world.comm.size())));
            CHECK(FakeDevice::alive == 0);
        }
    }
    CHECK(device_of(world.comm, 3, 0) == world.comm.rank() % 3);
    CHECK(device_of(world.comm, 1, 6) == 0);
    CHECK(device_of(world.comm, 0, 2) == 0);
}

TEST_CASE("file: buffers that do not fit are not measured, and both numbers are said") {
    World world;
    Point point = world.point("positioned", 1000, 2);
    point.buffer = "managed";
    const std::int64_t needed = 2000 * world.comm.size();  // one device for all
    CHECK(world.run(point, fake_hooks(1, 2 * needed)).skipped.empty());
    const Measurement found = world.run(point, fake_hooks(1, 2 * needed - 2));
    CHECK(found.skipped.find(std::to_string(needed) + " bytes of managed") != std::string::npos);
    CHECK(found.skipped.find(std::to_string(2 * needed - 2) + " bytes free") != std::string::npos);
    CHECK(found.series.empty());
    CHECK(FakeDevice::alive == 0);
}

TEST_CASE("buffers: without a graphics processor every kind but malloc is refused, in words that say why") {
    World world;
    const device::Presence& found = device::presence();
    if (found.devices > 0) {
        return;  // see test_device.cpp
    }
    CHECK(!found.trouble.empty());
    for (const std::string name : {"pinned", "device", "managed"}) {
        CAPTURE(name);
        Point point = world.point("positioned", 70001, 5);
        point.buffer = name;
        const Error error = thrown(world, point);
        CHECK(error.kind() == ErrorKind::usage);
        CHECK(says(error, "--buffer " + name + " needs a graphics processor"));
        CHECK(says(error, found.trouble));
    }
    CHECK(device::make_memory("malloc", 0)->device().empty());
    CHECK_THROWS_AS(device::make_memory("stone", 0), UsageError);
}
