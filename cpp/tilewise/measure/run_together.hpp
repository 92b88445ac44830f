// Threads that begin a piece of work at one moment, timed until the last of them is done.
//
//      thread 0   summon ── ready() ── go ▶ work(0) ▶ │ greatest of all ends
//      thread 1   ···· wakes, spins ·· go ▶ work(1) ▶ │ less the moment of "go"
//
// Waking a thread takes up to 20 µs; a first-level cache is copied in a fiftieth of a microsecond.
#pragma once

#include <functional>

namespace tilewise::measure {

/// Calls `work(thread)` on `threads` threads, after `ready` on the caller's, thread 0, which may wait there for other
/// ranks; `work` may not throw. Returns seconds from the common start until the last thread was done.
double run_together(int threads, const std::function<void(int)>& work, const std::function<void()>& ready = {});

}  // namespace tilewise::measure
