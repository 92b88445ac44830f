// tilewise-unpack < REGIONS: writes the numbers of chunks as ranks would unpack them, row by row as the files store
// them, so that the front can compare them with what the format's own library reads. `{"regions": […], "fault": ""}`
// is what it takes. A program of its own, since loading MPI alone takes a process 40 ms.
#include <atomic>
#include <cstdio>
#include <exception>
#include <iostream>

#include "tilewise/base/array.hpp"
#include "tilewise/base/error.hpp"
#include "tilewise/io/chunk_unpacker.hpp"
#include "tilewise/worker/region_json.hpp"

namespace {

using namespace tilewise;

void write_chunks(const io::Region& region) {
    if (region.chunks == nullptr) {
        throw UsageError(region.name + " is not in chunks");
    }
    const io::ChunkUnpacker unpacker(region);
    io::ChunkUnpacker::Memory memory;
    Array<std::byte> row;
    std::atomic<std::int64_t> read = 0, calls = 0;
    const auto count = static_cast<std::int64_t>(region.chunks->offsets.size());
    for (std::int64_t chunk = 0; chunk < count; ++chunk) {
        const grid::Block block = unpacker.block_of(chunk);
        const std::byte* numbers = unpacker.unpack(chunk, memory, read, calls);
        const std::int64_t bytes = block.columns.size() * static_cast<std::int64_t>(size_of(region.dtype));
        row.grow(bytes);
        for (std::int64_t i = block.rows.begin; i < block.rows.end; ++i) {
            unpacker.copy_row(numbers, block, i, block.columns, row.raw());
            std::fwrite(row.raw(), 1, static_cast<std::size_t>(bytes), stdout);
        }
    }
}

}  // namespace

int main() {
    try {
        const nlohmann::json told = nlohmann::json::parse(std::cin);
        io::break_unpacking(told.at("fault").get<std::string>());
        for (const auto& fields : told.at("regions").get<std::vector<worker::RegionFields>>()) {
            write_chunks(worker::region_of(fields));
        }
        return std::fflush(stdout) == 0 && std::ferror(stdout) == 0 ? 0 : 1;
    } catch (const std::exception& error) {
        std::fprintf(stderr, "%s\n", error.what());
        return 2;
    }
}
