// Files past the page cache (O_DIRECT), so that data goes between memory and device without a copy.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "tilewise/base/buffer.hpp"
#include "tilewise/io/file.hpp"

namespace tilewise::io {

/// A file opened twice: past the page cache for whole pages, through it for the unaligned ends.
///
///     bytes of a piece   [ · | # # # # # # | · · ]      #: whole pages of the file that also begin pages in memory
///                        ^ page borders of the file     ·: the ends
///
/// The former go directly; the latter are buffered, and so is everything where the two do not fall together.
class UncachedFile {
public:
    static constexpr std::int64_t worth_it = std::int64_t{64}
                                             << 10;  ///< a smaller direct request costs more than a copy

    /// Pieces with fewer than `least` bytes in whole pages go through the page cache. Throws IoError, also where the
    /// file system has no O_DIRECT.
    UncachedFile(const std::string& path, const std::string& name, PosixFile::Mode mode, std::int64_t least = worth_it);

    /// Moves exactly `bytes` at `offset`; returns the number of system calls. May be called by several threads.
    std::int64_t read(std::byte* data, std::int64_t bytes, std::int64_t offset) const;
    std::int64_t write(const std::byte* data, std::int64_t bytes, std::int64_t offset) const;
    /// As of PosixFile.
    void close();

private:
    PosixFile buffered_, direct_;
    std::int64_t least_;
};

/// Bytes of a file, and where they are wanted in memory.
struct Piece {
    std::int64_t offset, bytes;
    std::byte* data;
};

/// Many short pieces of a file past the page cache, many at a time.
///
///     file      ┊ s ┊ s ┊ s ┊ s ┊ s ┊ s ┊ s ┊ s ┊     s: sectors
///     pieces        ▒▒▒▒▒▒         ▒▒▒▒▒▒             each with the sectors that it touches into a slot of its own,
///     slots     [  ▒▒▒▒▒▒  ] [  ▒▒▒▒▒▒   ] …          from there to its place; the slot is then free for another
///
/// The system is handed many requests by one call (O_DIRECT and the kernel's own asynchronous I/O, which containers
/// allow more often than io_uring): a piece of 8 KiB takes a third of the processor's time of a `pread` out of a cold
/// page cache, and of the device only its own sectors. Used by one thread at a time.
class DirectReads {
public:
    static constexpr std::int64_t under_way = std::int64_t{1} << 20;  ///< bytes of all slots together

    /// Throws IoError, also where the file system has no O_DIRECT.
    DirectReads(const std::string& path, const std::string& name);
    DirectReads(const DirectReads&) = delete;
    DirectReads& operator=(const DirectReads&) = delete;
    ~DirectReads();

    /// Whether the system takes many requests by one call: a container, or too many queues of others, may be in the
    /// way.
    bool works() const { return queue_ != 0; }

    /// Where it works: reads all pieces, in any order, or stops early once `given_up`; returns the number of system
    /// calls. What cannot be read in this way, for whatever reason, is read once more through the page cache, and only
    /// that throws: IoError.
    std::int64_t read(std::span<const Piece> pieces, const std::atomic<bool>& given_up);

private:
    struct Batch;

    PosixFile cached_, direct_;
    unsigned long queue_ = 0;  ///< of the kernel; 0: there is none
    std::int64_t sector_ = 512;
    Buffer slots_;
};

}  // namespace tilewise::io
