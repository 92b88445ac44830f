// The errors that a user can meet: each has a kind, which decides the exit code, and a text for one person to read.
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>

namespace tilewise {

enum class ErrorKind { usage, memory, io, mpi, launcher, verification, stopped, internal };

std::string_view name_of(ErrorKind kind);

class Error : public std::runtime_error {
public:
    Error(ErrorKind kind, const std::string& text, int rank = -1, int error_number = 0, const std::string& advice = {},
          int agreed_by = 0)
        : std::runtime_error(text),
          advice_(advice),
          kind_(kind),
          rank_(rank),
          error_number_(error_number),
          agreed_by_(agreed_by) {}

    ErrorKind kind() const { return kind_; }
    /// The rank on which it happened, or -1 where it concerns all of them.
    int rank() const { return rank_; }
    /// The system's `errno` where that is the cause, else 0.
    int error_number() const { return error_number_; }
    /// Advice on the next step, where it is known; else empty.
    const std::string& advice() const { return advice_; }
    /// The number of ranks that throw it together, so that none waits for another; 0: this one alone.
    int agreed_by() const { return agreed_by_; }

private:
    std::string advice_;
    ErrorKind kind_;
    int rank_, error_number_, agreed_by_;
};

/// Each kind of error is a type, to be caught by it.
template <ErrorKind of> struct ErrorOf : Error {
    explicit ErrorOf(const std::string& text, int rank = -1, int error_number = 0, const std::string& advice = {},
                     int agreed_by = 0)
        : Error(of, text, rank, error_number, advice, agreed_by) {}
};
using UsageError = ErrorOf<ErrorKind::usage>;
using MemoryError = ErrorOf<ErrorKind::memory>;
using IoError = ErrorOf<ErrorKind::io>;
using MpiError = ErrorOf<ErrorKind::mpi>;
using LauncherError = ErrorOf<ErrorKind::launcher>;
using VerificationError = ErrorOf<ErrorKind::verification>;
using StoppedError = ErrorOf<ErrorKind::stopped>;  ///< the job was asked to end, and can go on later
using InternalError = ErrorOf<ErrorKind::internal>;

/// What the system says about `errno`, for the end of a message: "No space left on device".
std::string system_reason(int error_number);

/// `what` could not be done, and the system says why: "C.npy: could not be opened: Permission denied".
IoError system_error(const std::string& what, int error_number);

/// The kind and text of any exception in flight, for agreement between ranks and for the last message before an abort.
Error error_in_flight();

}  // namespace tilewise
