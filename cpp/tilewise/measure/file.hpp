// Report 4's measurement: every rank writes, then reads, a number of blocks of a size, in the way of one I/O strategy.
//
//      series       before the clock                 timed                                 after it
//      write_new    a new file, opened               all blocks, and fsync with `sync`     closed
//      write        the same file, opened again      the same                              closed
//      read         dropped (cold), wiped memory,    all blocks                            closed, content compared
//                   opened again
//
// A sample lasts from one barrier to the next, so that ranks that take turns on a core are not taken for faster than
// they are; `by_rank` has each rank's own seconds, up to its last block. The file has its full size, and no content,
// before it is written first.
//
// What is opened, moved and closed is what strategies of jobs open, move and close:
//
//      block by block      collective, split_collective, independent, positioned, mapped: each block is one of the
//                          strategy's calls
//      all blocks at once  sieve, two_phase, uncached, root, root_collective, per_rank: what they do lies between the
//                          ranks and over many blocks
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "tilewise/base/memory.hpp"
#include "tilewise/device/driver.hpp"
#include "tilewise/measure/measure.hpp"

namespace tilewise::measure {

/// What tests put something else for.
struct FileHooks {
    std::function<std::int64_t(const std::string& path, std::int64_t buffers)> free_on_disk;
    std::function<device::Presence()> devices;
    std::function<std::unique_ptr<BlockMemory>(const std::string& name, int device)> make_memory;
    std::function<void()> before_reading = [] {};  ///< called on every rank between writing and reading
};

/// The machine's own.
FileHooks file_hooks();

/// `file` with something else in place of the machine. Errors as there: UsageError, and IoError where the disk fails or
/// gives back something else, on every rank. @note Collective.
Measurement file_with(const FileHooks& hooks, Context& context, const Point& point, const Stop& stop,
                      const Clock& clock);

}  // namespace tilewise::measure
