// Memory that blocks of a file are written from and read into: the processor's own is here, that of graphics processors
// in device/.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "tilewise/base/memory_pattern.hpp"

namespace tilewise {

// The one page size: the unit in which the system maps memory and files, and that O_DIRECT wants.

inline constexpr std::int64_t page = 4096;

constexpr std::int64_t rounded_to_pages(std::int64_t bytes) { return (bytes + page - 1) / page * page; }

/// One stretch of memory, freed with its owner. Places in it are given as offsets from its beginning. What fails throws
/// std::runtime_error or an Error.
class BlockMemory {
public:
    BlockMemory() = default;
    BlockMemory(const BlockMemory&) = delete;
    BlockMemory& operator=(const BlockMemory&) = delete;
    virtual ~BlockMemory() = default;

    virtual std::string name() const = 0;
    /// "NAME (index, UUID)"; empty for the processor's own memory.
    virtual std::string device() const = 0;
    /// What could be had now, of the memory that this kind comes out of.
    virtual std::int64_t free_bytes() const = 0;
    /// Called once; begins at a page.
    virtual void allocate(std::int64_t bytes) = 0;

    /// Makes a block's content, where the memory is.
    virtual void fill(std::int64_t offset, std::int64_t bytes, Pattern pattern) = 0;
    /// The first byte of the block that is not as it should be, counted from `offset`; −1 if there is none.
    virtual std::int64_t compare(std::int64_t offset, std::int64_t bytes, Pattern pattern) const = 0;

    /// Where a call can reach the memory; null where it cannot.
    virtual std::byte* address() const = 0;
    /// Where it is for the device, and for an MPI library that knows devices; the host may be unable to touch it.
    virtual std::byte* device_address() const = 0;
    /// Host memory through which to_host and from_host are fast; for memory that calls cannot reach. Begins at a page.
    virtual std::byte* stage(std::int64_t bytes) = 0;
    virtual void to_host(std::byte* to, std::int64_t offset, std::int64_t bytes) const = 0;
    virtual void from_host(std::int64_t offset, const std::byte* from, std::int64_t bytes) = 0;
};

/// Bytes of memory that this node can still give. Throws IoError.
std::int64_t free_host_memory();

/// The plain references of `fill` and `compare`, and what host memory uses.
void fill_plainly(std::byte* data, std::int64_t bytes, Pattern pattern);
std::int64_t compare_plainly(const std::byte* data, std::int64_t bytes, Pattern pattern);

/// The processor's own memory, named malloc; nothing allocated yet.
std::unique_ptr<BlockMemory> make_host_memory();

}  // namespace tilewise
