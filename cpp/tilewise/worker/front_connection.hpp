// The connection that a rank holds to the front for as long as it lives: either side hears at once that the other
// ended.
//
//     rank on the front's host ── an abstract socket, by the name of the run ──┐
//                                                                               ├── front
//     rank on another host ────── TCP, to one of the front's addresses ─────────┘
//
// What is said on it stands in docs/reference/seam.md, "The line".
// Design: docs/design/failures.md
#pragma once

#include <array>

namespace tilewise::worker {

/// Seconds without an answer after which the other side's host counts as lost; it is asked for one after so many of
/// silence, and then every so many.
inline constexpr int line_patience = 15, line_asked_after = 5, line_asked_every = 2;

/// Where the front is to be found: on its own host by `run`, from others by `elsewhere` (a token, a port and
/// addresses). Plain bytes, for a broadcast.
struct Front {
    std::array<char, 64> run{};
    std::array<char, 960> elsewhere{};

    /// As the environment says it; empty where it does not.
    static Front by_environment();
};

/// Connects, unless that was done already; a thread then beats over it every second (see heartbeat.hpp), of which the
/// caller's thread is the subject. From another host that thread also connects, and from then on ends this process when
/// the front has ended or is not reached any more. Where the front cannot be reached at all, the launcher alone ends
/// the ranks.
void hold_line(const Front& front);

/// The connection to a front on another host, once it stands; −1 where there is none.
int await_line_elsewhere();

/// Whether the front has said that a rank is lost, or says so within so many milliseconds: what goes wrong here is then
/// no news. Safe in signal handlers.
bool loss_is_known(int milliseconds);

/// From now on the end of the connection means nothing to either side.
void leave_line();

}  // namespace tilewise::worker
