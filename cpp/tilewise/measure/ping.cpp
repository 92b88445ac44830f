// Messages between pairs of ranks, all pairs at once: how long a round trip takes, or a message in a stream of them.
//
//      rank 0 ─▶ │barrier│ meet │clock│ out in out in … (inner times) │clock│
//      rank 1 ─▶ │barrier│ meet │      in out in out …               │
//      rank 2 ─▶ │barrier│ meet │clock│ …                       a sample: the slowest pair's seconds ÷ messages
//      rank 4, without a pair: waits in the next barrier
//
// Ranks leave a barrier one after the other, some tenths of a microsecond apart. Within a pair that does not count: the
// clock starts after the two have met. Between pairs it does: samples of several pairs are longer, so that what one
// pair does alone at the start and the end is below a percent of them.
#include "tilewise/measure/ping.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>

#include "tilewise/base/error.hpp"
#include "tilewise/base/host.hpp"
#include "tilewise/base/memory.hpp"
#include "tilewise/device/block_memory.hpp"
#include "tilewise/device/driver.hpp"
#include "tilewise/measure/buffers.hpp"
#include "tilewise/measure/measure.hpp"
#include "tilewise/measure/samples.hpp"
#include "tilewise/mpi/datatype.hpp"
#include "tilewise/mpi/sum.hpp"
#include "tilewise/mpi/together.hpp"
#include "tilewise/mpi/window.hpp"

