// What the strategies over MPI-IO share: a file opened with hints, whose view shows a rank nothing but its own share.
//
//        file  [header][ . . | # # ]      the view begins after the header; in it the share is contiguous
//                      [ . . | # # ]
#pragma once

#include "tilewise/io/strategy.hpp"
#include "tilewise/mpi/handle.hpp"

namespace tilewise::io {

class FileView {
public:
    /// Opens the file, with a view on this rank's share. Throws the same Error on every rank. @note Collective.
    FileView(Context& context, const Transfer& transfer, int mode, const Hints& hints);

    MPI_File get() const { return file_.get(); }
    const grid::Share& share() const { return share_; }
    MPI_Datatype item() const { return item_; }

    /// Runs f() on every rank and agrees on its failure: MPI-IO's codes are local. What the library says is put behind the file's name.
    /// @note Collective.
    template <class F> void step(const F& f) const;

    /// Throws IoError unless `status` speaks of `expected` numbers, where its count can be trusted.
    void require_moved(MPI_Status status, std::int64_t expected, const char* call) const;

private:
    [[noreturn]] void rethrow_named(const Error& error) const;

    const Context& context_;
    std::string name_;
    grid::Share share_;
    MPI_Datatype item_;
    mpi::Info info_;
    mpi::Datatype view_;
    mpi::File file_;
};

/// A view, one call, its count checked, the books kept; `call` has the signature of MPI_File_read. @note Collective.
using ViewCall = int (*)(MPI_File file, void* data, int count, MPI_Datatype type, MPI_Status* status);
void read_through_view(Context& context, const Transfer& transfer, const Hints& hints, const char* name, ViewCall call);
void write_through_view(Context& context, const Transfer& transfer, const Hints& hints, const char* name,
                        ViewCall call);

}  // namespace tilewise::io

#include "tilewise/mpi/together.hpp"

template <class F> void tilewise::io::FileView::step(const F& f) const {
    mpi::together(context_.comm, [&] {
        try {
            f();
        } catch (const Error& error) {
            rethrow_named(error);
        }
    });
}
