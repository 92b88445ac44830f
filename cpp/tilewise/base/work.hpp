// What kernels tell a simulator of their work. Of ranks that are real nobody wants to know, and it costs nothing.
//
//     kernel ── stood_in_for(operations, bytes) ──▶ simulator: the rank's clock goes on by the time that this takes at
//        ▲                                              │      the simulated processor's rates
//        └── computes, unless it says "left undone" ────┘      nobody will look at the numbers, or there are none
// Design: docs/design/simulation.md
#pragma once

#include <cstdint>

namespace tilewise {

#ifdef TILEWISE_SIMULATED
inline constexpr bool is_simulated = true;
/// Of so many operations on numbers, and so many bytes that have to come from memory or to go there; whichever takes
/// longer counts. Returns whether the work is to be left undone.
bool stood_in_for(double operations, double bytes);
/// Whether blocks have no memory of their own, and so hold no numbers.
bool without_numbers();
/// The most bytes of blocks that this rank has had at a time.
std::int64_t peak_block_bytes();
#else
inline constexpr bool is_simulated = false;
constexpr bool stood_in_for(double, double) { return false; }
constexpr bool without_numbers() { return false; }
constexpr std::int64_t peak_block_bytes() { return 0; }
#endif

}  // namespace tilewise
