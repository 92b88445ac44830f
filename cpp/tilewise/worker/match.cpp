// Tells every rank what the others sent it, a pair of ranks at a time, and joins that to what it received.
#include "tilewise/worker/match.hpp"

#include <algorithm>
#include <deque>
#include <map>
#include <utility>

namespace tilewise::worker {
namespace {

using mpi::check;

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

}  // namespace

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

}  // namespace tilewise::worker
