// Reads the bytes of a chunk, has the kernels undo its filters, and takes the numbers of the matrix out of it.
#include "tilewise/io/chunk_unpacker.hpp"

#include <algorithm>
#include <array>
#include <cstring>

#include "tilewise/base/error.hpp"

namespace tilewise::io {
namespace {

UnpackingFault unpacking_fault = UnpackingFault::none;

template <class T> void gather(const std::byte* from, std::int64_t count, std::int64_t step, std::byte* to) {
    for (std::int64_t i = 0; i < count; ++i) {
        std::memcpy(to + i * static_cast<std::int64_t>(sizeof(T)), from + i * step, sizeof(T));
    }
}

void copy_numbers(const std::byte* from, std::int64_t count, std::int64_t across, std::int64_t item, std::byte* to) {
    if (across == 1) {
        std::memcpy(to, from, static_cast<std::size_t>(count * item));
        return;
    }
    const std::int64_t step = across * item;
    switch (item) {
        case 1:
            return gather<std::uint8_t>(from, count, step, to);
        case 2:
            return gather<std::uint16_t>(from, count, step, to);
        case 4:
            return gather<std::uint32_t>(from, count, step, to);
        case 8:
            return gather<std::uint64_t>(from, count, step, to);
        default:
            return gather<std::array<std::uint64_t, 2>>(from, count, step, to);
    }
}

std::string text_of(grid::Range range) { return std::to_string(range.begin) + ":" + std::to_string(range.end); }

}  // namespace

void break_unpacking(UnpackingFault fault) { unpacking_fault = fault; }

ChunkUnpacker::ChunkUnpacker(const Region& region)
    : region_(region),
      chunks_(*region.chunks),
      item_(static_cast<std::int64_t>(size_of(region.dtype))),
      chunks_across_(chunks_.across_count(region.stored_columns())) {
    if (chunks_.paths.empty()) {
        file_ = std::make_unique<PosixFile>(region_.path, region_.name, PosixFile::Mode::read);
    }
}

grid::Block ChunkUnpacker::block_of(std::int64_t chunk) const {
    const std::int64_t row = chunk / chunks_across_ * chunks_.rows, column = chunk % chunks_across_ * chunks_.columns;
    return {{row, std::min(row + chunks_.rows, region_.stored_rows())},
            {column, std::min(column + chunks_.columns, region_.stored_columns())}};
}

const std::byte* ChunkUnpacker::unpack(std::int64_t chunk, Memory& memory, std::atomic<std::int64_t>& read,
                                       std::atomic<std::int64_t>& calls) const {
    const auto index = static_cast<std::size_t>(chunk);
    const kernel::Packing& packing = chunks_.packing;
    std::int64_t stored = unpacking_fault == UnpackingFault::forgotten ? 0 : chunks_.bytes[index];
    if (stored == 0) {
        memory.first.grow(packing.room());
        for (std::int64_t at = 0; at < packing.bytes; at += item_) {
            std::memcpy(memory.first.raw() + at, chunks_.fill.data(), static_cast<std::size_t>(item_));
        }
        return memory.first.raw();
    }
    const grid::Block block = block_of(chunk);
    const auto fail = [&](const std::string& what) -> Error {
        return region_.refusal(ErrorKind::usage, "the chunk of rows " + text_of(block.rows) + " and columns " +
                                                     text_of(block.columns) + " at byte " +
                                                     std::to_string(chunks_.offsets[index]) + " " + what);
    };
    const std::uint32_t skipped = chunks_.skipped.empty() ? 0 : chunks_.skipped[index];
    std::unique_ptr<PosixFile> own;
    if (!chunks_.paths.empty()) {
        own = std::make_unique<PosixFile>(chunks_.paths[index], region_.name, PosixFile::Mode::read);
    }
    const PosixFile& file = own ? *own : *file_;
    if (stored < 0) {
        stored = file.size() - chunks_.offsets[index];
    }
    const std::uint32_t all = (1U << packing.filters.size()) - 1;
    if ((skipped & all) == all) {
        stored = std::min(stored, packing.bytes);
    }
    if (stored > 2 * packing.bytes + 4096) {  // nothing packs so badly
        throw fail("has " + std::to_string(stored) + " packed bytes for " + std::to_string(packing.bytes));
    }
    memory.packed.grow(std::max(stored, packing.room()));
    calls += file.read(memory.packed.raw(), stored, chunks_.offsets[index]);
    read += stored;
    memory.first.grow(packing.room());
    memory.second.grow(packing.filters.size() > 1 ? packing.room() : 0);
    kernel::Unpacked found;
    try {
        found = kernel::unpack(packing, skipped, memory.packed.raw(), stored, memory.first.raw(), memory.second.raw());
    } catch (const UsageError& error) {
        throw fail(error.what());
    }
    const std::int64_t expected = chunks_.clipped ? packing.bytes / chunks_.rows * block.rows.size() : packing.bytes;
    if (found.bytes < expected) {
        throw fail("unpacks to " + std::to_string(found.bytes) + " bytes where " + std::to_string(expected) +
                   " were expected");
    }
    if (unpacking_fault == UnpackingFault::bit) {
        found.data[0] ^= std::byte{1};
    } else if (unpacking_fault == UnpackingFault::shift) {
        std::memmove(found.data + item_, found.data, static_cast<std::size_t>(found.bytes - item_));
    }
    return found.data;
}

void ChunkUnpacker::copy_row(const std::byte* numbers, const grid::Block& block, std::int64_t row, grid::Range columns,
                             std::byte* to) const {
    const std::int64_t at = chunks_.start + (row - block.rows.begin) * chunks_.down +
                            (columns.begin - block.columns.begin) * chunks_.across;
    copy_numbers(numbers + at * item_, columns.size(), chunks_.across, item_, to);
}

}  // namespace tilewise::io
