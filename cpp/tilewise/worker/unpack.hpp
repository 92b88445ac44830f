// Unpacks samples of packed inputs as ranks would, but in a process of its own and without MPI.
#pragma once

#include <iosfwd>
#include <string>

namespace tilewise::worker {

/// Writes the numbers of each input of the job in `text`, row by row as the file stores them, to `out`. The inputs are
/// in chunks. Throws UsageError for what cannot be unpacked.
void unpack_samples(const std::string& text, std::ostream& out);

}  // namespace tilewise::worker
