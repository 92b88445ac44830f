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

    /// Runs f() on every rank and agrees on its failure: MPI-IO's codes are local. What the library says is put behind
    /// the file's name, with the system's reason where it can be found out. What a signal interrupted is done again, by
    /// all. @note Collective.
    template <class F> void step(const F& f) const;

    /// Throws IoError unless `status` speaks of `expected` numbers, where its count can be trusted.
    void require_moved(MPI_Status status, std::int64_t expected, const char* call) const;

    /// Moves elements [begin, end) of the share in one step: call(count, type, status) is told where to, and begins at
    /// the right place of the view even if it is done again. What is read is compared with the file. @note Collective.
    template <class Call> void move(std::int64_t begin, std::int64_t end, const char* name, const Call& call) const;

    /// Throws IoError when the system says that what was written is not there. @note Collective.
    void close();

private:
    [[noreturn]] void rethrow_named(const Error& error, int seen) const;
    /// How samples meet each piece that the library reads where it sieves or collects: arguments of `samples_of`.
    struct Pieces {
        std::int64_t cell;
        int turn;
    };
    Pieces pieces() const;

    static constexpr int most_interrupts = 100;

    const Context& context_;
    const Transfer& transfer_;
    bool reads_;
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

#include <cerrno>
#include <optional>

#include "tilewise/io/delivery.hpp"
#include "tilewise/mpi/datatype.hpp"
#include "tilewise/mpi/together.hpp"

template <class F> void tilewise::io::FileView::step(const F& f) const {
    for (int interrupts = 0;; ++interrupts) {
        try {
            mpi::together(context_.comm, [&] {
                errno = 0;
                try {
                    f();
                } catch (const Error& error) {
                    rethrow_named(error, errno);
                }
            });
            return;
        } catch (const Error& error) {
            if (error.error_number() != EINTR || interrupts == most_interrupts) {
                throw;
            }
        }
    }
}

template <class Call>
void tilewise::io::FileView::move(std::int64_t begin, std::int64_t end, const char* name, const Call& call) const {
    const grid::Range within = elements_of(share_, transfer_.columns(), begin, end);
    std::optional<Unchanged> unchanged;
    std::optional<Delivery> delivery;
    if (reads_) {
        unchanged.emplace(context_, transfer_.region);
        const Pieces read = pieces();
        delivery.emplace(transfer_, share_, within, read.cell, read.turn);
    }
    const std::string where = std::string(name) + " from byte " + std::to_string(transfer_.at(within.begin)) + " on";
    step([&] {
        const mpi::Span span(end - begin, item_);
        MPI_Status status{};
        mpi::check(MPI_File_seek(file_.get(), begin, MPI_SEEK_SET), "MPI_File_seek");
        mpi::check(call(transfer_.data + begin * transfer_.item(), span, &status), where.c_str());
        require_moved(status, end - begin, name);
    });
    if (reads_) {
        const bool same = unchanged->still(context_);
        mpi::together(context_.comm, [&] { delivery->check(!same); });
    }
}
