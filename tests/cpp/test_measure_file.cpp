// Tests of the measurement of files: what lies in them, by plain reading, and what is refused.
#include <algorithm>
#include <fstream>
#include <set>

#include "measure_file_cases.hpp"
#include "tilewise/measure/file_sample.hpp"

using namespace tilewise;
using namespace tilewise::measure;
using namespace tilewise::test::measured_files;

namespace {

/// The bytes that a block must have in its file, read without any of our code, after the second round of writing.
void require_block(const FilePlace& place, int rank, std::int64_t block) {
    std::ifstream in(place.path_of(rank), std::ios::binary);
    std::string bytes(static_cast<std::size_t>(place.bytes), '\0');
    const std::int64_t offset = place.layout == FileLayout::interleaved  ? (block * place.ranks + rank) * place.bytes
                                : place.layout == FileLayout::contiguous ? (rank * place.blocks + block) * place.bytes
                                                                         : block * place.bytes;
    in.seekg(offset);
    in.read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    REQUIRE(in.gcount() == place.bytes);
    const Pattern pattern = Pattern::of(rank, block, 1);
    std::int64_t wrong = 0;
    for (std::int64_t i = 0; i < place.bytes; ++i) {
        wrong += static_cast<unsigned char>(bytes[static_cast<std::size_t>(i)]) != pattern.byte(i) ? 1 : 0;
    }
    CHECK(wrong == 0);
}

}  // namespace

TEST_CASE("places: blocks cover the files once, and memory without overlap") {
    for (const auto layout : {FileLayout::interleaved, FileLayout::contiguous, FileLayout::per_rank}) {
        for (const bool direct : {false, true}) {
            const FilePlace place{3, 4, 5000, layout, direct, "x"};
            std::set<std::pair<std::string, std::int64_t>> offsets;
            for (int rank = 0; rank < place.ranks; ++rank) {
                std::int64_t last = 0;
                for (std::int64_t block = 0; block < place.blocks; ++block) {
                    const std::int64_t offset = place.offset(rank, block), slot = place.slot(rank, block);
                    CHECK(offset % place.bytes == 0);
                    CHECK(offset + place.bytes <= place.file_bytes());
                    offsets.emplace(place.path_of(rank), offset);
                    CHECK(slot >= last);
                    last = slot + place.bytes;
                    CHECK(last <= place.memory_bytes());
                    CHECK((!direct || slot % page == offset % page));
                }
            }
            CHECK(offsets.size() == 12);
            CHECK(place.files() * place.file_bytes() == place.total_bytes());
        }
    }
}

TEST_CASE("file: every strategy, layout, shift and cache writes what it should and reads it back") {
    World world;
    const std::set<std::string> alone{"per_rank", "positioned", "independent", "mapped"};
    const std::set<std::string> direct{"per_rank", "positioned", "uncached"};
    for (const auto& strategy : io::strategies) {
        for (const std::string layout : {"interleaved", "contiguous", "per_rank"}) {
            for (const std::string cache : {"warm", "cold", "direct"}) {
                for (const int shift : cache == "warm" ? std::vector{0, 1, 5} : std::vector{1}) {
                    const std::string name(strategy.name);
                    CAPTURE(name);
                    CAPTURE(layout);
                    CAPTURE(cache);
                    CAPTURE(shift);
                    Point point = world.point(name);
                    point.layout = layout;
                    point.cache = cache;
                    point.shift = shift;
                    point.sync = shift == 5;
                    int looked = 0;
                    FileHooks hooks = file_hooks();
                    hooks.before_reading = [&] {
                        const FilePlace place{world.comm.size(),
                                              point.blocks,
                                              point.bytes,
                                              layout == "interleaved"  ? FileLayout::interleaved
                                              : layout == "contiguous" ? FileLayout::contiguous
                                                                       : FileLayout::per_rank,
                                              false,
                                              point.path};
                        world.comm.barrier();
                        for (std::int64_t block = 0; block < point.blocks; ++block) {
                            require_block(place, world.comm.rank(), block);
                        }
                        CHECK(std::filesystem::file_size(place.path_of(0)) ==
                              static_cast<std::uintmax_t>(place.file_bytes()));
                        world.comm.barrier();
                        ++looked;
                    };
                    const Measurement found = world.run(point, hooks);
                    const bool able = !strategy.only_reads &&
                                      (layout == "per_rank" ? alone.count(name) > 0 : name != "per_rank") &&
                                      (cache != "direct" || direct.count(name) > 0);
                    if (found.skipped.find("past the page cache: ") != std::string::npos) {
                        continue;  // this file system has no O_DIRECT
                    }
                    CHECK(found.skipped.empty() == able);
                    CHECK(looked == (able ? 1 : 0));
                    if (able && world.comm.rank() == 0) {
                        REQUIRE(found.series.size() == 3);
                        CHECK(found.series[0].name == "write_new");
                        CHECK(found.series[1].name == "write");
                        CHECK(found.series[2].name == "read");
                        for (const Series& series : found.series) {
                            CHECK(series.samples.size() == 2);
                            CHECK(series.by_rank.size() == static_cast<std::size_t>(world.comm.size()));
                            CHECK(*std::min_element(series.samples.begin(), series.samples.end()) > 0);
                        }
                        CHECK(found.devices.empty());
                    }
                    CHECK(world.clean());
                }
            }
        }
    }
}

