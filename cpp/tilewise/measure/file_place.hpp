// Where the blocks of a file measurement lie, in the sample files and in memory.
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

#include "tilewise/base/page.hpp"

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

}  // namespace tilewise::measure
