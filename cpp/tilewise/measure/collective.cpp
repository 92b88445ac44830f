// Collective operations: from the moment when the last rank has entered one to the moment when the last has left it.
//
//      rank 0   barrier ─▶│ ······│▓▓▓▓▓▓▓▓▓▓▓│
//      rank 1   barrier ──────▶│ ·│▓▓▓▓▓▓▓▓│
//      rank 2   barrier ─────────▶│▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓│
//                                 └──── seconds ─────┘
//
// Ranks leave a barrier one after the other: what the first of them spend waiting (·) is the barrier's and not the
// operation's. What counts starts when the last one enters.
//
// For that, readings of different ranks are compared, and on one node they can be: its processes share a clock. Over
// several nodes each rank's time counts from its own entry, and a note says that the barrier's skew is in it.
//
// bcast, scatter and gather let some ranks run ahead into the next operation: each has a barrier of its own, and a
// sample is the mean of `inner` times. allreduce and alltoallv hold everybody: `inner` of them follow one another after
// one barrier, and a sample is their time divided by `inner`.
#include <algorithm>
#include <cstdint>
#include <functional>
#include <vector>

#include "tilewise/base/error.hpp"
#include "tilewise/measure/collective_loops.hpp"
#include "tilewise/measure/measure.hpp"
#include "tilewise/measure/memory_budget.hpp"
#include "tilewise/measure/prefaulted_buffer.hpp"
#include "tilewise/measure/samples.hpp"
#include "tilewise/mpi/together.hpp"

namespace tilewise::measure {
namespace {

constexpr double wanted_seconds = 200e-6;  // that a sample should last
constexpr std::int64_t most_inner = 10'000;

const CollectiveEntry& checked_entry(const Point& point) {
    const CollectiveEntry* entry = find_collective(point.name);
    if (entry == nullptr) {
        throw UsageError("collective: '" + point.name +
                         "' is unknown; expected one of bcast, scatter, gather, allreduce, alltoallv");
    }
    if (point.pattern != "library" && point.pattern != "loop") {
        throw UsageError("collective: the pattern '" + point.pattern + "' is unknown; expected one of library, loop");
    }
    if (point.bytes < 1) {
        throw UsageError("collective: " + std::to_string(point.bytes) + " bytes make no sense: at least 1 is expected");
    }
    return *entry;
}

/// Why an operation cannot be done with so many bytes, or on so many ranks; empty where it can.
std::string cannot_be(const Point& point, int ranks) {
    constexpr std::int64_t number = sizeof(double);
    if (ranks == 1) {
        return "one rank has no partner to exchange with";
    }
    if (point.name == "allreduce" && point.bytes % number != 0) {
        return "sums use float64, and " + std::to_string(point.bytes) + " bytes are not a whole number of them";
    }
    if (point.name == "allreduce" && point.bytes / number > INT32_MAX) {
        return "sums use float64, and one call adds at most 2147483647 of them";
    }
    return "";
}

/// Memory of one rank for one point; zeros, whose sums stay zeros.
class CollectiveBuffers {
public:
    CollectiveBuffers(const CollectiveEntry& entry, std::int64_t bytes, int rank, int ranks)
        : out_(entry.out_of_each && (rank == 0 || entry.in_of_each) ? bytes * ranks : bytes),
          in_(entry.in_of_each && (rank == 0 || entry.out_of_each) ? bytes * ranks : bytes),
          spare_(entry.name == "allreduce" ? bytes : 0) {}

    std::int64_t bytes() const { return out_ + in_ + spare_; }
    void allocate() {
        out = PrefaultedBuffer(static_cast<std::size_t>(out_));
        in = PrefaultedBuffer(static_cast<std::size_t>(in_));
        spare = PrefaultedBuffer(static_cast<std::size_t>(spare_));
    }

    PrefaultedBuffer out, in, spare;

private:
    std::int64_t out_, in_, spare_;
};

/// Does an operation so often, and says when it was entered and left.
class Timer {
public:
    Timer(const mpi::Communicator& comm, const CollectiveEntry& entry, void (*run)(const Parts&), const Parts& parts,
          const Clock& clock)
        : comm_(comm),
          synchronises_(entry.synchronises),
          run_(run),
          parts_(parts),
          overhead_(clock.overhead),
          one_clock_(comm.node().size() == comm.size()) {}

    bool one_clock() const { return one_clock_; }

    /// Seconds of `count` operations on this rank, from when the last rank had entered. @note Collective.
    double operator()(std::int64_t count) {
        const std::int64_t timed = synchronises_ ? 1 : count, each = synchronises_ ? count : 1;
        entered_.resize(static_cast<std::size_t>(timed));
        left_.resize(entered_.size());
        for (std::size_t i = 0; i < entered_.size(); ++i) {
            comm_.barrier();
            entered_[i] = now();
            for (std::int64_t operation = 0; operation < each; ++operation) {
                run_(parts_);
            }
            left_[i] = now();
        }
        if (one_clock_) {
            mpi::check(
                MPI_Allreduce(MPI_IN_PLACE, entered_.data(), static_cast<int>(timed), MPI_DOUBLE, MPI_MAX, comm_.get()),
                "MPI_Allreduce");
        }
        double seconds = 0;
        for (std::size_t i = 0; i < entered_.size(); ++i) {
            seconds +=
                std::max(left_[i] - entered_[i] - overhead_, 0.0);  // it may be through before the last has begun
        }
        return seconds;
    }

private:
    const mpi::Communicator& comm_;
    bool synchronises_;
    void (*run_)(const Parts&);
    const Parts& parts_;
    double overhead_;
    bool one_clock_;
    std::vector<double> entered_, left_;
};

}  // namespace

Measurement collective(Context& context, const Point& point, const Stop& stop, const Clock& clock) {
    const mpi::Communicator& comm = context.comm;
    const CollectiveEntry* found_entry = nullptr;
    mpi::together(comm, [&] { found_entry = &checked_entry(point); });
    const CollectiveEntry& entry = *found_entry;
    CollectiveBuffers buffers(entry, point.bytes, comm.rank(), comm.size());
    Measurement measured;
    measured.skipped = cannot_be(point, comm.size());
    if (measured.skipped.empty()) {
        measured.skipped = lacks_host_memory(comm, buffers.bytes());
    }
    if (!measured.skipped.empty()) {
        return measured;
    }
    Parts parts{.comm = &comm, .bytes = point.bytes};
    mpi::together(comm, [&] {
        buffers.allocate();
        count_parts(parts, entry);
        parts.out = buffers.out.data();
        parts.in = buffers.in.data();
        parts.spare = buffers.spare.data();
    });
    mpi::no_return(comm, [&] {
        Timer seconds_of(comm, entry, point.pattern == "loop" ? entry.loop : entry.library, parts, clock);
        if (!seconds_of.one_clock()) {
            measured.notes.emplace_back(
                "ranks on several nodes: includes the time they wait for each other after the barrier");
        }
        measured.inner = calibrate(comm, stop, wanted_seconds, most_inner, std::ref(seconds_of));
        measured.series = take_samples(comm, stop, {"seconds"}, [&](int /*number*/) {
            return std::vector{seconds_of(measured.inner) / static_cast<double>(measured.inner)};
        });
    });
    return measured;
}

}  // namespace tilewise::measure
