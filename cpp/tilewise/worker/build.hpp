// What this worker was built as.
#pragma once

#include <string>

namespace tilewise::worker {

std::string build_version();
std::string build_compiler();

}  // namespace tilewise::worker
