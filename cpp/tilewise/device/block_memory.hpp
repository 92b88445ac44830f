// Memory for blocks and messages by the name that --buffer gives it.
//
//      malloc    host memory                          a call takes it as it is
//      pinned    host memory that the driver locks    a call takes it as it is
//      managed   its pages move to and fro            a call takes it as it is
//      device    memory of the device                 a call cannot reach it: copied through a pinned stage
//
// Content of managed and device memory is made and checked on the device. Copying through the stage counts as time of
// the call.
#pragma once

#include <memory>
#include <string>

#include "tilewise/base/memory.hpp"

namespace tilewise::device {

/// Whether the kind of memory comes from a graphics processor's driver. Throws UsageError for an unknown name.
bool needs_driver(const std::string& name);

/// Nothing allocated yet. `number` is the device's, and is not looked at for malloc. Throws UsageError where this
/// machine cannot have such memory; MemoryError and IoError where the driver fails.
std::unique_ptr<BlockMemory> make_memory(const std::string& name, int number);

/// The text of pattern.ptx, by which a device makes and checks content.
const char* pattern_text();

}  // namespace tilewise::device
