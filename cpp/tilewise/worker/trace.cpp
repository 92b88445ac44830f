// Sets the clocks, matches the messages, and has rank 0 write the ranks' events one after another.
#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <deque>
#include <fcntl.h>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "tilewise/base/clock.hpp"
#include "tilewise/io/file.hpp"
#include "tilewise/mpi/together.hpp"
#include "tilewise/worker/events.hpp"
#include "tilewise/worker/message_trace.hpp"

namespace tilewise::worker {
namespace {

using mpi::check;

/// What this rank's clock lacks to that of rank 0. @note Collective.
double clock_offset(const mpi::Communicator& comm) {
    constexpr int trips = 32;
    const mpi::Communicator node = comm.node();
    int first = comm.rank();
    check(PMPI_Bcast(&first, 1, MPI_INT, 0, node.get()), "MPI_Bcast");
    int far = first == 0 ? 0 : 1;
    std::vector<int> all(static_cast<std::size_t>(comm.size()));
    check(PMPI_Allgather(&far, 1, MPI_INT, all.data(), 1, MPI_INT, comm.get()), "MPI_Allgather");
    double offset = 0, fastest = std::numeric_limits<double>::infinity();
    for (int other = 1; other < comm.size(); ++other) {
        for (int trip = 0; all[static_cast<std::size_t>(other)] != 0 && trip < trips; ++trip) {
            if (comm.rank() == other) {
                const double asked = clock_seconds();
                double theirs = 0;
                check(PMPI_Send(&asked, 1, MPI_DOUBLE, 0, 0, comm.get()), "MPI_Send");
                check(PMPI_Recv(&theirs, 1, MPI_DOUBLE, 0, 0, comm.get(), MPI_STATUS_IGNORE), "MPI_Recv");
                const double told = clock_seconds();
                if (told - asked < fastest) {
                    fastest = told - asked;
                    offset = theirs - (asked + told) / 2;
                }
            } else if (comm.rank() == 0) {
                double asked = 0;
                check(PMPI_Recv(&asked, 1, MPI_DOUBLE, other, 0, comm.get(), MPI_STATUS_IGNORE), "MPI_Recv");
                const double mine = clock_seconds();
                check(PMPI_Send(&mine, 1, MPI_DOUBLE, other, 0, comm.get()), "MPI_Send");
            }
        }
    }
    return offset;
}

// Which send belongs to which receive: by source, destination, communicator, tag, and the order of the calls.
//
//     rank 0 sent to 1:      (c, t) at 3    (c, u) at 4    (c, t) at 6
//     rank 1 took from 0:    (c, t) at 5    (c, t) at 7    (c, u) at 8         gives 3→5, 6→7, 4→8

/// A line between two ranks, in seconds on one clock.
struct Line {
    int from, to, tag;  ///< `tag` is -1 for a one-sided message
    double left, arrived;
    std::int64_t bytes;
};

struct Matched {
    std::vector<Line> lines;     ///< each in the list of one rank only: its receiver's, or its origin's
    std::int64_t unmatched = 0;  ///< messages of which the other end is not known
    std::int64_t hasty = 0;      ///< lines that arrived before they left, and were set right
};

/// What the rank `from` sent here, in order; `to` gets what this rank sent to it.
std::vector<Sent> exchange(const mpi::Communicator& comm, const std::vector<Sent>& mine, int to, int from) {
    const auto bytes = [](std::size_t items) { return static_cast<int>(items * sizeof(Sent)); };  // under 10 MB
    int going = static_cast<int>(mine.size()), coming = 0;
    check(PMPI_Sendrecv(&going, 1, MPI_INT, to, 0, &coming, 1, MPI_INT, from, 0, comm.get(), MPI_STATUS_IGNORE),
          "MPI_Sendrecv");
    std::vector<Sent> theirs(static_cast<std::size_t>(coming));
    check(PMPI_Sendrecv(mine.data(), bytes(mine.size()), MPI_BYTE, to, 0, theirs.data(), bytes(theirs.size()), MPI_BYTE,
                        from, 0, comm.get(), MPI_STATUS_IGNORE),
          "MPI_Sendrecv");
    return theirs;
}

void add(Matched& matched, Line line) {
    if (line.arrived < line.left) {
        line.arrived = line.left;
        ++matched.hasty;
    }
    matched.lines.push_back(line);
}

void join(Matched& matched, const std::vector<Sent>& sent, const std::vector<Received>& received, int from, int me,
          double shift) {
    std::map<std::pair<std::uint32_t, int>, std::deque<const Sent*>> waiting;
    for (const Sent& one : sent) {
        waiting[{one.channel, one.tag}].push_back(&one);
    }
    std::int64_t left = static_cast<std::int64_t>(sent.size());
    for (const Received& one : received) {
        if (one.peer != from || one.at < 0) {
            continue;
        }
        auto& queue = waiting[{one.channel, one.tag}];
        if (queue.empty()) {
            ++matched.unmatched;
            continue;
        }
        add(matched, {from, me, one.tag, queue.front()->at, one.at + shift, queue.front()->bytes});
        queue.pop_front();
        --left;
    }
    matched.unmatched += left;
}

/// `shift` is what this rank's ledger lacks to the common clock. @note Collective; each pair of ranks exchanges what
/// one sent the other.
Matched match(const mpi::Communicator& comm, const MessageTrace& messages, double shift) {
    const int me = comm.rank(), size = comm.size();
    std::vector<Sent> sent = messages.all_sent();
    std::vector<Received> received = messages.all_received();
    const auto by_peer = [](const auto& a, const auto& b) { return a.peer < b.peer; };
    std::stable_sort(sent.begin(), sent.end(), by_peer);
    std::stable_sort(received.begin(), received.end(), by_peer);
    for (Sent& one : sent) {
        one.at += shift;
    }
    const auto part = [](const auto& list, int peer) {
        const auto begin = std::partition_point(list.begin(), list.end(), [&](const auto& x) { return x.peer < peer; });
        const auto end = std::partition_point(begin, list.end(), [&](const auto& x) { return x.peer == peer; });
        return std::vector(begin, end);
    };
    Matched matched;
    for (int step = 1; step < size; ++step) {
        const int to = (me + step) % size, from = (me + size - step) % size;
        join(matched, exchange(comm, part(sent, to), to, from), part(received, from), from, me, shift);
    }
    for (const Moved& one : messages.all_moved()) {
        if (one.to < 0) {
            ++matched.unmatched;
        } else {
            const auto [from, to] = one.put ? std::pair{me, one.peer} : std::pair{one.peer, me};
            add(matched, {from, to, -1, one.from + shift, one.to + shift, one.bytes});
        }
    }
    return matched;
}

/// One event a line, in strings of bounded length: a tree of JSON values would need a hundred times the memory.
class Events {
public:
    using Sink = std::function<void(const std::string& text)>;
    Events(int rank, Sink sink) : rank_(rank), is_first_(rank == 0), sink_(std::move(sink)) {}

