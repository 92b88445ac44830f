// One chunk after the other: the front compares them with what the format's own library reads there.
#include "tilewise/worker/unpack.hpp"

#include <atomic>
#include <ostream>

#include "tilewise/base/array.hpp"
#include "tilewise/base/error.hpp"
#include "tilewise/io/chunk_unpacker.hpp"
#include "tilewise/worker/fault.hpp"
#include "tilewise/worker/job.hpp"

namespace tilewise::worker {

void unpack_samples(const std::string& text, std::ostream& out) {
    const Job job = parse_job(text);
    break_unpacking_if_told(job.fault);
    io::ChunkUnpacker::Memory memory;
    Array<std::byte> row;
    std::atomic<std::int64_t> read = 0, calls = 0;
    for (const RegionFields& fields : job.inputs) {
        const io::Region region = region_of(fields);
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

}  // namespace tilewise::worker
