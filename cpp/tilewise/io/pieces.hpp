// Rectangles of a file that a log names, each with a checksum: what another start of a job looks at, and compares.
//
//     a line      0 1024 512 1024 9c1d… 77aa…      rows and columns [begin, end) as stored, checksum of the numbers,
//                                                  checksum of the line
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tilewise/grid/share.hpp"
#include "tilewise/io/region.hpp"
#include "tilewise/mpi/context.hpp"

namespace tilewise::io {

/// A rectangle of the stored matrix that a log names, of the start with that number.
struct Standing {
    int start = 0;
    grid::Block block;
    std::uint64_t sum = 0;
};

/// One rank's log: lines are appended whole, by one call each, so that a death leaves at most one that is torn.
class Log {
public:
    /// Throws IoError.
    Log(const std::string& folder, const std::string& name);
    Log(const Log&) = delete;
    Log& operator=(const Log&) = delete;
    ~Log();

    /// Appends `words` and their checksum. Throws IoError.
    void add(const std::string& words) const;
    void flush() const;

private:
    std::string folder_;
    int descriptor_;
};

/// A binary file of which logs name pieces.
class PieceFile {
public:
    /// Throws IoError.
    explicit PieceFile(const Region& region);
    PieceFile(const PieceFile&) = delete;
    PieceFile& operator=(const PieceFile&) = delete;
    ~PieceFile();

    /// Which of the pieces hold what was written; ranks share the reading. Throws the same Error on every rank.
    /// @note Collective.
    std::vector<bool> right(Context& context, const std::vector<Standing>& pieces) const;
    /// Writes down that the rectangle is there, which lies in `data` as it does in the file, without gaps: lines that
    /// begin with `prefix`, each of at most 8 MiB. Throws IoError. Not collective.
    void write_down(const Log& log, const std::string& prefix, const grid::Block& stored, const std::byte* data) const;
    /// Throws IoError.
    void flush() const;
    const Region& region() const { return region_; }

private:
    bool is_right(const Standing& piece, Counters& count, std::vector<std::byte>& buffer) const;

    Region region_;
    int descriptor_;
};

}  // namespace tilewise::io
