// Tests of what is asked of each host before any work: the same files, the same folder, memory enough, one version.
#include <cstdio>
#include <cstring>
#include <doctest/doctest.h>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <functional>
#include <sys/stat.h>
#include <unistd.h>
#include <vector>

#include "tilewise/base/host.hpp"
#include "tilewise/io/site.hpp"
#include "tilewise/mpi/together.hpp"

using namespace tilewise;
using namespace tilewise::io;
namespace fs = std::filesystem;

namespace {

/// A folder of this rank alone, gone afterwards.
struct Folder {
    Folder() : path(fs::temp_directory_path() / ("tilewise-site-" + std::to_string(getpid()))) {
        fs::create_directories(path);
    }
    ~Folder() { fs::remove_all(path); }
    std::string put(const std::string& name, const std::string& text) const {
        fs::create_directories((path / name).parent_path());
        std::ofstream(path / name, std::ios::binary) << text;
        return path / name;
    }
    fs::path path;
};

std::string said_by(const std::function<void()>& what, ErrorKind kind = ErrorKind::usage) {
    try {
        what();
    } catch (const Error& error) {
        CHECK(error.kind() == kind);
        return error.what();
    }
    return "";
}

/// What a front would tell of a file.
Seen seen_of(const std::string& path, int pages = 4) {
    struct stat facts{};
    REQUIRE(stat(path.c_str(), &facts) == 0);
    Seen seen{.path = path, .name = "A.npy", .bytes = facts.st_size};
    seen.modified = facts.st_mtim.tv_sec * 1'000'000'000 + facts.st_mtim.tv_nsec;
    seen.inode = facts.st_ino;
    seen.begin = 128;
    seen.end = facts.st_size;
    seen.pages = pages;
    std::ifstream in(path, std::ios::binary);
    const std::int64_t last = seen.end - 4096 - seen.begin;
    for (int i = 0; i < pages; ++i) {
        std::vector<char> page(4096);
        in.clear();
        in.seekg(i == 0 ? 0 : seen.begin + last * (i - 1) / (pages - 2));
        in.read(page.data(), 4096);
        seen.digest = crc32(seen.digest, reinterpret_cast<const unsigned char*>(page.data()),
                            static_cast<std::size_t>(in.gcount()));
    }
    return seen;
}

}  // namespace

TEST_CASE("the checksum is zlib's") {
    const auto* text = reinterpret_cast<const unsigned char*>("123456789");
    CHECK(crc32(0, text, 9) == 0xCBF43926);
    CHECK(crc32(crc32(0, text, 4), text + 4, 5) == 0xCBF43926);
}

TEST_CASE("what the front made is found, or its folder is another one") {
    const Folder folder;
    const std::string part = folder.put("out/.C.npy.part", "12345678");
    CHECK(said_by([&] { require_made({part, "C.npy", 8}, "n1", "n2", 0); }).empty());
    CHECK(said_by([&] { require_made({folder.path / "out", "samples", -1}, "n1", "n2", 0); }).empty());
    const std::string other = "C.npy: the folder " + (folder.path / "out").string() + " is not the same on n1 and n2";
    CHECK(said_by([&] { require_made({folder.path / "out/.gone", "C.npy", 8}, "n1", "n2", 0); }) == other);
    CHECK(said_by([&] { require_made({part, "C.npy", 9}, "n1", "n2", 0.1); }) == other);
    CHECK(said_by([&] {
              require_made({part + "/below", "C.npy", 9}, "n1", "n2", 0);
          }).find("not the same on n1 and n2") != std::string::npos);
    CHECK(said_by([&] { require_made({folder.path / "out/.hidden", "C.npy", -1}, "n1", "n2", 0); }) == other);
}

