// Which messages went between ranks, and when: what this rank's MPI calls say of it, kept for the timeline.
//
//     rank 0  ──[MPI_Send]───────────────[MPI_Waitall]──        a line begins where the call that sends begins
//                   ╲                          ╱                and ends where the receiver's call that completed
//     rank 1  ──[MPI_Irecv]──[MPI_Waitall]──[MPI_Isend]─        it returned: MPI_Recv itself; of MPI_Irecv the
//                                    ▲                          wait or test
//
// The calls are caught by the functions of the same names in interpose*.cpp, and no exchange knows of it. Each rank
// keeps what it sent and what it received in the order of its calls; when the job is done they are matched (see
// trace.cpp) by source, destination, communicator, tag and order, since MPI promises that messages which could match
// the same receive do not overtake.
//
// One-sided messages are known to the origin alone: from its MPI_Get or MPI_Put to the return of the call that
// completed it there (fence, complete, flush, unlock, or the wait for an Rget); a get comes from the target, a put goes
// to it. Of a collective call each rank has its own part only: a slice with the call's name. What MPI sends inside of
// its calls is not seen.
//
// Communicators are told apart without asking anybody: communicators are made collectively, so the n-th child of a
// known one is the same on all its ranks; disjoint children may share a number, as no two ranks are together in both.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "tilewise/base/ledger.hpp"
#include "tilewise/mpi/communicator.hpp"
#include "tilewise/mpi/context.hpp"

namespace tilewise::worker {

/// Of messages sent, received and moved one-sidedly, and of calls, as many are kept on each rank; the others are only
/// counted.
inline constexpr std::size_t most_messages = 200'000;

/// Times are the ledger's; ranks are those of the job.
struct Sent {
    double at;
    std::int64_t bytes;
    std::uint32_t channel;  ///< which communicator
    int peer, tag;
};
struct Received {
    double at;  ///< below 0: it never came
    std::uint32_t channel;
    int peer, tag;
};
struct Moved {
    double from, to;  ///< `to` below 0: nothing completed it
    std::int64_t bytes;
    int peer;
    bool put;
};
struct Call {
    const char* name;
    double begin, end;
    bool collective;
};

class MessageTrace {
public:
    /// From here on, calls on `comm`, its descendants and their windows are kept. Not collective.
    void start(const mpi::Communicator& comm, const Ledger& ledger);
    /// What this rank did is kept; no call is from here on. May be called again.
    void stop();
    /// Asked by every call of MPI: one variable.
    static bool running() { return running_; }
    double now() const { return ledger_->now(); }
    double stopped() const { return stopped_; }

    void called(const char* name, double begin, bool collective = false);
    void sent(double at, std::int64_t count, MPI_Datatype type, int peer, int tag, MPI_Comm comm);
    /// A receive was posted: what completes it is told to `received`. -1 where it is none to keep.
    int posted(int peer, int tag, MPI_Comm comm);
    void received(int posted);
    /// A one-sided message of this origin; without a request the next `synchronized` of its window completes it.
    int moved(double at, std::int64_t count, MPI_Datatype type, int peer, MPI_Win window, bool put, bool by_request);
    void landed(int moved);
    /// All messages of this window to `peer`, or to anybody (-1), have arrived.
    void synchronized(MPI_Win window, int peer = -1);
    void window_gone(MPI_Win window);

    void made(MPI_Comm parent, MPI_Comm child);
    void gone(MPI_Comm comm);

    const std::vector<Sent>& all_sent() const { return sent_; }
    const std::vector<Received>& all_received() const { return received_; }
    const std::vector<Moved>& all_moved() const { return moved_; }
    const std::vector<Call>& calls() const { return calls_; }
    /// How many messages that came here found no room, or were received from anybody or with any tag.
    std::int64_t dropped() const { return dropped_; }
    std::int64_t dropped_calls() const { return dropped_calls_; }

private:
    struct Group {
        std::uint32_t channel = 0, children = 0;
        std::vector<int> ranks;  ///< of the job, by rank in this group
    };
    struct Access {
        std::vector<int> ranks;
        std::vector<int> open;  ///< places in moved_
    };
    std::vector<int> ranks_of(MPI_Group group) const;
    Access& access(MPI_Win window);
    template <class T> int keep(std::vector<T>& list, const T& item);

    static inline bool running_ = false;
    const Ledger* ledger_ = nullptr;
    double stopped_ = 0;
    MPI_Comm root_ = MPI_COMM_NULL;
    int me_ = 0;
    std::unordered_map<MPI_Comm, Group> groups_;
    std::unordered_map<MPI_Win, Access> windows_;
    std::vector<Sent> sent_;
    std::vector<Received> received_;
    std::vector<Moved> moved_;
    std::vector<Call> calls_;
    std::int64_t dropped_ = 0, dropped_calls_ = 0;
};

/// Starts the trace where one is wanted, and stops it before the ledger is gone.
class Tracing {
public:
    Tracing(bool wanted, const mpi::Communicator& comm, const Ledger& ledger);
    Tracing(const Tracing&) = delete;
    Tracing& operator=(const Tracing&) = delete;
    ~Tracing();
};

/// The one that the calls of this process are told to. MPI's calls are of one thread of the process.
MessageTrace& message_trace();

/// The timeline of a job: every rank's spans, MPI calls and messages in Chrome's trace format, for Perfetto and for
/// reports.
///
///     { "traceEvents": [ {"ph": "M" …}          the name of each rank, which is a process (pid) with one thread
///                        {"ph": "X" …}          a slice: the job, a span (cat is its phase),
///                                               an MPI call (cat "mpi", "collective")
///                        {"ph": "s" …, "id"}    a message leaves: bytes and tag in its args
///                        {"ph": "X" …}          a slice of a nanosecond (cat "message") where it was there,
///                        {"ph": "f" …, "id"} ], … in which its line ends
///       "otherData": { messages, unmatched, dropped, … } }
///
/// Times are microseconds on the clock of rank 0, from the moment that the first rank began. Ranks on its node share
/// that clock; that of another node is set by the fastest of some round trips at the end, and a message that would then
/// arrive before it left is drawn as arriving at once, and counted.
///
/// Writes it to `path`; `command` names the slice that is the job. Throws IoError on every rank. Ranks send their
/// events in parts of a megabyte, and rank 0 writes them one rank after another: none holds more than its own lists.
/// @note Collective; O(ranks) steps.
void write_trace(const Context& context, const MessageTrace& messages, const std::string& command,
                 const std::string& path);

}  // namespace tilewise::worker