namespace tilewise::measure {

namespace {

constexpr int message_tag = 1, answer_tag = 2, meeting_tag = 3;
constexpr int answer_bytes = 4;

/// mpi::check, of which only the comparison is in the loop: a call costs a percent of the shortest message.
inline void ok(int code, const char* call) {
    if (code != MPI_SUCCESS) [[unlikely]] {
        mpi::check(code, call);
    }
}

/// A staged message is copied off its device before it is sent, and onto it after it has arrived.
template <bool staged> void copy_out(const Side& s) {
    if constexpr (staged) {
        s.staging->out->to_host(s.staging->out_stage, 0, s.staging->bytes);
    }
}
template <bool staged> void copy_in(const Side& s) {
    if constexpr (staged) {
        s.staging->in->from_host(0, s.staging->in_stage, s.staging->bytes);
    }
}

template <bool staged> void send(const Side& s) {
    copy_out<staged>(s);
    ok(MPI_Send(s.out, s.count, s.type, s.peer, message_tag, s.comm), "MPI_Send");
}
template <bool staged> void receive(const Side& s) {
    ok(MPI_Recv(s.in, s.count, s.type, s.peer, message_tag, s.comm, MPI_STATUS_IGNORE), "MPI_Recv");
    copy_in<staged>(s);
}
template <bool staged = false> MPI_Request start_send(const Side& s) {
    copy_out<staged>(s);
    MPI_Request request = MPI_REQUEST_NULL;
    ok(MPI_Isend(s.out, s.count, s.type, s.peer, message_tag, s.comm, &request), "MPI_Isend");
    return request;
}
MPI_Request start_receive(const Side& s) {
    MPI_Request request = MPI_REQUEST_NULL;
    ok(MPI_Irecv(s.in, s.count, s.type, s.peer, message_tag, s.comm, &request), "MPI_Irecv");
    return request;
}
void wait(MPI_Request request) { ok(MPI_Wait(&request, MPI_STATUS_IGNORE), "MPI_Wait"); }
template <bool staged> void wait_received(const Side& s, MPI_Request request) {
    wait(request);
    copy_in<staged>(s);
}

void send_answer(const Side& s) {
    const std::array<std::byte, answer_bytes> nothing{};
    ok(MPI_Send(nothing.data(), answer_bytes, MPI_BYTE, s.peer, answer_tag, s.comm), "MPI_Send");
}
void receive_answer(const Side& s) {
    std::array<std::byte, answer_bytes> nothing;
    ok(MPI_Recv(nothing.data(), answer_bytes, MPI_BYTE, s.peer, answer_tag, s.comm, MPI_STATUS_IGNORE), "MPI_Recv");
}

template <bool staged> void blocking_roundtrip(const Side& s, std::int64_t count) {
    if (s.first) {
        for (std::int64_t i = 0; i < count; ++i) {
            send<staged>(s);
            receive<staged>(s);
        }
    } else {
        for (std::int64_t i = 0; i < count; ++i) {
            receive<staged>(s);
            send<staged>(s);
        }
    }
}

/// The first has its receive posted before it sends, which is what nonblocking messages are for.
template <bool staged> void nonblocking_roundtrip(const Side& s, std::int64_t count) {
    if (s.first) {
        for (std::int64_t i = 0; i < count; ++i) {
            const MPI_Request answer = start_receive(s);
            wait(start_send<staged>(s));
            wait_received<staged>(s, answer);
        }
    } else {
        for (std::int64_t i = 0; i < count; ++i) {
            wait_received<staged>(s, start_receive(s));
            wait(start_send<staged>(s));
        }
    }
}

template <bool staged> void blocking_stream(const Side& s, std::int64_t count) {
    for (std::int64_t i = 0; i < count; ++i) {
        for (int message = 0; message < window_messages; ++message) {
            s.first ? send<staged>(s) : receive<staged>(s);
        }
        s.first ? receive_answer(s) : send_answer(s);
    }
}

void nonblocking_stream(const Side& s, std::int64_t count) {
    std::array<MPI_Request, window_messages> requests;
    for (std::int64_t i = 0; i < count; ++i) {
        for (MPI_Request& request : requests) {
            request = s.first ? start_send(s) : start_receive(s);
        }
        ok(MPI_Waitall(window_messages, requests.data(), MPI_STATUSES_IGNORE), "MPI_Waitall");
        s.first ? receive_answer(s) : send_answer(s);
    }
}

/// All puts of a window go to the same place, and bring the same numbers, so that whichever is last leaves them there.
template <int messages> void put(const Side& s, std::int64_t count) {
    for (std::int64_t i = 0; i < count; ++i) {
        for (int message = 0; message < messages; ++message) {
            ok(MPI_Put(s.out, s.count, s.type, s.peer, 0, s.count, s.type, s.window), "MPI_Put");
        }
        ok(MPI_Win_flush(s.peer, s.window), "MPI_Win_flush");
    }
}

template <int messages> void get(const Side& s, std::int64_t count) {
    for (std::int64_t i = 0; i < count; ++i) {
        for (int message = 0; message < messages; ++message) {
            ok(MPI_Get(s.in, s.count, s.type, s.peer, 0, s.count, s.type, s.window), "MPI_Get");
        }
        ok(MPI_Win_flush(s.peer, s.window), "MPI_Win_flush");
    }
}

}  // namespace

const std::array<PingEntry, 8> ping_table{{
    {"blocking", "roundtrip", blocking_roundtrip<false>, 1, false},
    {"blocking", "stream", blocking_stream<false>, window_messages, false},
    {"nonblocking", "roundtrip", nonblocking_roundtrip<false>, 1, false},
    {"nonblocking", "stream", nonblocking_stream, window_messages, false},
    {"put", "roundtrip", put<1>, 1, true},
    {"put", "stream", put<window_messages>, window_messages, true},
    {"get", "roundtrip", get<1>, 1, true},
    {"get", "stream", get<window_messages>, window_messages, true},
}};

/// The same of messages that are staged, which one-sided ones are not.
constexpr std::array<PingEntry, 4> staged_table{{
    {"blocking", "roundtrip", blocking_roundtrip<true>, 1, false},
    {"blocking", "stream", blocking_stream<true>, window_messages, false},
    {"nonblocking", "roundtrip", nonblocking_roundtrip<true>, 1, false},
    {"nonblocking", "stream", blocking_stream<true>, window_messages, false},
}};

const PingEntry* find_ping(std::string_view name, std::string_view pattern, bool staged) {
    const PingEntry* begin = staged ? staged_table.data() : ping_table.data();
    const PingEntry* end = begin + (staged ? staged_table.size() : ping_table.size());
    const PingEntry* found = std::find_if(
        begin, end, [&](const PingEntry& entry) { return entry.name == name && entry.pattern == pattern; });
    return found == end ? nullptr : found;
}

void meet_peer(const Side& s) {
    const auto send_nothing = [&] { ok(MPI_Send(nullptr, 0, MPI_BYTE, s.peer, meeting_tag, s.comm), "MPI_Send"); };
    const auto receive_nothing = [&] {
        ok(MPI_Recv(nullptr, 0, MPI_BYTE, s.peer, meeting_tag, s.comm, MPI_STATUS_IGNORE), "MPI_Recv");
    };
    if (s.first) {
        send_nothing();
        receive_nothing();
    } else {
        receive_nothing();
        send_nothing();
    }
}

namespace {

constexpr std::byte sent_by_first{0x5a}, sent_by_other{0xa5};

Pattern sent_by(int rank) { return Pattern::of(rank, 0, 0); }

/// What both sides of a pair need; nothing on a rank that is in none.
class PingBuffers {
public:
    /// Looks for the device; takes nothing yet. Throws UsageError where there is none. @note Collective.
    PingBuffers(const mpi::Communicator& comm, const Point& point, bool in_pair)
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

