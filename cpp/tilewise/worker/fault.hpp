// Breaks a run on purpose, for the tests of what happens then: `kill:RANK:PHASE`, `throw:RANK:PHASE`,
// `signal-N:RANK:PHASE`, `hang:RANK:PHASE`, `wait:RANK:PHASE`, `fail:RANK`, `element`, `unpack-bit`, `unpack-shift`,
// `unpack-forgotten`. `PHASE*3`: when it is entered for the third time.
#pragma once

#include <string>

#include "tilewise/base/ledger.hpp"

namespace tilewise::worker {

/// What to do on entering a phase; empty where this rank has nothing to break.
Ledger::Hook fault_hook(const std::string& fault, int rank);

/// Sees to it that chunks are unpacked wrongly where the fault is one of `unpack-…`.
void break_unpacking_if_told(const std::string& fault);

/// Throws on the rank of `fail:RANK`; sees to it that results are made wrong where the fault is `element`.
void fail_if_told(const std::string& fault, int rank);

}  // namespace tilewise::worker
