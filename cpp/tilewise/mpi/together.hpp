// The rules for errors across ranks: fail together, and never leave others waiting.
//
//   together(comm, step)       every rank runs the step; if it fails on any rank, every rank throws the same error:
//
//        rank 0   1   2   3          rank 0   1   2   3
//             ok  ok  !!  ok   ─▶         !!  !!  !!  !!     the type that rank 2 threw, marked as agreed by 4 ranks
//
//   no_return(comm, body)      others wait for this rank in the body: an error that is not agreed ends the whole job
//                              after its last words, so that nobody hangs; one that is passes, and all ranks go on;
//                              where deaths are survived (communicator.hpp), errors of MPI pass, too
// Design: docs/design/failures.md
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "tilewise/base/error.hpp"
#include "tilewise/mpi/communicator.hpp"

namespace tilewise::mpi {

/// Throws, on every rank, the error of the lowest rank that has one, as the type of its kind and marked as agreed. One
/// that knows the system's `errno` goes before those that do not. Costs one small reduction where all is well. @note
/// Collective.
void agree(const Communicator& comm, const std::optional<Error>& mine);

/// Throws what every rank of `comm` throws alike, as all have found the same. Not collective by itself.
[[noreturn]] void throw_agreed(const Communicator& comm, const Error& error);

/// For tests: called at the end of each step on every rank of `comm`. What it throws counts as the step's own error.
using StepFault = std::function<void(const Communicator& comm)>;
void set_step_fault(StepFault fault);
void meet_step_fault(const Communicator& comm);

/// Runs `step` on every rank and agrees on its failure. `step` must not leave a rank waiting for one that failed.
/// @note Collective.
template <class F> void together(const Communicator& comm, const F& step) {
    std::optional<Error> failure;
    try {
        step();
        meet_step_fault(comm);
    } catch (...) {
        failure = error_in_flight();
    }
    agree(comm, failure);
}

/// How an abort tells the world what happened: called with the error and the rank that met it.
using LastWords = std::function<void(const Error& error, int rank)>;
void set_last_words(LastWords last_words);

/// Throws on what is being caught if all of `comm` throw it too; else reports it and ends the job.
[[noreturn]] void rethrow_or_abort(const Communicator& comm);

/// Runs `body`, in which ranks wait for each other. Each operation is one. Not collective by itself.
template <class F> decltype(auto) no_return(const Communicator& comm, const F& body) {
    try {
        return body();
    } catch (...) {
        rethrow_or_abort(comm);
    }
}

/// Throws UsageError alike on every rank, with both hosts and versions, unless `what` has the version of rank 0's
/// everywhere. @note Collective.
void require_same(const Communicator& comm, const std::string& what, const std::string& version,
                  const std::string& advice);

/// Whether all ranks have the same text. @note Collective; the same on every rank.
bool is_same(const Communicator& comm, const std::string& text);

}  // namespace tilewise::mpi
