// The two rules for errors across ranks: prepare together, and never leave others waiting.
//
//   together(comm, f)          every rank runs f; if it fails on any rank, every rank throws the same error:
//
//        rank 0   1   2   3          rank 0   1   2   3
//             ok  ok  !!  ok   ─▶         !!  !!  !!  !!     "… (on rank 2)"
//
//   NoReturnRegion region(…)   others already wait for this rank: an exception that leaves the region's scope is
//                              reported, and the job is aborted; nobody hangs.
#pragma once

#include <functional>
#include <optional>

#include "tilewise/base/error.hpp"
#include "tilewise/mpi/communicator.hpp"

namespace tilewise::mpi {

/// What every rank throws alike: none of them waits for another.
struct AgreedError : Error {
    using Error::Error;
};

/// Throws the error of the lowest rank that has one, on every rank; one that knows the system's `errno` goes before those that do not. Costs one small reduction where all is well.
/// @note Collective.
void agree(const Communicator& comm, const std::optional<Error>& mine);

/// Runs `f` on every rank and agrees on its failure. `f` itself must not communicate. @note Collective.
template <class F> void together(const Communicator& comm, const F& f) {
    std::optional<Error> failure;
    try {
        f();
    } catch (...) {
        failure = error_in_flight();
    }
    agree(comm, failure);
}

/// How an abort tells the world what happened: called with the error and the rank that met it.
using LastWords = std::function<void(const Error& error, int rank)>;
void set_last_words(LastWords last_words);

/// While one is open, an exception that escapes from it ends the whole job, after its last words.
class NoReturnRegion {
public:
    explicit NoReturnRegion(const Communicator& comm);
    NoReturnRegion(const NoReturnRegion&) = delete;
    NoReturnRegion& operator=(const NoReturnRegion&) = delete;
    ~NoReturnRegion();

private:
    MPI_Comm comm_;
    int exceptions_;
};

/// Reports the exception in flight and ends the job. Never returns.
[[noreturn]] void abort_with_error_in_flight(MPI_Comm comm);

/// Runs `f` where others already wait for this rank: if it throws, the job is aborted. Not collective by itself.
template <class F> decltype(auto) no_return(const Communicator& comm, const F& f) {
    const NoReturnRegion region(comm);
    try {
        return f();
    } catch (...) {
        abort_with_error_in_flight(comm.get());  // here the exception's text is still to be had
    }
}

}  // namespace tilewise::mpi
