// The sample files of a measurement: where blocks lie in them; made new, dropped from the page cache, and removed
// whatever happens.
//
//      interleaved   | 0:0 1:0 2:0 | 0:1 1:1 2:1 | …        r:k  block k of rank r
//      contiguous    | 0:0 0:1 … | 1:0 1:1 … | 2:0 …
//      per_rank      | 0:0 0:1 … |   | 1:0 1:1 … |   …      a file for each rank: PATH.0, PATH.1, …
//
// In memory a rank has all of its blocks one after the other, as a program has its matrix, so that no block is found in
// a cache because the one before it lay in the same place. For O_DIRECT each begins as far behind a page's border as in
// the file.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tilewise/base/memory.hpp"
#include "tilewise/mpi/communicator.hpp"

namespace tilewise::measure {

enum class FileLayout { interleaved, contiguous, per_rank };
inline constexpr std::array<std::string_view, 3> layout_names{"interleaved", "contiguous", "per_rank"};

struct FilePlace {
    int ranks = 1;
    std::int64_t blocks = 1, bytes = 1;
    FileLayout layout = FileLayout::interleaved;
    bool direct = false;
    std::string path;

    int files() const { return layout == FileLayout::per_rank ? ranks : 1; }
    std::string path_of(int rank) const {
        return layout == FileLayout::per_rank ? path + "." + std::to_string(rank) : path;
    }
    std::int64_t file_bytes() const { return (layout == FileLayout::per_rank ? 1 : ranks) * blocks * bytes; }
    std::int64_t total_bytes() const { return ranks * blocks * bytes; }

    /// Byte in its file at which a block of `rank` begins.
    std::int64_t offset(int rank, std::int64_t block) const {
        switch (layout) {
            case FileLayout::interleaved:
                return (block * ranks + rank) * bytes;
            case FileLayout::contiguous:
                return (rank * blocks + block) * bytes;
            case FileLayout::per_rank:
                break;
        }
        return block * bytes;
    }
    /// Byte in the memory of whoever holds it.
    std::int64_t slot(int rank, std::int64_t block) const {
        return direct ? block * stride() + offset(rank, block) % page : block * bytes;
    }
    std::int64_t memory_bytes() const { return blocks * (direct ? stride() : bytes); }
    /// Bytes of a block of `rank` that whole pages hold, on average: these can go past the page cache.
    std::int64_t whole_pages(int rank) const {
        std::int64_t sum = 0;
        for (std::int64_t block = 0; block < blocks; ++block) {
            const std::int64_t begin = (offset(rank, block) + page - 1) / page;
            const std::int64_t end = (offset(rank, block) + bytes) / page;
            sum += end > begin ? (end - begin) * page : 0;
        }
        return sum / blocks;
    }

private:
    std::int64_t stride() const { return rounded_to_pages(bytes) + page; }
};

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
