// Takes the memory of a pair where it is asked for, and looks afterwards at what arrived there.
#include "tilewise/measure/ping_buffers.hpp"

#include <array>
#include <functional>

#include "tilewise/base/host.hpp"
#include "tilewise/device/block_memory.hpp"
#include "tilewise/device/facts.hpp"
#include "tilewise/measure/memory_budget.hpp"
#include "tilewise/measure/samples.hpp"
#include "tilewise/mpi/sum.hpp"
#include "tilewise/mpi/together.hpp"

namespace tilewise::measure {
namespace {

constexpr std::byte sent_by_first{0x5a}, sent_by_other{0xa5};

Pattern sent_by(int rank) { return Pattern::of(rank, 0, 0); }

}  // namespace

PingBuffers::PingBuffers(const mpi::Communicator& comm, const Point& point, bool in_pair)
    : comm_(comm),
      point_(point),
      in_pair_(in_pair) {
    int devices = 0;
    mpi::together(comm_, [&] {
        if (!point_.buffer.empty() && device::needs_driver(point_.buffer)) {
            on_device_ = point_.buffer != "pinned";
            devices = device::presence().devices;
            simulated_ = device::presence().simulated;
        }
    });
    if (point_.buffer.empty() || point_.buffer == "malloc") {
        return;
    }
    number_ = device_of(comm_, devices, point_.gpus);
    mpi::together(comm_, [&] {
        out_ = device::make_memory(point_.buffer, number_);
        in_ = device::make_memory(point_.buffer, number_);
    });
}

std::string PingBuffers::lacks(std::int64_t exposed) const {
    const std::int64_t own = in_pair_ ? 2 * point_.bytes : 0;
    if (!out_) {
        return lacks_host_memory(comm_, own + exposed);
    }
    const std::string missing = lacks_memory(comm_, *out_, number_, own);
    return missing.empty() ? lacks_host_memory(comm_, staged() ? own : 0, "pinned") : missing;
}

void PingBuffers::allocate(std::optional<Side>& side) {
    mpi::together(comm_, [&] {
        if (!side) {
            return;
        }
        message_.emplace(point_.bytes, MPI_BYTE);
        side->count = message_->count();
        side->type = message_->type();
        if (!out_) {
            host_out_ =
                PrefaultedBuffer(static_cast<std::size_t>(point_.bytes), side->first ? sent_by_first : sent_by_other);
            host_in_ = PrefaultedBuffer(static_cast<std::size_t>(point_.bytes));
            side->out = host_out_.data();
            side->in = host_in_.data();
            return;
        }
        out_->allocate(point_.bytes);
        in_->allocate(point_.bytes);
        out_->fill(0, point_.bytes, sent_by(comm_.rank()));
        in_->fill(0, point_.bytes, sent_by(-1));
        side->out = out_->device_address();
        side->in = in_->device_address();
        if (staged()) {
            staging_ = {out_.get(), in_.get(), out_->stage(point_.bytes), in_->stage(point_.bytes), point_.bytes};
            side->out = staging_.out_stage;
            side->in = staging_.in_stage;
            side->staging = &staging_;
        }
    });
}

void PingBuffers::require_arrived(const std::optional<Side>& side, bool both_ways) const {
    if (!on_device_) {
        return;
    }
    mpi::together(comm_, [&] {
        if (!side || (side->first && !both_ways)) {
            return;
        }
        if (const std::int64_t wrong = in_->compare(0, point_.bytes, sent_by(side->peer)); wrong >= 0) {
            throw IoError("a message of " + std::to_string(point_.bytes) + " bytes from rank " +
                          std::to_string(side->peer) + " arrived wrong from its byte " + std::to_string(wrong) +
                          " on, sent by " + point_.name + " from " + point_.buffer + " memory" +
                          (staged() ? " through pinned memory" : ""));
        }
    });
}

bool PingBuffers::peers_refuse(const std::optional<Side>& side) const {
    bool refused = false;
    mpi::together(comm_, [&] {
        if (!side) {
            return;
        }
        const std::array<std::size_t, 2> mine{static_cast<std::size_t>(number_), std::hash<std::string>{}(host_name())};
        std::array<std::size_t, 2> theirs{};
        mpi::check(MPI_Sendrecv(mine.data(), sizeof mine, MPI_BYTE, side->peer, 0, theirs.data(), sizeof theirs,
                                MPI_BYTE, side->peer, 0, side->comm, MPI_STATUS_IGNORE),
                   "MPI_Sendrecv");
        refused =
            mine[1] == theirs[1] && mine[0] != theirs[0] && !device::reaches(number_, static_cast<int>(theirs[0]));
    });
    return mpi::any_of(comm_, refused);
}

void PingBuffers::tell(const std::optional<Side>& side, Measurement& measured) const {
    if (!out_) {
        return;
    }
    std::string device_name;
    mpi::together(comm_, [&] { device_name = out_->device(); });
    measured.devices = gathered(comm_, device_name);
    measured.simulated_devices = simulated_;
    if (!on_device_) {
        return;
    }
    measured.notes.push_back(staged() ? "staged: messages are copied through pinned memory"
                                      : "direct: MPI takes addresses of " + point_.buffer + " memory");
    if (peers_refuse(side)) {
        measured.notes.push_back("devices of a pair refuse peer access: their messages cross the host's memory");
    }
}

}  // namespace tilewise::measure
