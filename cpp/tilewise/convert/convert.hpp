// From one file to another: format, type, byte order and order of storage change, the numbers stay or are scaled; also
// the making of matrices by rule.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "tilewise/base/outcome.hpp"
#include "tilewise/io/transfer.hpp"

namespace tilewise::convert {

struct Options {
    io::StrategyKind read = io::StrategyKind::positioned, write = io::StrategyKind::positioned;
    io::Hints hints;
    grid::Grid grid;                                   ///< how the ranks share a band: rows × columns
    std::int64_t band_bytes = std::int64_t{32} << 20;  ///< of the wider type, on each rank, at a time
    bool sync = false;
    bool read_back = false;                      ///< compare the file with what was written, by checksum
    std::optional<double> scale = std::nullopt;  ///< each number is multiplied by it
};

/// With `read_back` it is verified whether the file gives back what was written.
struct Outcome : tilewise::Outcome {
    std::int64_t changed = 0;  ///< numbers that the new type could not hold, over all ranks
};

/// Writes `from` to `to`, a part file that exists, band after band, so that the matrix may be far larger than memory.
/// Three buffers of `band_bytes` a rank, and what the strategies stage. Throws the same Error on every rank, or aborts
/// the job where ranks already wait. @note Collective over `context.comm`, whose ranks must match the grid.
Outcome convert(Context& context, const io::Region& from, const io::Region& to, const Options& options);

}  // namespace tilewise::convert
