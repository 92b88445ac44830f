// What the job says of its journal, as the operations want it.
#include <charconv>

#include "tilewise/worker/job.hpp"

namespace tilewise::worker {

io::JournalOptions journal_of(const Job& job) {
    io::JournalOptions options;
    if (!job.journal) {
        return options;
    }
    options.folder = job.journal->folder;
    options.start = job.journal->start;
    options.flushed = job.sync;
    for (const StandingFields& piece : job.journal->standing) {
        const auto& [top, bottom, left, right] = piece.block;
        std::uint64_t sum = 0;
        const char* end = piece.sum.data() + piece.sum.size();
        if (std::from_chars(piece.sum.data(), end, sum, 16).ptr != end) {
            throw UsageError("a piece of the journal has the checksum '" + piece.sum + "'");
        }
        options.standing.push_back({piece.start, {{top, bottom}, {left, right}}, sum});
    }
    return options;
}

}  // namespace tilewise::worker
