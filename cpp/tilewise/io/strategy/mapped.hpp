// Strategy `mapped` and its part: a file's pages in the process's own memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "tilewise/io/region.hpp"
#include "tilewise/io/strategy/strategy.hpp"

namespace tilewise::io {

/// The bytes of a region, mapped; unmapped with its owner. If the file is cut short while it is mapped, or there is no
/// room on the disk for a page that is written, touching it ends the process, with a message that names the file where
/// one is set.
class Mapping {
public:
    Mapping() = default;
    /// The region's bytes; all of the file, from its first byte, where it is a text. Throws IoError.
    Mapping(const Region& region, Direction direction);
    Mapping(Mapping&& other) noexcept;
    Mapping& operator=(Mapping&& other) noexcept;
    ~Mapping();

    /// Element (0, 0) of the stored matrix, or a text's first byte; null where there is nothing.
    std::byte* data() const { return data_; }
    /// Reads all pages in now, on `threads` threads, instead of one fault at a time later.
    void populate(int threads) const;
    /// Takes the pages between two addresses, and some before them, out of the resident set; they stay in the page
    /// cache.
    void release(const void* begin, const void* end) const;
    /// Unmaps and closes; throws IoError when the system says that what was written is not there.
    void close();

private:
    /// Returns the first error number, or 0.
    int unmap();

    std::string name_;
    int descriptor_ = -1;  ///< kept while there is something to be written
    void* start_ = nullptr;
    std::size_t length_ = 0;
    std::byte* data_ = nullptr;
};

/// Whether the file's numbers can be computed with where they lie: the right type and byte order, suitably aligned.
bool usable_in_place(const Region& region, Dtype dtype);

/// Called, in a signal's handler, when a page of a mapped file cannot be read or written: `name` holds nothing that a
/// JSON string must escape. Set once, by the worker; unless it is set, no signal is caught.
void set_bus_error_message(void (*say)(const char* name, bool writing));

}  // namespace tilewise::io
