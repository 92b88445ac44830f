// Whether a library that says it has read has done so: ROMIO counts what it was asked for, not what came.
//
//     before   [ . . . ! | . . . ! ]     the end of each run of the file is marked in memory
//     after    [ a b c d | e f g ! ]     a call that brought too little left a mark: that is compared with the file
//              [ a b c d | e f g h ]     and so are samples: a library's own buffer may have held what was there before
#pragma once

#include <sys/stat.h>

#include "tilewise/io/strategy.hpp"

namespace tilewise::io {

/// The elements `within` of the stored matrix that a rank's share has, while they are read by somebody else.
class Delivery {
public:
    /// Marks memory. `cell`, `turn`: as of `samples_of`, so that each piece is met which the library reads in one call,
    /// if it does not read run by run.
    Delivery(const Transfer& transfer, const grid::Share& share, grid::Range within, std::int64_t cell, int turn);

    /// Throws IoError where memory holds anything else than the file. `everything`: all bytes are compared. Not
    /// collective.
    void check(bool everything) const;

private:
    void compare(const class PosixFile& file, std::int64_t first, std::int64_t count, std::int64_t local) const;
    /// Calls f(place in memory, bytes, first byte in the file) for the mark of each run.
    template <class F> void for_marks(F f) const;

    const Transfer& transfer_;
    const grid::Share& share_;
    grid::Range within_;
    std::int64_t cell_;
    int turn_;
};

/// The elements of the stored matrix, row by row, between which elements [begin, end) of a share's memory lie.
grid::Range elements_of(const grid::Share& share, std::int64_t columns, std::int64_t begin, std::int64_t end);

/// What tells that a file was written to: rank 0 looks, all know. @note Collective.
class Unchanged {
public:
    Unchanged(const Context& context, const Region& region);
    /// Whether it is still the same file, of the same size and not written to since. @note Collective.
    bool still(const Context& context) const;

private:
    const Region& region_;
    struct stat before_{};
};

}  // namespace tilewise::io