    /// Why there is too little memory, with `exposed` bytes more of the host's; empty where there is enough. @note
    /// Collective.
    std::string lacks(std::int64_t exposed) const {
        const std::int64_t own = in_pair_ ? 2 * point_.bytes : 0;
        if (!out_) {
            return lacks_host_memory(comm_, own + exposed);
        }
        const std::string missing = lacks_memory(comm_, *out_, number_, own);
        return missing.empty() ? lacks_host_memory(comm_, staged() ? own : 0, "pinned") : missing;
    }

    /// Takes the memory and tells `side` of it. @note Collective.
    void allocate(std::optional<Side>& side) {
        mpi::together(comm_, [&] {
            if (!side) {
                return;
            }
            message_.emplace(point_.bytes, MPI_BYTE);
            side->count = message_->count();
            side->type = message_->type();
            if (!out_) {
                host_out_ = PrefaultedBuffer(static_cast<std::size_t>(point_.bytes),
                                             side->first ? sent_by_first : sent_by_other);
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

    /// Throws IoError, on every rank, where what arrived on a device is not what was sent. @note Collective.
    void require_arrived(const std::optional<Side>& side, bool both_ways) const {
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

    /// What a reader must know, and which devices they were. @note Collective.
    void tell(const std::optional<Side>& side, Measurement& measured) const {
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

private:
    bool staged() const { return on_device_ && !point_.direct; }
    bool peers_refuse(const std::optional<Side>& side) const {
        bool refused = false;
        mpi::together(comm_, [&] {
            if (!side) {
                return;
            }
            const std::array<std::size_t, 2> mine{static_cast<std::size_t>(number_),
                                                  std::hash<std::string>{}(host_name())};
            std::array<std::size_t, 2> theirs{};
            mpi::check(MPI_Sendrecv(mine.data(), sizeof mine, MPI_BYTE, side->peer, 0, theirs.data(), sizeof theirs,
                                    MPI_BYTE, side->peer, 0, side->comm, MPI_STATUS_IGNORE),
                       "MPI_Sendrecv");
            refused =
                mine[1] == theirs[1] && mine[0] != theirs[0] && !device::reaches(number_, static_cast<int>(theirs[0]));
        });
        return mpi::any_of(comm_, refused);
    }

    const mpi::Communicator& comm_;
    const Point& point_;
    bool in_pair_, on_device_ = false, simulated_ = false;
    int number_ = 0;  // of the device
    std::unique_ptr<BlockMemory> out_, in_;
    PrefaultedBuffer host_out_, host_in_;
    std::optional<mpi::Span> message_;  // beyond 2³¹ bytes a type of its own
    Staging staging_;
};

/// Seconds that a sample should last. The clock is off by some nanoseconds, so this is a matter of what surrounds a
/// sample: the caches that a barrier takes, and the starts of several pairs.
constexpr double sample_of_one_pair = 100e-6, sample_of_several = 250e-6;
constexpr std::int64_t most_inner = 100'000;
constexpr std::byte there_before{0xa5};

std::string spelled(const std::pair<int, int>& pair) {
    return "(" + std::to_string(pair.first) + ", " + std::to_string(pair.second) + ")";
}

/// Throws UsageError for pairs that cannot be.
void check_pairs(const std::vector<std::pair<int, int>>& pairs, int ranks) {
    if (pairs.empty()) {
        throw UsageError("ping: at least one pair of ranks is needed");
    }
    std::vector<bool> taken(static_cast<std::size_t>(ranks), false);
    for (const auto& pair : pairs) {
        for (const int rank : {pair.first, pair.second}) {
            if (rank < 0 || rank >= ranks) {
                throw UsageError("ping: the pair " + spelled(pair) + " names rank " + std::to_string(rank) +
                                 ", but the ranks are 0 to " + std::to_string(ranks - 1));
            }
            if (taken[static_cast<std::size_t>(rank)]) {
                throw UsageError("ping: rank " + std::to_string(rank) + " of the pair " + spelled(pair) +
                                 " is named twice, but can be in only one pair");
            }
            taken[static_cast<std::size_t>(rank)] = true;
        }
    }
}

const PingEntry& checked_entry(const Point& point, int ranks) {
    const PingEntry* entry = find_ping(point.name, point.pattern);
    if (entry == nullptr) {
        throw UsageError("ping: '" + point.name + "' with the pattern '" + point.pattern +
                         "' is unknown; expected one of blocking, nonblocking, put, get, each as roundtrip or stream");
    }
    if (point.bytes < 1) {
        throw UsageError("ping: a message of " + std::to_string(point.bytes) +
                         " bytes makes no sense: at least 1 is expected");
    }
    check_pairs(point.pairs, ranks);
    return *entry;
}

bool on_device(const Point& point) { return point.buffer == "device" || point.buffer == "managed"; }

/// This rank's side, without its memory; nothing on a rank that is in no pair.
std::optional<Side> side_of(const Context& context, const Point& point) {
    for (const auto& [first, other] : point.pairs) {
        if (context.comm.rank() == first || context.comm.rank() == other) {
            Side side;
            side.comm = context.comm.get();
            side.first = context.comm.rank() == first;
            side.peer = side.first ? other : first;
            return side;
        }
    }
    return std::nullopt;
}

/// A window on every rank, of memory that MPI allocates (the second of a pair is acted on), locked as long as it lives.
class Locked {
public:
    Locked(const mpi::Communicator& comm, std::size_t bytes) {
        exposed_ = mpi::allocate_window(comm, bytes);
        std::fill_n(exposed_.data, bytes, there_before);
        mpi::check(MPI_Win_lock_all(0, exposed_.window.get()), "MPI_Win_lock_all");
    }
    ~Locked() {
        if (!mpi::must_not_free()) {
            MPI_Win_unlock_all(exposed_.window.get());
        }
    }
    Locked(const Locked&) = delete;
    Locked& operator=(const Locked&) = delete;

    MPI_Win get() const { return exposed_.window.get(); }

private:
    mpi::Exposed exposed_;
};

/// Empty, with the reason in `skipped`, where the network carries no one-sided messages. @note Collective.
std::unique_ptr<Locked> window_or_reason(const Context& context, std::size_t bytes, std::string& skipped) {
    std::unique_ptr<Locked> window;
    std::optional<Error> failure;
    try {
        window = std::make_unique<Locked>(context.comm, bytes);
    } catch (...) {
        failure = error_in_flight();
    }
    try {
        mpi::agree(context.comm, failure);
    } catch (const Error& error) {
        skipped = error.what();
        static_cast<void>(window.release());  // freeing it is collective, and another rank has none
        return nullptr;
    }
    return window;
}

}  // namespace

Measurement ping(Context& context, const Point& point, const Stop& stop, const Clock& clock) {
    const PingEntry* found_entry = nullptr;
    mpi::together(context.comm, [&] { found_entry = &checked_entry(point, context.comm.size()); });
    Measurement measured;
    if (on_device(point) && found_entry->one_sided) {
        measured.skipped =
            point.name +
            " acts on memory that MPI allocates on the host; blocking and nonblocking work between devices";
        return measured;
    }
    if (on_device(point) && !point.direct) {
        found_entry = find_ping(point.name, point.pattern, true);
    }
    const PingEntry& entry = *found_entry;
    std::optional<Side> side = side_of(context, point);
    const std::int64_t exposed = entry.one_sided && side && !side->first ? point.bytes : 0;
    PingBuffers buffers(context.comm, point, side.has_value());
    measured.skipped = buffers.lacks(exposed);
    if (!measured.skipped.empty()) {
        return measured;
    }
    buffers.allocate(side);
    std::unique_ptr<Locked> window;
    if (entry.one_sided) {
        window = window_or_reason(context, static_cast<std::size_t>(exposed), measured.skipped);
        if (!window) {
            return measured;
        }
        if (side) {
            side->window = window->get();
        }
    }
    // Seconds for `count` round trips or windows; 0 on ranks that read no clock.
    const auto seconds_of = [&](std::int64_t count) {
        context.comm.barrier();
        if (!side) {
            return 0.0;
        }
        meet_peer(*side);
        if (!side->first) {
            if (!entry.one_sided) {
                entry.run(*side, count);
            }
            return 0.0;
        }
        const double begin = now();
        entry.run(*side, count);
        return std::max(now() - begin - clock.overhead, 0.0);
    };
    mpi::no_return(context.comm, [&] {
        const double wanted = point.pairs.size() == 1 ? sample_of_one_pair : sample_of_several;
        const std::int64_t count = calibrate(context.comm, stop, wanted, most_inner, seconds_of);
        measured.inner = count * entry.messages;
        measured.series = take_samples(context.comm, stop, {point.pattern}, [&](int /*number*/) {
            return std::vector{seconds_of(count) / static_cast<double>(measured.inner)};
        });
    });
    buffers.require_arrived(side, point.pattern == "roundtrip");
    buffers.tell(side, measured);
    return measured;
}

}  // namespace tilewise::measure
