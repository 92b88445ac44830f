// Files past the page cache (O_DIRECT), so that data goes between memory and device without a copy.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

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

}  // namespace tilewise::io
