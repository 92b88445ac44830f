// Undoes what HDF5 and TIFF do to the numbers of a chunk before it is stored: a chain of filters.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace tilewise::kernel {

/// What undoes a filter, in the order of `filter_names`.
enum class FilterKind {
    inflate,     ///< deflate with zlib's wrapper
    lzw,         ///< of TIFF 6.0: codes of 9 to 12 bits, the highest first, one number early
    packbits,    ///< runs of bytes, and bytes as they are
    shuffle,     ///< all first bytes of the numbers, then all second ones, …
    fletcher32,  ///< four bytes of checksum at the end, as HDF5 has them
    horizontal,  ///< in a row, each number's difference to the one before it
    floating     ///< the same byte by byte, with the highest bytes of a row's numbers first, then the second ones, …
};
inline constexpr std::array<std::string_view, 7> filter_names{"inflate",    "lzw",        "packbits", "shuffle",
                                                              "fletcher32", "horizontal", "floating"};

struct Filter {
    FilterKind kind = FilterKind::inflate;
    std::int64_t item = 1;    ///< bytes of the numbers that it works on
    bool big_endian = false;  ///< those of `horizontal`
};

/// How a chunk is packed: `filters` in the order in which they are undone. It unpacks to `bytes`, which are rows of
/// `row_bytes`, in which a point has `samples` numbers.
struct Packing {
    std::vector<Filter> filters;
    std::int64_t bytes = 0, row_bytes = 0, samples = 1;

    /// Bytes that `unpack` writes to at most: checksums may stand in between.
    std::int64_t room() const { return bytes + 4 * static_cast<std::int64_t>(filters.size()); }
};

struct Unpacked {
    std::byte* data = nullptr;
    std::int64_t bytes = 0;  ///< no more than a chunk has; perhaps fewer
};

/// Undoes all filters but those whose bit in `skipped` is set, of `packed` bytes at `from`, which are overwritten. Both
/// memories have room for `packing.room()`; the result lies in one of the three. Throws UsageError for what is
/// malformed.
Unpacked unpack(const Packing& packing, std::uint32_t skipped, std::byte* from, std::int64_t packed, std::byte* first,
                std::byte* second);

std::int64_t unpack_lzw(const std::byte* from, std::int64_t packed, std::byte* to, std::int64_t room);
std::int64_t unpack_packbits(const std::byte* from, std::int64_t packed, std::byte* to, std::int64_t room);
/// The checksum as HDF5 takes it: of 16-bit words, the high byte first.
std::uint32_t fletcher32(const std::byte* data, std::int64_t bytes);

// Unpacks deflate (RFC 1951) in its zlib wrapper (RFC 1950), which HDF5, TIFF and Zarr pack their chunks with.
//
//     zlib      [ 2 bytes | blocks … | Adler-32 of what they unpack to ]
//     block     stored: bytes as they are
//               fixed or dynamic: symbols of two Huffman codes, of which the second only says distances
//     symbol    a byte; or a length of 3 … 258 and a distance: so many bytes once more, from that far back

/// Unpacks `packed` bytes at `from` to `to`, which has room for `room` bytes, and returns how many came out. Writes
/// and reads nowhere else, whatever the bytes are. What follows the stream is not looked at. Throws UsageError where it
/// is malformed, ends early, fails its checksum, or unpacks to more than there is room for.
///
/// Symbols are looked up, not walked to: 11 bits that have been read lead to a symbol of the first code with its extra
/// bits and its length, or to a second table for the longer ones; 64 bits are held, so that one reading does for a
/// length and its distance. While 8 bytes are left to read and 300 to write, nothing else is checked.
std::int64_t inflate(const std::byte* from, std::int64_t packed, std::byte* to, std::int64_t room);

}  // namespace tilewise::kernel
