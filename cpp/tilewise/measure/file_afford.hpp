// Whether a file measurement has room enough, in memory and on disk, before anything is allocated or written.
#pragma once

#include <string>

#include "tilewise/measure/file.hpp"
#include "tilewise/measure/file_place.hpp"

namespace tilewise::measure {

/// The graphics processor of this rank: its number within the node, modulo those that there are and that are wanted (0:
/// all). 0 where there is none. @note Collective.
int device_of(const mpi::Communicator& comm, int there, int wanted);

/// Why the buffers of all ranks do not fit where they are to lie; empty if they do. The same on every rank. @note
/// Collective.
std::string lacks_memory(const mpi::Communicator& comm, const BlockMemory& memory, int device, std::int64_t bytes);

/// The same of the host memory through which calls reach memory of a device: `bytes` of it on this rank, pinned. @note
/// Collective.
std::string lacks_stage(const mpi::Communicator& comm, std::int64_t bytes);

/// Why the disk does not take the sample files; empty if it does. The same on every rank. @note Collective.
std::string lacks_disk(const mpi::Communicator& comm, const FileHooks& hooks, const FilePlace& place);

}  // namespace tilewise::measure