TEST_CASE("an input is the same file, or a copy with its time") {
    const Folder folder;
    std::string text(40000, 'x');
    for (std::size_t i = 0; i < text.size(); ++i) {
        text[i] = static_cast<char>('a' + i % 23);
    }
    const Seen seen = seen_of(folder.put("A.npy", text));
    CHECK(said_by([&] { require_seen(seen, "n1", "n2"); }).empty());
    Seen here = seen;
    here.path = folder.path / "B.npy";
    CHECK(said_by([&] { require_seen(here, "n1", "n2"); }).find("A.npy cannot be read on n2, as it can on n1") == 0);

    const auto copy = [&](const std::string& content, std::int64_t modified) {
        folder.put("B.npy", content);
        const timespec times[2] = {{0, UTIME_OMIT}, {modified / 1'000'000'000, modified % 1'000'000'000}};
        REQUIRE(utimensat(AT_FDCWD, here.path.c_str(), times, 0) == 0);
        return said_by([&] { require_seen(here, "n1", "n2"); });
    };
    CHECK(copy(text, seen.modified).empty());
    CHECK(copy(text, seen.modified / 1'000'000'000 * 1'000'000'000).empty());  // a file system of whole seconds
    const std::string lead = "A.npy is not the same file on n1 and n2: ";
    CHECK(copy(text + "1", seen.modified) == lead + "40000 bytes on n1, 40001 on n2");
    CHECK(copy(text, seen.modified + 2'000'000'001).find(lead + "last written at ") == 0);
    for (const std::size_t at :
         {std::size_t{3}, std::size_t{200}, text.size() - 1}) {  // the header, the first numbers, the last
        std::string other = text;
        other[at] = '!';
        CHECK(copy(other, seen.modified) == lead + "of the same size, but with different contents");
    }
}

TEST_CASE("a node's memory must do for its ranks") {
    const Site site{
        .host = "n1", .view = "", .made = {}, .seen = {}, .memory = 8 << 20, .percent = 80, .node_ranks = 2};
    CHECK(said_by([&] { require_memory(site, 2, 10 << 20, 0, "n2"); }).empty());
    CHECK(said_by([&] { require_memory(site, 1, 5 << 20, 0, "n2"); }).empty());
    CHECK(said_by([&] { require_memory(site, 2, 9 << 20, 1 << 20, "n2"); }).empty());
    CHECK(said_by([&] { require_memory(site, 4, -1, 0, "n2"); }).empty());
    CHECK(said_by([&] { require_memory(site, 4, 10 << 20, 0, "n2"); }, ErrorKind::memory) ==
          "this needs 16.0 MiB of memory on n2 for 4 ranks, but 80 % of what is available there is 8.00 MiB");
}

TEST_CASE("available memory heeds the control groups of both versions, up to the root") {
    const Folder folder;
    folder.put("proc/meminfo", "MemTotal:       8192 kB\nMemAvailable:   4096 kB\n");
    const auto available = [&](const std::string& groups) {
        folder.put("proc/self/cgroup", groups);
        return available_memory(folder.path / "proc", folder.path / "cgroup");
    };
    CHECK(available("") == 4096 << 10);
    folder.put("cgroup/slurm/job1/memory.max", "max\n");
    folder.put("cgroup/slurm/memory.max", "3000000\n");
    folder.put("cgroup/slurm/memory.current", "1500000\n");
    folder.put("cgroup/slurm/memory.stat", "anon 1\ninactive_file 500000\n");
    CHECK(available("0::/slurm/job1\n") == 2000000);
    folder.put("cgroup/memory/job2/memory.limit_in_bytes", "1000000\n");
    folder.put("cgroup/memory/job2/memory.usage_in_bytes", "400000\n");
    CHECK(available("4:memory,cpu:/job2\n1:name=systemd:/\n") == 600000);
    CHECK(available("4:cpu:/job2\n") == 4096 << 10);
    CHECK(available_memory(folder.path / "nowhere", folder.path / "nowhere") == -1);
    CHECK(own_memory() > 0);
}

TEST_CASE("another version on one rank is refused by all, with both") {
    const mpi::Communicator comm(MPI_COMM_WORLD);
    CHECK_NOTHROW(mpi::require_same(comm, "the worker", "1.2.3", "advice"));
    const bool last = comm.rank() == comm.size() - 1;
    const std::string said =
        said_by([&] { mpi::require_same(comm, "the worker", last ? "1.2.4" : "1.2.3", "install one"); });
    const std::string host = host_name();
    CHECK(said == (comm.size() == 1
                       ? ""
                       : "the worker on " + host + " is of version 1.2.4, that on " + host + " of version 1.2.3"));
}

TEST_CASE("advice goes to every rank with its error") {
    const mpi::Communicator comm(MPI_COMM_WORLD);
    try {
        mpi::together(comm, [&] {
            if (comm.rank() == comm.size() - 1) {
                throw Error(ErrorKind::usage, "it is so", -1, 0, "do that");
            }
        });
        FAIL("nothing was thrown");
    } catch (const Error& error) {
        CHECK(std::string(error.what()) == "it is so");
        CHECK(error.advice() == "do that");
    }
}
