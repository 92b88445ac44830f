// Whether a file holds the transpose of another, looked up in the files themselves: the proof knows nothing of how it
// was done.
#pragma once

#include "tilewise/base/outcome.hpp"
#include "tilewise/io/transfer.hpp"

namespace tilewise::transpose {

/// `fast`: all ranks read both files once, in blocks, and compare a fingerprint in which every number counts with its
/// place (`kernel/codec/fingerprint.hpp`); `error` is 0 or 1. `serial`: rank 0 alone reads both files in blocks, turns
/// with the plain kernel, and compares number by number; `error` is how many differ. `from` is wanted as the result is.
/// Where one of the files is a text, all NaNs are the same: it has one word for them.
///
/// Memory: 16 MiB a rank; of a text 16 MiB more and room for some whole lines, of tiles room for three rows of one.
/// @note Collective.
Verification verify(Context& context, const io::Region& from, const io::Region& to, Verify how);

}  // namespace tilewise::transpose
