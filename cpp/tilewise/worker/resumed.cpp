// As facts, and as warnings where what was found is not what was written.
#include "tilewise/worker/resumed.hpp"

namespace tilewise::worker {

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
