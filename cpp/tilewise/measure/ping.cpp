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
#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>

#include "tilewise/base/error.hpp"
#include "tilewise/measure/measure.hpp"
#include "tilewise/measure/ping_buffers.hpp"
#include "tilewise/measure/ping_loops.hpp"
#include "tilewise/measure/samples.hpp"
#include "tilewise/mpi/together.hpp"
#include "tilewise/mpi/window.hpp"

namespace tilewise::measure {
namespace {

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
