// The sample files of a measurement: made new, dropped from the page cache, and removed whatever happens.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "tilewise/measure/file_place.hpp"
#include "tilewise/mpi/communicator.hpp"

namespace tilewise::measure {

/// Bytes that may still be written to the file system on which `path` is to lie. Where that lives in memory, no more
/// than the node has left once `buffers` bytes of it are taken for something else. Throws IoError.
std::int64_t free_on_disk(const std::string& path, std::int64_t buffers);

/// The share, 0 to 1, of a file's pages that are in this node's page cache. Throws IoError.
double cached_share(const std::string& path);

/// Rank 0 makes and removes them; the ranks must see the same files.
class SampleFiles {
public:
    /// Nothing is made yet. `comm` and `place` must live longer.
    SampleFiles(const mpi::Communicator& comm, const FilePlace& place) : comm_(comm), place_(place) {}
    SampleFiles(const SampleFiles&) = delete;
    SampleFiles& operator=(const SampleFiles&) = delete;
    /// Removes what was made.
    ~SampleFiles() { remove(); }

    /// Makes all of them at their full size, without content; those that this object made before are removed first.
    /// Throws UsageError where there is a file that it did not make. @note Collective.
    void make_new();
    /// Takes them out of the page cache of every node, after what is not on disk yet has gone there. Returns the
    /// greatest share of a file that stayed. @note Collective.
    double drop_from_cache() const;
    /// The least share of a file that a node has in its page cache. @note Collective.
    double cached() const;
    /// On rank 0: why files here cannot be opened past the page cache; empty where they can. Not collective.
    std::string refuses_direct() const;

private:
    void remove() noexcept;
    /// Calls act(path) for every file on every node, by one of its ranks. @note Collective.
    template <class F> void on_each_file(const F& act) const;
    void make(const std::string& path);

    const mpi::Communicator& comm_;
    const FilePlace& place_;
    std::vector<std::string> made_;
};

}  // namespace tilewise::measure