TEST_CASE("file: what comes back wrong is an error that names file, rank and block, and the sample goes") {
    World world;
    for (const std::string name : {"positioned", "collective", "mapped", "two_phase"}) {
        CAPTURE(name);
        Point point = world.point(name);
        point.shift = 1;
        FileHooks hooks = file_hooks();
        hooks.before_reading = [&] {
            if (world.comm.rank() == 0) {  // byte 7 of block 2 of rank 0
                std::fstream file(point.path, std::ios::binary | std::ios::in | std::ios::out);
                file.seekp(2 * world.comm.size() * point.bytes + 7);
                file.put(static_cast<char>(Pattern::of(0, 2, 1).byte(7) ^ 0x40));
            }
            world.comm.barrier();
        };
        const Error error = thrown(world, point, hooks);
        CHECK(error.kind() == ErrorKind::io);
        CHECK(says(error, point.path + ": block 2 of rank 0 came back wrong from its byte 7 on"));
        CHECK(error.rank() == world.comm.size() - 1);  // rank 0 is the one above the last
        CHECK(world.clean());
        point.check = "counts";  // nobody looks
        CHECK_NOTHROW(world.run(point, hooks));
    }
}

TEST_CASE("file: a file that is cut short under the reads is an error on every rank") {
    World world;
    Point point = world.point("positioned");
    FileHooks hooks = file_hooks();
    hooks.before_reading = [&] {
        if (world.comm.rank() == 0) {
            std::filesystem::resize_file(point.path, 100);
        }
        world.comm.barrier();
    };
    const Error error = thrown(world, point, hooks);
    CHECK(error.kind() == ErrorKind::io);
    CHECK(says(error, point.path + ": ended at byte"));
    CHECK(world.clean());
    point.name = "independent";  // MPI says how much it read, or what it says is compared with the file
    point.check = "counts";
    const Error short_read = thrown(world, point, hooks);
    CHECK((says(short_read, "moved") || says(short_read, ": ended at byte")));
    CHECK(world.clean());
}

TEST_CASE("file: a disk that would become full is not written to") {
    World world;
    const Point point = world.point("positioned", 10000, 10);
    const std::int64_t needed = 105000 * world.comm.size();
    std::int64_t free = needed - 1;
    bool made = false;
    FileHooks hooks = file_hooks();
    hooks.free_on_disk = [&](const std::string& path, std::int64_t buffers) {
        CHECK(path == point.path);
        CHECK(buffers == 100000 * world.comm.size());
        return free;
    };
    hooks.before_reading = [&] { made = true; };
    const Measurement found = world.run(point, hooks);
    CHECK(found.skipped.find(std::to_string(free)) != std::string::npos);
    CHECK(found.skipped.find(std::to_string(needed)) != std::string::npos);
    CHECK(!made);
    CHECK(world.clean());
    free = needed;
    CHECK(world.run(point, hooks).skipped.empty());
    CHECK(made);
    CHECK(free_on_disk(point.path, 0) > 0);
    CHECK_THROWS_AS(free_on_disk("/nowhere/at/all", 0), IoError);
}

