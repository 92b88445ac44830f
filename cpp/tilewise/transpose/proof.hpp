// Whether a file holds the transpose of another, looked up in the files themselves: the proof knows nothing of how it was done.
#pragma once

#include <string>

#include "tilewise/io/transfer.hpp"

namespace tilewise::transpose {

enum class Verify { off, fast, serial };

struct Verification {
    std::string method;
    bool passed = false;
    double error = 0;  ///< `serial`: numbers that differ; `fast`: 0 or 1
};

/// `fast`: all ranks read both files once, in panels, and compare a fingerprint in which every number counts with its place (`kernel/fingerprint.hpp`).
/// `serial`: rank 0 alone reads both files in bands, turns with the plain kernel, and compares number by number. `from` is wanted as the result is.
/// Memory: 16 MiB a rank. @note Collective.
Verification verify(Context& context, const io::Region& from, const io::Region& to, Verify how);

}  // namespace tilewise::transpose
