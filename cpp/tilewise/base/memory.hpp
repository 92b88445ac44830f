// Memory that blocks of a file are written from and read into: the processor's own, or that of a graphics processor.
//
//      malloc    host memory                          a call takes it as it is
//      pinned    host memory that CUDA has locked      a call takes it as it is
//      managed   CUDA moves its pages to and fro       a call takes it as it is
//      device    memory of the device                  a call cannot reach it: copied through a pinned stage
//
// Content of managed memory is made and checked on the device. Copying through the stage counts as time of the call.
//
// This header is C++17, and no more than that is included, since the CUDA compiler reads it too.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "tilewise/base/memory_pattern.hpp"

namespace tilewise {

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

/// Graphics processors as this process sees them.
struct CudaFacts {
    std::string version;  ///< of the CUDA that this program was built with; empty: without
    int gpus = 0;
    std::string trouble;  ///< why there is none, in a few words
};
/// Asks the driver, which takes some 0.1 s where there is one. Never throws.
CudaFacts cuda_facts();

/// Whether the kind of memory that --buffer names comes from CUDA. Throws UsageError for an unknown name.
bool is_from_cuda(const std::string& name);

/// Nothing allocated yet. `device` counts from 0, and is looked at for CUDA's kinds only. Throws UsageError where this
/// build or this machine cannot have such memory.
std::unique_ptr<BlockMemory> make_memory(const std::string& name, int device);

#ifdef TILEWISE_CUDA
std::unique_ptr<BlockMemory> make_cuda_memory(const std::string& name, int device);
CudaFacts ask_cuda();
#endif

}  // namespace tilewise
