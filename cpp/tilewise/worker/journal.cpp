// What the job says of its journal, as the operations want it, and what was found there: as facts, and as warnings
// where it is not what was written.
#include <bit>
#include <charconv>

#include "tilewise/worker/job.hpp"
#include "tilewise/worker/run.hpp"

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

void add_resumed(Outcome& outcome, const std::optional<io::Resumed>& resumed) {
    if (!resumed || resumed->started == 0) {
        return;
    }
    outcome.result.add(
        "resumed",
        {{"starts", resumed->started + 1}, {"kept_pieces", resumed->kept}, {"spoilt_pieces", resumed->spoilt}});
    if (resumed->spoilt > 0) {
        outcome.warnings.push_back(std::to_string(resumed->spoilt) + (resumed->spoilt == 1 ? " piece" : " pieces") +
                                   " of the result did not hold what the journal says, and went through the job again");
    }
}

void add_resumed(Outcome& outcome, const std::optional<io::Restored>& restored) {
    if (!restored || restored->started == 0) {
        return;
    }
    outcome.result.add("resumed", {{"starts", restored->started + 1},
                                   {"sweeps", restored->version.value_or(0)},
                                   {"spoilt_checkpoints", restored->spoilt}});
    if (restored->spoilt > 0) {
        outcome.warnings.push_back(
            (restored->spoilt == 1 ? std::string("a checkpoint") : std::string("two checkpoints")) +
            " did not hold what the journal says; the job went on from " +
            (restored->version ? "sweep " + std::to_string(*restored->version) : std::string("the beginning")));
    }
}

}  // namespace tilewise::worker