TEST_CASE("file: a request that makes no sense is refused on every rank, and touches nothing") {
    World world;
    const auto refused = [&](const auto& change, const std::string& text) {
        Point point = world.point("positioned");
        change(point);
        const Error error = thrown(world, point);
        CAPTURE(text);
        CAPTURE(error.what());
        CHECK(error.kind() == ErrorKind::usage);
        CHECK(says(error, text));
    };
    refused([](Point& p) { p.name = "osmosis"; }, "osmosis");
    refused([](Point& p) { p.layout = "spiral"; }, "spiral");
    refused([](Point& p) { p.cache = "lukewarm"; }, "lukewarm");
    refused([](Point& p) { p.check = "twice"; }, "twice");
    refused([](Point& p) { p.buffer = "paper"; }, "paper");
    refused([](Point& p) { p.bytes = 0; }, "a block size of 0");
    refused([](Point& p) { p.blocks = -1; }, "-1");
    refused([](Point& p) { p.shift = -1; }, "-1");
    refused([](Point& p) { p.gpus = -1; }, "-1");
    refused([](Point& p) { p.path = ""; }, "sample file");
    CHECK(world.clean());

    if (world.comm.rank() == 0) {
        std::ofstream(world.scratch.path) << "mine";
    }
    world.comm.barrier();
    refused([](Point&) {}, "already exists");
    CHECK(std::filesystem::file_size(world.scratch.path) == 4);
    world.comm.barrier();
}

TEST_CASE("file: the number of samples follows the stop, and a dear sample is taken once") {
    World world;
    const Point point = world.point("positioned", 4096, 2);
    const Measurement cold = world.run(point, file_hooks(), Stop{4, 4, 0, 0.05, 60});
    const Measurement fixed = world.run(point, file_hooks(), Stop{5, 5, 1, 0.05, 60});
    const Measurement dear = world.run(point, file_hooks(), Stop{10, 200, 2, 0.05, 0});
    for (std::size_t series = 0; series < 3; ++series) {  // what did not count, as it really was
        CHECK(fixed.series[series].warmup == 1);
        CHECK(dear.series[series].warmup == 0);
        CHECK(cold.series[series].warmup == 0);
    }
    if (world.comm.rank() == 0) {
        CHECK(cold.series[1].samples.size() == 4);
        CHECK(fixed.series[1].samples.size() == 5);
        CHECK(fixed.series[2].samples.size() == 5);
        CHECK(dear.series[0].samples.size() == 1);
        CHECK(dear.series[1].samples.size() == 3);
        CHECK(dear.series[2].samples.size() == 3);
    }
}

TEST_CASE("file: a pause comes before one write of a new file more") {
    World world;
    Point point = world.point("positioned", 4096, 2);
    point.pause = 1;
    const double begin = now();
    const Measurement found = world.run(point);
    CHECK(now() - begin >= 1);
    REQUIRE(found.series.size() == 4);
    if (world.comm.rank() == 0) {
        CHECK(found.series[3].name == "write_rested");
        REQUIRE(found.series[3].samples.size() == 1);
        CHECK(found.series[3].samples[0] < 1);  // the pause does not count
    }
    CHECK(world.clean());
}

TEST_CASE("file: what the page cache has of a file is seen, and dropped") {
    World world;
    const FilePlace place{world.comm.size(), 4, 100000, FileLayout::contiguous, false, world.scratch.path};
    SampleFiles files(world.comm, place);
    files.make_new();
    if (world.comm.rank() == 0) {
        std::ofstream(place.path, std::ios::binary)
            << std::string(static_cast<std::size_t>(place.file_bytes()), 'x') << std::flush;
    }
    world.comm.barrier();
    CHECK(cached_share(place.path) > 0.9);
    world.comm.barrier();
    const double stayed = files.drop_from_cache();
    CHECK(stayed <= 1);
    CHECK(cached_share(place.path) <= stayed);
    Point point = world.point("positioned");
    point.path += "-cold";
    point.cache = "cold";
    const Measurement found = world.run(point);
    if (world.comm.rank() == 0) {
        REQUIRE(found.notes.size() == 1);
        CHECK((found.notes[0].find(stayed > 0.01 ? "these reads are not cold" : "was in the page cache") !=
               std::string::npos));
    }
}
