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
#include "tilewise/measure/collective.hpp"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <functional>
#include <vector>

#include "tilewise/base/error.hpp"
#include "tilewise/measure/buffers.hpp"
#include "tilewise/measure/measure.hpp"
#include "tilewise/measure/samples.hpp"
#include "tilewise/mpi/datatype.hpp"
#include "tilewise/mpi/together.hpp"

namespace tilewise::measure {

namespace {

using mpi::check;

constexpr int tag = 7;
constexpr int root = 0;

// Each operation twice: MPI's, and what somebody would write who did not know that MPI has it. Rank 0 is the root of
// all.

const std::byte* out_part(const Parts& p, int rank) { return p.out + rank * p.bytes; }
std::byte* in_part(const Parts& p, int rank) { return p.in + rank * p.bytes; }

void send(const Parts& p, const std::byte* data, int to) {
    check(MPI_Send(data, p.count, p.type, to, tag, p.comm->get()), "MPI_Send");
}
void receive(const Parts& p, std::byte* data, int from) {
    check(MPI_Recv(data, p.count, p.type, from, tag, p.comm->get(), MPI_STATUS_IGNORE), "MPI_Recv");
}
void copy(const Parts& p, std::byte* to, const std::byte* from) {
    std::memcpy(to, from, static_cast<std::size_t>(p.bytes));
}

/// The root's message is in `out` as with the others, so that `in` shows what arrived; its own copy is not needed.
void library_bcast(const Parts& p) {
    std::byte* data = p.comm->rank() == root ? const_cast<std::byte*>(p.out) : p.in;  // MPI does not write at the root
    check(MPI_Bcast(data, p.count, p.type, root, p.comm->get()), "MPI_Bcast");
}
void loop_bcast(const Parts& p) {
    if (p.comm->rank() != root) {
        receive(p, p.in, root);
        return;
    }
    for (int rank = 1; rank < p.comm->size(); ++rank) {
        send(p, p.out, rank);
    }
}

void library_scatter(const Parts& p) {
    check(MPI_Scatter(p.out, p.count, p.type, p.in, p.count, p.type, root, p.comm->get()), "MPI_Scatter");
}
void loop_scatter(const Parts& p) {
    if (p.comm->rank() != root) {
        receive(p, p.in, root);
        return;
    }
    copy(p, p.in, out_part(p, root));
    for (int rank = 1; rank < p.comm->size(); ++rank) {
        send(p, out_part(p, rank), rank);
    }
}

void library_gather(const Parts& p) {
    check(MPI_Gather(p.out, p.count, p.type, p.in, p.count, p.type, root, p.comm->get()), "MPI_Gather");
}
void loop_gather(const Parts& p) {
    if (p.comm->rank() != root) {
        send(p, p.out, root);
        return;
    }
    copy(p, in_part(p, root), p.out);
    for (int rank = 1; rank < p.comm->size(); ++rank) {
        receive(p, in_part(p, rank), rank);
    }
}

void library_allreduce(const Parts& p) {
    const auto count = static_cast<int>(p.bytes / static_cast<std::int64_t>(sizeof(double)));
    check(MPI_Allreduce(p.out, p.in, count, MPI_DOUBLE, MPI_SUM, p.comm->get()), "MPI_Allreduce");
}
void loop_allreduce(const Parts& p) {
    if (p.comm->rank() != root) {
        send(p, p.out, root);
        receive(p, p.in, root);
        return;
    }
    copy(p, p.in, p.out);
    auto* sums = reinterpret_cast<double*>(p.in);
    const auto* more = reinterpret_cast<const double*>(p.spare);
    const std::int64_t count = p.bytes / static_cast<std::int64_t>(sizeof(double));
    for (int rank = 1; rank < p.comm->size(); ++rank) {
        receive(p, p.spare, rank);
        for (std::int64_t i = 0; i < count; ++i) {
            sums[i] += more[i];
        }
    }
    for (int rank = 1; rank < p.comm->size(); ++rank) {
        send(p, p.in, rank);
    }
}

void library_alltoallv(const Parts& p) {
    check(MPI_Alltoallv(p.out, p.counts.data(), p.places.data(), p.type, p.in, p.counts.data(), p.places.data(), p.type,
                        p.comm->get()),
          "MPI_Alltoallv");
}
/// In step s everybody sends to the rank s above and receives from the rank s below, so that nobody is asked by two.
void loop_alltoallv(const Parts& p) {
    const int ranks = p.comm->size(), me = p.comm->rank();
    copy(p, in_part(p, me), out_part(p, me));
    for (int step = 1; step < ranks; ++step) {
        const int to = (me + step) % ranks, from = (me + ranks - step) % ranks;
        check(MPI_Sendrecv(out_part(p, to), p.count, p.type, to, tag, in_part(p, from), p.count, p.type, from, tag,
                           p.comm->get(), MPI_STATUS_IGNORE),
              "MPI_Sendrecv");
    }
}

}  // namespace

const std::array<CollectiveEntry, 5> collective_table{{
    {"bcast", library_bcast, loop_bcast, false, false, false},
    {"scatter", library_scatter, loop_scatter, false, true, false},
    {"gather", library_gather, loop_gather, false, false, true},
    {"allreduce", library_allreduce, loop_allreduce, true, false, false},
    {"alltoallv", library_alltoallv, loop_alltoallv, true, true, true},
}};

void count_parts(Parts& parts, const CollectiveEntry& entry, std::int64_t most) {
    const int ranks = parts.comm->size();
    parts.count = static_cast<int>(parts.bytes);
    parts.type = MPI_BYTE;
    if (parts.bytes * (entry.out_of_each || entry.in_of_each ? ranks : 1) > most) {
        if (parts.bytes <= INT32_MAX) {
            check(MPI_Type_contiguous(parts.count, MPI_BYTE, parts.long_part.out()), "MPI_Type_contiguous");
        } else {
            const mpi::Span part(parts.bytes, MPI_BYTE);
            check(MPI_Type_dup(part.type(), parts.long_part.out()), "MPI_Type_dup");
        }
        parts.type = parts.long_part.get();
        check(MPI_Type_commit(&parts.type), "MPI_Type_commit");
        parts.count = 1;
    }
    parts.counts.assign(static_cast<std::size_t>(ranks), parts.count);
    parts.places.clear();
    for (int rank = 0; rank < ranks; ++rank) {
        parts.places.push_back(rank * parts.count);
    }
}

const CollectiveEntry* find_collective(std::string_view name) {
    const auto* found = std::find_if(collective_table.begin(), collective_table.end(),
                                     [&](const CollectiveEntry& entry) { return entry.name == name; });
    return found == collective_table.end() ? nullptr : found;
}

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
