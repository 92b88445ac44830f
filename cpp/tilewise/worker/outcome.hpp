// What every command says when it is done, whatever it did: what the record is made of beside the books.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "tilewise/base/outcome.hpp"
#include "tilewise/worker/json.hpp"

namespace tilewise::worker {

struct Outcome {
    std::optional<Verification> verification;
    std::vector<Sample> samples;
    double flops = 0;                   ///< of all ranks, one repetition
    bool working = true;                ///< whether this rank had anything to do
    Json result = Json::object();       ///< what the command itself has to say; rank 0's counts
    std::vector<std::string> warnings;  ///< rank 0's count
    std::vector<Json> losses;           ///< of numbers in texts, each with its input; the same on all ranks
    std::vector<Json> slices;           ///< of a stack: result, verification and warnings of each; rank 0's count
    /// What is measured once the books are closed; may add to `result`. Collective.
    std::function<void(Outcome& outcome)> afterwards = {};
};

}  // namespace tilewise::worker
