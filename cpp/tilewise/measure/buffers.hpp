// Memory for what is measured, and whether there is as much of it: the system hands out more than it has, and ends
// whoever comes to use it, so ranks that share a memory look before any of them takes it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>

#include "tilewise/base/memory.hpp"
#include "tilewise/mpi/communicator.hpp"

namespace tilewise::measure {

/// A memory, as one of the ranks that share it sees it.
struct MemoryBudget {
    std::string whose;  ///< "node" or "device"
    std::string kind;   ///< of memory: malloc, pinned, device or managed
    double usable;      ///< the part of what is free that may be taken
    std::int64_t free;  ///< bytes
};

/// Why `needed` bytes on this rank, together with what the others of `sharers` need, do not fit; empty if they do. The
/// same on every rank of `comm`, of which the sharers are a part. @note Collective.
std::string exceeds_budget(const mpi::Communicator& comm, const mpi::Communicator& sharers, const MemoryBudget& budget,
                           std::int64_t needed);

/// The same of this node's memory, of which four fifths may be taken, or half where it is "pinned": through that, calls
/// reach memory of a device. Throws IoError alike on every rank. @note Collective.
std::string lacks_host_memory(const mpi::Communicator& comm, std::int64_t needed, const std::string& kind = "malloc");

/// Why the buffers of all ranks do not fit where they are to lie; empty if they do. The same on every rank. @note
/// Collective.
std::string lacks_memory(const mpi::Communicator& comm, const BlockMemory& memory, int device, std::int64_t bytes);

/// The graphics processor of this rank: its number within the node, modulo those that there are and that are wanted (0:
/// all). 0 where there is none. @note Collective.
int device_of(const mpi::Communicator& comm, int there, int wanted);

/// Memory for messages: `bytes` that begin at a page, and are already there, as a program's own buffers are by the time
/// they travel. Every byte is `value`. Not a Buffer, which would be on huge pages: MPI moves
/// those faster than the memory that most programs send from. Throws MemoryError.
class PrefaultedBuffer {
public:
    explicit PrefaultedBuffer(std::size_t bytes = 0, std::byte value = std::byte{0});

    std::byte* data() const { return data_.get(); }
    std::size_t bytes() const { return bytes_; }

private:
    struct Free {
        void operator()(std::byte* data) const { std::free(data); }
    };

    std::size_t bytes_ = 0;
    std::unique_ptr<std::byte, Free> data_;
};

}  // namespace tilewise::measure
