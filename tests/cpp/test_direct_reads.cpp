// Tests of direct reads: whatever the pieces are and whatever the file has become, the bytes are those of `pread`.
#include <atomic>
#include <cstring>
#include <doctest/doctest.h>
#include <fcntl.h>
#include <fstream>
#include <random>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <vector>

#include "io_cases.hpp"
#include "tilewise/base/error.hpp"
#include "tilewise/io/background.hpp"

using namespace tilewise;
using namespace tilewise::test;

namespace {

/// A file of random bytes in the working folder, out of the page cache where the system does as asked.
struct File {
    std::string path = "direct-" + std::to_string(getpid());
    std::vector<std::byte> bytes;

    explicit File(std::int64_t size) : bytes(static_cast<std::size_t>(size)) {
        std::mt19937_64 random(7);
        for (std::byte& byte : bytes) {
            byte = static_cast<std::byte>(random());
        }
        std::ofstream(path, std::ios::binary).write(reinterpret_cast<const char*>(bytes.data()), size);
        const int descriptor = open(path.c_str(), O_RDWR);
        fsync(descriptor);
        posix_fadvise(descriptor, 0, 0, POSIX_FADV_DONTNEED);
        close(descriptor);
    }
    ~File() { unlink(path.c_str()); }

    bool takes_direct() const {
        const int descriptor = open(path.c_str(), O_RDONLY | O_DIRECT);
        close(descriptor);
        return descriptor >= 0;
    }
    bool holds(const io::Piece& piece) const {
        return std::memcmp(piece.data, bytes.data() + piece.offset, static_cast<std::size_t>(piece.bytes)) == 0;
    }
};

}  // namespace

TEST_CASE("direct reads bring every piece, however it lies") {
    const File file(3'000'001);
    if (!file.takes_direct()) {
        MESSAGE("skipped: this file system has no O_DIRECT");
        return;
    }
    io::DirectReads reads(file.path, "file");
    const std::atomic<bool> given_up = false;
    std::mt19937_64 random(1);
    for (const std::int64_t longest : {3, 40, 5000, 70'000, 400'000}) {
        std::vector<std::byte> memory(static_cast<std::size_t>(600 * longest));
        std::vector<io::Piece> pieces;
        for (std::int64_t index = 0; index < 600; ++index) {
            const auto bytes = 1 + static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(longest));
            const auto last = static_cast<std::uint64_t>(3'000'001 - bytes + 1);
            pieces.push_back({static_cast<std::int64_t>(random() % last), bytes, memory.data() + index * longest});
        }
        pieces.push_back({3'000'001 - 3, 3, memory.data()});  // the last bytes, which share a sector with nothing
        pieces.erase(pieces.begin());
        CHECK(reads.read(pieces, given_up) > 0);
        for (const io::Piece& piece : pieces) {
            REQUIRE(file.holds(piece));
        }
    }
}

TEST_CASE("direct reads see what was written a moment ago, and stop when nobody wants more") {
    File file(1 << 20);
    if (!file.takes_direct()) {
        return;
    }
    const int descriptor = open(file.path.c_str(), O_RDWR);
    std::memset(file.bytes.data() + 5000, 0x5a, 20'000);
    REQUIRE(pwrite(descriptor, file.bytes.data() + 5000, 20'000, 5000) == 20'000);
    close(descriptor);
    io::DirectReads reads(file.path, "file");
    std::vector<std::byte> memory(1 << 20);
    const std::vector<io::Piece> whole{{0, 1 << 20, memory.data()}};
    std::atomic<bool> given_up = true;
    CHECK(reads.read(whole, given_up) == 0);
    given_up = false;
    reads.read(whole, given_up);
    CHECK(file.holds(whole.front()));
}

TEST_CASE("a file that was cut short is an IoError, also where it is read ahead") {
    File file(1 << 20);
    if (!file.takes_direct()) {
        return;
    }
    io::Region region;
    region.path = region.name = file.path;
    region.rows = 1 << 10;
    region.columns = 1 << 7;
    region.dtype = Dtype::float64;
    std::vector<std::byte> memory(1 << 20);
    const grid::Share all(grid::Block{{0, region.rows}, {0, region.columns}});
    io::Prefetch ahead(region, io::PosixFile::Cache::bypassed);
    ahead.want(all, memory.data());
    ahead.want(all, memory.data());
    CHECK(ahead.take(all, memory.data()).has_value());
    CHECK(file.holds({0, 1 << 20, memory.data()}));
    CHECK_FALSE(ahead.take(all, memory.data()).has_value());  // once is enough
    REQUIRE(truncate(file.path.c_str(), 700'000) == 0);
    ahead.want(all, memory.data());
    CHECK_THROWS_WITH_AS(ahead.take(all, memory.data()), doctest::Contains("ended at byte 700000"), Error);
    ahead.want(all, memory.data());
    ahead.rest();
    CHECK_FALSE(ahead.take(all, memory.data()).has_value());
}
