// What graphics processors there are, for the front that asks the worker.
#pragma once

#include <string>

namespace tilewise::worker {

/// As JSON; docs/reference/seam.md has its fields.
std::string describe_devices();

}  // namespace tilewise::worker
