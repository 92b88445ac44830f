// Memory that messages leave from and arrive in: the host's, or a graphics processor's.
//
//      malloc, pinned             MPI gets an address on the host
//      device, managed: direct    MPI gets an address on the device, which it must know how to take
//      device, managed: staged    device ─▶ pinned ─▶ MPI ─▶ pinned ─▶ device; the copies count as time of the message
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tilewise/base/memory.hpp"
#include "tilewise/measure/ping_loops.hpp"
#include "tilewise/measure/point.hpp"
#include "tilewise/measure/prefaulted_buffer.hpp"
#include "tilewise/mpi/context.hpp"
#include "tilewise/mpi/datatype.hpp"

namespace tilewise::measure {

/// What both sides of a pair need; nothing on a rank that is in none.
class PingBuffers {
public:
    /// Looks for the device; takes nothing yet. Throws UsageError where there is none. @note Collective.
    PingBuffers(const mpi::Communicator& comm, const Point& point, bool in_pair);

    /// Why there is too little memory, with `exposed` bytes more of the host's; empty where there is enough. @note
    /// Collective.
    std::string lacks(std::int64_t exposed) const;
    /// Takes the memory and tells `side` of it. @note Collective.
    void allocate(std::optional<Side>& side);
    /// Throws IoError, on every rank, where what arrived on a device is not what was sent. @note Collective.
    void require_arrived(const std::optional<Side>& side, bool both_ways) const;
    /// What a reader must know, and which devices they were. @note Collective.
    void tell(const std::optional<Side>& side, Measurement& measured) const;

private:
    bool staged() const { return on_device_ && !point_.direct; }
    bool peers_refuse(const std::optional<Side>& side) const;

    const mpi::Communicator& comm_;
    const Point& point_;
    bool in_pair_, on_device_ = false, simulated_ = false;
    int number_ = 0;  // of the device
    std::unique_ptr<BlockMemory> out_, in_;
    PrefaultedBuffer host_out_, host_in_;
    std::optional<mpi::Span> message_;  // beyond 2³¹ bytes a type of its own
    Staging staging_;
};

}  // namespace tilewise::measure
