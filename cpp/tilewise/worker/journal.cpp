// What the job says of its journal, as the operations want it.
#include <bit>
#include <charconv>

#include "tilewise/worker/job.hpp"

namespace tilewise::worker {
namespace {

std::uint64_t hexadecimal(const std::string& digits) {
    std::uint64_t value = 0;
    const char* end = digits.data() + digits.size();
    if (digits.empty() || std::from_chars(digits.data(), end, value, 16).ptr != end) {
        throw UsageError("the journal says '" + digits + "' where a hexadecimal number should be");
    }
    return value;
}

std::vector<io::Standing> pieces_of(const std::vector<StandingFields>& fields) {
    std::vector<io::Standing> pieces;
    for (const StandingFields& piece : fields) {
        const auto& [top, bottom, left, right] = piece.block;
        pieces.push_back({piece.start, {{top, bottom}, {left, right}}, hexadecimal(piece.sum)});
    }
    return pieces;
}

}  // namespace

io::JournalOptions journal_of(const Job& job) {
    if (!job.journal) {
        return {};
    }
    return {.folder = job.journal->folder,
            .start = job.journal->start,
            .flushed = job.sync,
            .standing = pieces_of(job.journal->standing)};
}

io::CheckpointOptions checkpoints_of(const Job& job) {
    if (!job.journal || job.journal->slots.empty()) {
        return {};
    }
    io::CheckpointOptions options{.folder = job.journal->folder,
                                  .start = job.journal->start,
                                  .flushed = job.sync,
                                  .every = job.journal->every,
                                  .ends = job.journal->ends,
                                  .slots = {},
                                  .saved = {}};
    for (const RegionFields& slot : job.journal->slots) {
        options.slots.push_back(region_of(slot));
    }
    for (const SavedFields& saved : job.journal->saved) {
        io::Saved& state = options.saved.emplace_back(
            io::Saved{.slot = saved.slot, .version = saved.version, .facts = {}, .pieces = pieces_of(saved.pieces)});
        for (const std::string& fact : saved.facts) {
            state.facts.push_back(std::bit_cast<double>(hexadecimal(fact)));
        }
    }
    return options;
}

}  // namespace tilewise::worker
