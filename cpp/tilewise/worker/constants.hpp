// What plans count on of this worker: the sizes of its buffers and panels, and what its rules go by.
// And what this worker was built as.
#pragma once

#include <cstdint>
#include <string>

namespace tilewise::worker {

/// One JSON object. Its `digest` is a number that another value of any of the constants changes.
std::string constants_text();
std::uint32_t constants_digest();

std::string build_version();
std::string build_compiler();

/// As JSON: the fields of every object of the seam, the tables of variants, and facts about this build, so that one
/// test of the front can hold both sides together.
std::string describe();

}  // namespace tilewise::worker
