// The regions of a job as they come in over the seam, and as the library has them; no MPI.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "tilewise/io/region.hpp"

namespace tilewise::worker {

struct TileFields {
    std::string path;
    std::int64_t offset = 0;
    std::array<std::int64_t, 2> rows{}, columns{}, strides{};
};

struct FilterFields {
    std::string name, byte_order;
    std::int64_t item = 1;
};

struct ChunksFields {
    std::array<std::int64_t, 2> shape{}, steps{};
    std::int64_t start = 0, numbers = 0;
    bool clipped = false;
    std::vector<FilterFields> filters;
    std::vector<std::string> paths;
    std::vector<std::int64_t> offsets, bytes;
    std::vector<std::uint32_t> skipped;
    std::string fill;  ///< in hexadecimal digits
};

struct RegionFields {
    std::string path, name;
    std::int64_t offset = 0, rows = 0, columns = 0;
    std::string dtype, byte_order, order, encoding, separator;
    std::int64_t line_numbers = 0;
    bool pairs = false;
    std::string decimal;
    std::vector<std::string> missing;
    std::int64_t text_end = -1;
    bool hash_comments = true;
    std::vector<TileFields> tiles;
    std::string fill;
    std::optional<ChunksFields> chunks;
    std::int64_t file_bytes = -1;
    bool transposed = false;
    std::string generator;
    std::uint64_t seed = 0;
    std::vector<std::int64_t> steps;  ///< bytes from a slice of a stack to the next, along each of its axes
};

/// Throws UsageError for fields that do not fit each other.
io::Region region_of(const RegionFields& fields);
/// Throws UsageError where they do not fit `region`, or each other.
io::Chunks chunks_of(const ChunksFields& fields, const io::Region& region);
Dtype dtype_of(const std::string& name);

/// The bytes that `text` is in hexadecimal digits, two each. Throws UsageError for anything else.
std::string bytes_of_hex(const std::string& text);

}  // namespace tilewise::worker
