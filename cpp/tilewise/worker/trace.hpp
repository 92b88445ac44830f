// The timeline of a job: every rank's spans, MPI calls and messages in Chrome's trace format, for Perfetto and for
// reports.
//
//     { "traceEvents": [ {"ph": "M" …}          the name of each rank, which is a process (pid) with one thread
//                        {"ph": "X" …}          a slice: the job, a span (cat is its phase),
//                                               an MPI call (cat "mpi", "collective")
//                        {"ph": "s" …, "id"}    a message leaves: bytes and tag in its args
//                        {"ph": "X" …}          a slice of a nanosecond (cat "message") where it was there,
//                        {"ph": "f" …, "id"} ], … in which its line ends
//       "otherData": { messages, unmatched, dropped, … } }
//
// Times are microseconds on the clock of rank 0, from the moment that the first rank began. Ranks on its node share
// that clock; that of another node is set by the fastest of some round trips at the end, and a message that would then
// arrive before it left is drawn as arriving at once, and counted.
#pragma once

#include <string>

#include "tilewise/mpi/context.hpp"
#include "tilewise/worker/message_trace.hpp"

namespace tilewise::worker {

/// Writes it to `path`; `command` names the slice that is the job. Throws IoError on every rank. Ranks send their
/// events in parts of a megabyte, and rank 0 writes them one rank after another: none holds more than its own lists.
/// @note Collective; O(ranks) steps.
void write_trace(const Context& context, const MessageTrace& messages, const std::string& command,
                 const std::string& path);

}  // namespace tilewise::worker
