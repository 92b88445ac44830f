// The errors that a user can meet: each has a kind, which decides the exit code, and a text for one person to read.
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>

namespace tilewise {

enum class ErrorKind { usage, memory, io, mpi, launcher, verification, internal };

std::string_view name_of(ErrorKind kind);

class Error : public std::runtime_error {
public:
    Error(ErrorKind kind, const std::string& text, int rank = -1, int error_number = 0)
        : std::runtime_error(text),
          kind_(kind),
          rank_(rank),
          error_number_(error_number) {}

    ErrorKind kind() const { return kind_; }
    /// The rank on which it happened, or -1 where it concerns all of them.
    int rank() const { return rank_; }
    /// The system's `errno` where that is the cause, else 0.
    int error_number() const { return error_number_; }

private:
    ErrorKind kind_;
    int rank_, error_number_;
};

struct UsageError : Error {
    explicit UsageError(const std::string& text, int rank = -1) : Error(ErrorKind::usage, text, rank) {}
};
struct MemoryError : Error {
    explicit MemoryError(const std::string& text, int rank = -1) : Error(ErrorKind::memory, text, rank) {}
};
struct IoError : Error {
    explicit IoError(const std::string& text, int rank = -1, int error_number = 0)
        : Error(ErrorKind::io, text, rank, error_number) {}
};

/// What the system says about `errno`, for the end of a message: "No space left on device".
std::string system_reason(int error_number);

/// `what` could not be done, and the system says why: "C.npy: could not be opened: Permission denied".
IoError system_error(const std::string& what, int error_number);

/// The kind and text of any exception in flight, for agreement between ranks and for the last message before an abort.
Error error_in_flight();

}  // namespace tilewise
