// What the strategies over MPI-IO share: a file opened with hints, whose view shows a rank nothing but its own share,
// and a look at what the library says that it has read.
//
//        file  [header][ . . | # # ]      the view begins after the header; in it the share is contiguous
//                      [ . . | # # ]
// Design: docs/design/formats.md
#pragma once

#include <sys/stat.h>

#include "tilewise/io/elements.hpp"
#include "tilewise/mpi/datatype.hpp"
#include "tilewise/mpi/handle.hpp"

namespace tilewise::io {

class FileView {
public:
    /// Opens the file, with a view on this rank's share. Throws the same Error on every rank. @note Collective.
    FileView(Context& context, const Transfer& transfer, Direction direction, const Hints& hints);

    MPI_File get() const { return file_.get(); }
    const grid::Share& share() const { return share_; }
    MPI_Datatype item() const { return item_; }

    /// Runs f() on this rank. What the library says of a failure is put behind the file's name, with the system's
    /// reason where it can be found out.
    void call(const std::function<void()>& f) const;
    /// Does so on every rank, and agrees on a failure: MPI-IO's codes are local. What a signal interrupted is done
    /// again, by all. @note Collective.
    void step(const std::function<void()>& f) const;

    /// Throws IoError unless `status` speaks of `expected` numbers, where its count can be trusted.
    void require_moved(MPI_Status status, std::int64_t expected, const char* call) const;

    /// How samples meet each piece that the library reads where it sieves or collects: arguments of `samples_of`.
    struct Pieces {
        std::int64_t cell;
        int turn;
    };
    Pieces pieces() const;

    /// Throws IoError when the system says that what was written is not there. @note Collective.
    void close();

private:
    Context& context_;
    const Transfer& transfer_;
    Direction direction_;
    grid::Share share_;
    MPI_Datatype item_;
    mpi::Info info_;
    mpi::Datatype view_;
    mpi::File file_;
};

/// Whether a library that says it has read a share has done so: ROMIO counts what it was asked for, not what came.
///
///     before   [ . . . ! | . . . ! ]     the end of each run of the file is marked in memory
///     after    [ a b c d | e f g ! ]     a call that brought too little left a mark, which is compared with the file;
///              [ a b c d | e f g h ]     so are samples: a library's own buffer may have held what was there before
///
/// Where somebody wrote to the file meanwhile, all bytes are compared.
class ShortReadCheck {
public:
    /// Marks memory, and looks at the file on rank 0. `pieces` is such that each piece is met which the library reads
    /// in one call, if it does not read run by run.
    ShortReadCheck(Context& context, const Transfer& transfer, grid::Share share, FileView::Pieces pieces);

    /// Throws IoError where memory holds anything else than the file. @note Collective.
    void require_read() const;

private:
    void compare_with_file(bool everything) const;
    void compare(const PosixFile& file, std::int64_t first, std::int64_t count, std::int64_t local) const;
    /// Calls f(place in memory, bytes, first byte in the file) for the mark of each run.
    template <class F> void for_marks(F f) const;
    grid::Range span() const { return grid::span_of(share_, transfer_.columns()); }

    Context& context_;
    const Transfer& transfer_;
    grid::Share share_;
    FileView::Pieces pieces_;
    struct stat before_{};
};

}  // namespace tilewise::io
