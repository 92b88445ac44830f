// What files say of the matrix in them: the header of a .npy file, and the manifest of a folder of tiles. Not
// collective; nothing here knows MPI.
#pragma once

#include <string>
#include <string_view>

#include "tilewise/io/region.hpp"

namespace tilewise::library {

/// The matrix in the .npy file at `path`. Throws UsageError for what is none, or whose size is not what its header
/// promises, and IoError.
io::Region read_npy(const std::string& path);

/// What the bytes before the numbers of a .npy file say, from its first byte on; `region.offset` is where the
/// numbers begin.
io::Region parse_npy(std::string_view begin, const std::string& name);

/// The bytes before the numbers of a new .npy file, in this machine's byte order. Numbers of 1 MiB and more begin at
/// byte 4096, so that ranks share no page with the header.
std::string npy_header(std::int64_t rows, std::int64_t columns, Dtype dtype, bool column_major);

/// The matrix in the folder of tiles at `path`, each of which must be what the manifest promises. Errors as above.
io::Region read_tiles(const std::string& path);

}  // namespace tilewise::library
