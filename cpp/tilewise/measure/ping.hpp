// What the two ranks of a pair do to each other, again and again, with nothing else in between.
//
//                 roundtrip                        stream: 64 messages one way, a small answer
//      first    out ──▶ in    other                out ─▶ ─▶ ─▶ … ─▶ in
//               in  ◀── out                           ◀──────────── 4 bytes
//
//      put, get: the first alone acts on the other's window; one operation and its flush, or 64 and one flush
//
// Messages leave from and arrive in memory of the host or of a graphics processor:
//
//      malloc, pinned             MPI gets an address on the host
//      device, managed: direct    MPI gets an address on the device, which it must know how to take
//      device, managed: staged    device ─▶ pinned ─▶ MPI ─▶ pinned ─▶ device; the copies count as time of the message
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "tilewise/base/memory.hpp"
#include "tilewise/mpi/mpi.hpp"

namespace tilewise::measure {

/// Memory of a device, and the pinned memory that MPI gets in its place: a program copies messages off its device
/// before it sends, and onto it after they have arrived. There is one stage a side: the next message is copied into it
/// when the one before has left, also in a stream.
struct Staging {
    BlockMemory *out = nullptr, *in = nullptr;
    std::byte *out_stage = nullptr, *in_stage = nullptr;
    std::int64_t bytes = 0;
};

/// One rank's side of a pair. `out` and `in` are memory of their own, as long as a message each, which is `count` of
/// `type`, as mpi::Span has them; a window is needed by put and get only, and has been locked.
struct Side {
    MPI_Comm comm = MPI_COMM_NULL;
    int peer = 0;
    bool first = false;  ///< sends first, or acts on the other's window
    int count = 0;
    MPI_Datatype type = MPI_BYTE;
    const std::byte* out = nullptr;
    std::byte* in = nullptr;
    MPI_Win window = MPI_WIN_NULL;
    const Staging* staging = nullptr;  ///< where `out` and `in` are only stages
};

/// Messages, puts or gets between two answers or flushes of a stream.
inline constexpr int window_messages = 64;

/// One way of exchanging. `run` does `count` round trips or windows; both sides of a pair call it with the same count,
/// except where it is one-sided: then the first alone does.
struct PingEntry {
    std::string_view name, pattern;
    void (*run)(const Side& side, std::int64_t count);
    int messages;  ///< of each round trip or window that `run` counts
    bool one_sided;
};

extern const std::array<PingEntry, 8> ping_table;

/// The entry of the table, or null; `staged`: of messages that are, which one-sided ones are not.
const PingEntry* find_ping(std::string_view name, std::string_view pattern, bool staged = false);

/// An empty message there and back: when the first has its answer, the other is about to enter `run`.
void meet_peer(const Side& side);

}  // namespace tilewise::measure
