// What operations say of themselves when they are done, in the words that all of them share.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tilewise {

/// How the result is to be proved.
enum class Verify { off, fast, serial };
inline constexpr std::array<std::string_view, 3> verify_names{"off", "fast", "serial"};

struct Verification {
    std::string method;
    bool passed = false;
    double error = 0;      ///< of a product the largest scaled residual; else how much of the file is wrong
    double tolerance = 0;  ///< the largest allowed `error`
    double share = 1;      ///< of the result that was checked; below 1, `passed` covers only this share
};

/// Seconds of one repetition of the in-memory part, each the largest over the ranks.
struct Sample {
    double compute = 0, exchange = 0;
    double both = 0;  ///< their sum on one rank
};

/// What every operation says when it is done, whatever else it has to say.
struct Outcome {
    std::optional<Verification> verification = {};
    std::vector<Sample> samples = {};
    double flops = 0;                        ///< of all ranks, one repetition
    bool working = true;                     ///< whether this rank had anything to do
    std::vector<std::string> warnings = {};  ///< rank 0's count
};

}  // namespace tilewise
