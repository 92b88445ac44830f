// Names of error kinds, the system's own words, and the catch-all that turns any exception into ours.
#include "tilewise/base/error.hpp"

#include <exception>
#include <new>
#include <system_error>

namespace tilewise {

std::string_view name_of(ErrorKind kind) {
    switch (kind) {
        case ErrorKind::usage:
            return "usage";
        case ErrorKind::memory:
            return "memory";
        case ErrorKind::io:
            return "io";
        case ErrorKind::mpi:
            return "mpi";
        case ErrorKind::launcher:
            return "launcher";
        case ErrorKind::verification:
            return "verification";
        case ErrorKind::stopped:
            return "stopped";
        case ErrorKind::internal:
            break;
    }
    return "internal";
}

std::string system_reason(int error_number) { return std::generic_category().message(error_number); }

IoError system_error(const std::string& what, int error_number) {
    return IoError(what + ": " + system_reason(error_number), -1, error_number);
}

Error error_in_flight() {
    try {
        throw;
    } catch (const Error& error) {
        return error;
    } catch (const std::bad_alloc&) {
        return MemoryError("the system refused to give more memory");
    } catch (const std::exception& error) {
        return InternalError(error.what());
    } catch (...) {
        return InternalError("an exception of unknown type");
    }
}

}  // namespace tilewise
