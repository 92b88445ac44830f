// What this worker was built as.
#pragma once

#include <string>

namespace tilewise::worker {

inline std::string build_version() { return TILEWISE_VERSION; }
inline std::string build_compiler() { return TILEWISE_COMPILER; }

}  // namespace tilewise::worker