    void finish() { sink_(std::exchange(text_, {})); }
    void name_rank() {
        const std::string pid = std::to_string(rank_);
        add("{\"name\":\"process_name\",\"ph\":\"M\",\"pid\":" + pid + ",\"tid\":0,\"args\":{\"name\":\"rank " + pid +
            "\"}}");
        add("{\"name\":\"process_sort_index\",\"ph\":\"M\",\"pid\":" + pid +
            ",\"tid\":0,\"args\":{\"sort_index\":" + pid + "}}");
    }
    void slice(const std::string& quoted_name, std::string_view category, double begin, double end) {
        std::array<char, 160> text{};
        std::snprintf(text.data(), text.size(),
                      ",\"cat\":\"%.*s\",\"ph\":\"X\",\"pid\":%d,\"tid\":0,\"ts\":%.3f,\"dur\":%.3f}",
                      static_cast<int>(category.size()), category.data(), rank_, begin * 1e6, (end - begin) * 1e6);
        add("{\"name\":" + quoted_name + text.data());
    }
    /// Both ends; `id` is the line's own among this rank's. Each is bound to the innermost slice that is open at its
    /// time.
    void line(const Line& line, std::int64_t id) {
        const auto whole = static_cast<long long>(rank_) * 2 * static_cast<long long>(most_messages) + id;
        const char* kind = line.tag >= 0 ? "message" : "one-sided";
        std::array<char, 256> text{};
        std::snprintf(text.data(), text.size(),
                      "{\"name\":\"%s\",\"cat\":\"message\",\"ph\":\"s\",\"id\":%lld,\"pid\":%d,\"tid\":0,\"ts\":%.3f,"
                      "\"args\":{\"bytes\":%lld,\"tag\":%s}}",
                      kind, whole, line.from, line.left * 1e6, static_cast<long long>(line.bytes),
                      line.tag >= 0 ? std::to_string(line.tag).c_str() : "null");
        add(text.data());
        // Perfetto lets a line run from the slice that began first to the other, whatever its ends say, and a receiver
        // often waits before the sender sends: the line ends in a slice of its own, the last nanosecond before the
        // message was there.
        const double arrived = std::max(line.left, line.arrived - 1e-9);
        std::snprintf(text.data(), text.size(),
                      "{\"name\":\"from rank %d\",\"cat\":\"message\",\"ph\":\"X\",\"pid\":%d,\"tid\":0,\"ts\":%.3f,"
                      "\"dur\":0.001,\"args\":{\"bytes\":%lld,\"tag\":%s}}",
                      line.from, line.to, arrived * 1e6, static_cast<long long>(line.bytes),
                      line.tag >= 0 ? std::to_string(line.tag).c_str() : "null");
        add(text.data());
        std::snprintf(text.data(), text.size(),
                      "{\"name\":\"%s\",\"cat\":\"message\",\"ph\":\"f\",\"bp\":\"e\",\"id\":%lld,\"pid\":%d,\"tid\":0,"
                      "\"ts\":%.3f}",
                      kind, whole, line.to, arrived * 1e6);
        add(text.data());
    }

private:
    void add(const std::string& event) {
        text_ += std::exchange(is_first_, false) ? "" : ",\n";
        text_ += event;
        if (text_.size() > std::size_t{1} << 20U) {
            finish();
        }
    }
    int rank_;
    bool is_first_;
    Sink sink_;
    std::string text_;
};

std::string quoted(const std::string& words) { return Json(words).text(); }

/// Calls `make` on each rank with what takes its texts, and `write` on rank 0 with all of them, rank by rank. @note
/// Collective.
template <class Make, class Write> void in_turn(const mpi::Communicator& comm, const Make& make, const Write& write) {
    const auto send = [&](const std::string& text) {
        const auto size = static_cast<int>(text.size());
        check(PMPI_Send(text.data(), size, MPI_CHAR, 0, 0, comm.get()), "MPI_Send");
    };
    if (comm.rank() > 0) {
        make([&](const std::string& text) {
            if (!text.empty()) {
                send(text);
            }
        });
        send("");
        return;
    }
    make(write);
    std::string theirs;
    for (int other = 1; other < comm.size(); ++other) {
        do {
            MPI_Status status;
            int size = 0;
            check(PMPI_Probe(other, 0, comm.get(), &status), "MPI_Probe");
            check(PMPI_Get_count(&status, MPI_CHAR, &size), "MPI_Get_count");
            theirs.resize(static_cast<std::size_t>(size));
            check(PMPI_Recv(theirs.data(), size, MPI_CHAR, other, 0, comm.get(), MPI_STATUS_IGNORE), "MPI_Recv");
            write(theirs);
        } while (!theirs.empty());
    }
}

}  // namespace

void write_trace(const Context& context, const MessageTrace& messages, const std::string& command,
                 const std::string& path) {
    const mpi::Communicator& comm = context.comm;
    const Ledger& ledger = context.ledger;
    const double began = clock_seconds() - ledger.now() + clock_offset(comm);
    double first = 0;
    check(PMPI_Allreduce(&began, &first, 1, MPI_DOUBLE, MPI_MIN, comm.get()), "MPI_Allreduce");
    const double shift = began - first;
    const Matched matched = match(comm, messages, shift);

    const auto make = [&](const Events::Sink& sink) {
        Events events(comm.rank(), sink);
        events.name_rank();
        events.slice(quoted(command), "job", shift, messages.stopped() + shift);
        for (const Span& span : ledger.spans()) {
            events.slice(quoted(span.name), phase_names[static_cast<std::size_t>(span.phase)], span.begin + shift,
                         span.end + shift);
        }
        for (const Call& call : messages.calls()) {
            events.slice('"' + std::string(call.name) + '"', call.collective ? "collective" : "mpi", call.begin + shift,
                         call.end + shift);
        }
        std::int64_t id = 0;
        for (const Line& line : matched.lines) {
            events.line(line, id++);
        }
        events.finish();
    };
    const auto lines = static_cast<std::int64_t>(matched.lines.size());
    const std::array<std::int64_t, 5> mine{lines, matched.unmatched, messages.dropped(), matched.hasty,
                                           messages.dropped_calls()};
    std::array<std::int64_t, 5> sums{};
    check(PMPI_Reduce(mine.data(), sums.data(), 5, MPI_INT64_T, MPI_SUM, 0, comm.get()), "MPI_Reduce");
    const auto close = [](std::FILE* file) { std::fclose(file); };
    std::unique_ptr<std::FILE, decltype(close)> out(nullptr, close);
    const auto fail = [&] {
        throw system_error(path + ": the timeline could not be written", errno != 0 ? errno : EIO);
    };
    const auto put = [&](const std::string& text) { std::fwrite(text.data(), 1, text.size(), out.get()); };
    mpi::together(comm, [&] {
        if (comm.rank() == 0) {
            const int descriptor = io::open_made(path, O_WRONLY | O_CREAT | O_TRUNC);
            if (descriptor < 0) {
                fail();
            }
            out.reset(fdopen(descriptor, "w"));
            put("{\"displayTimeUnit\": \"ms\", \"traceEvents\": [\n");
        }
    });
    in_turn(comm, make, put);
    mpi::together(comm, [&] {
        if (comm.rank() == 0) {
            const Json about{{"command", command},       {"ranks", comm.size()},
                             {"messages", sums[0]},      {"unmatched", sums[1]},
                             {"dropped", sums[2]},       {"hasty", sums[3]},
                             {"dropped_calls", sums[4]}, {"most_per_rank", most_messages}};
            put("\n], \"otherData\": " + about.text() + "}\n");
            errno = 0;
            const bool written = std::ferror(out.get()) == 0;
            if (std::fclose(out.release()) != 0 || !written) {
                fail();
            }
        }
    });
}

}  // namespace tilewise::worker
