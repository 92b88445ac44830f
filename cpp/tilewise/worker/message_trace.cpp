// Keeps the ends of messages in lists of bounded length, with ranks and communicators in the job's own terms.
#include "tilewise/worker/message_trace.hpp"

#include <numeric>
#include <type_traits>

namespace tilewise::worker {

MessageTrace& message_trace() {
    static MessageTrace trace;
    return trace;
}

void MessageTrace::start(const mpi::Communicator& comm, const Ledger& ledger) {
    *this = MessageTrace{};
    root_ = comm.get();
    me_ = comm.rank();
    Group& group = groups_[root_];
    group.channel = 1;
    group.ranks.resize(static_cast<std::size_t>(comm.size()));
    std::iota(group.ranks.begin(), group.ranks.end(), 0);
    ledger_ = &ledger;
    running_ = true;
}

Tracing::Tracing(bool wanted, const mpi::Communicator& comm, const Ledger& ledger) {
    if (wanted) {
        message_trace().start(comm, ledger);
    }
}

Tracing::~Tracing() { message_trace().stop(); }

void MessageTrace::stop() {
    if (running_) {
        stopped_ = now();
    }
    running_ = false;
    ledger_ = nullptr;
    groups_.clear();
    windows_.clear();
}

template <class T> int MessageTrace::keep(std::vector<T>& list, const T& item) {
    if (list.size() >= most_messages) {
        dropped_ += std::is_same_v<T, Sent> ? 0 : 1;  // its receiver counts it
        return -1;
    }
    list.push_back(item);
    return static_cast<int>(list.size()) - 1;
}

void MessageTrace::called(const char* name, double begin, bool collective) {
    if (calls_.size() < most_messages) {
        calls_.push_back({name, begin, now(), collective});
    } else {
        ++dropped_calls_;
    }
}

namespace {

std::int64_t bytes_of(std::int64_t count, MPI_Datatype type) {
    MPI_Count size = 0;
    PMPI_Type_size_x(type, &size);
    return count * static_cast<std::int64_t>(size);
}

}  // namespace

void MessageTrace::sent(double at, std::int64_t count, MPI_Datatype type, int peer, int tag, MPI_Comm comm) {
    const auto found = groups_.find(comm);
    if (peer < 0 || found == groups_.end()) {
        return;
    }
    const int there = found->second.ranks[static_cast<std::size_t>(peer)];
    if (there != me_) {
        keep(sent_, {at, bytes_of(count, type), found->second.channel, there, tag});
    }
}

int MessageTrace::posted(int peer, int tag, MPI_Comm comm) {
    const auto found = groups_.find(comm);
    if (peer == MPI_PROC_NULL || found == groups_.end()) {
        return -1;
    }
    if (peer < 0 || tag < 0) {  // from anybody, or with any tag
        ++dropped_;
        return -1;
    }
    const int there = found->second.ranks[static_cast<std::size_t>(peer)];
    return there == me_ ? -1 : keep(received_, {-1, found->second.channel, there, tag});
}

void MessageTrace::received(int posted) {
    if (posted >= 0) {
        received_[static_cast<std::size_t>(posted)].at = now();
    }
}

int MessageTrace::moved(double at, std::int64_t count, MPI_Datatype type, int peer, MPI_Win window, bool put,
                        bool by_request) {
    if (peer < 0) {
        return -1;
    }
    Access& there = access(window);
    const int rank = there.ranks[static_cast<std::size_t>(peer)];
    if (rank < 0 || rank == me_) {
        return -1;
    }
    const int place = keep(moved_, {at, -1, bytes_of(count, type), rank, put});
    if (!by_request && place >= 0) {
        there.open.push_back(place);
    }
    return place;
}

void MessageTrace::landed(int moved) {
    if (moved >= 0) {
        moved_[static_cast<std::size_t>(moved)].to = now();
    }
}

void MessageTrace::synchronized(MPI_Win window, int peer) {
    Access& there = access(window);
    const int rank = peer < 0 ? -1 : there.ranks[static_cast<std::size_t>(peer)];
    std::erase_if(there.open, [&](int place) {
        const bool arrived = peer < 0 || moved_[static_cast<std::size_t>(place)].peer == rank;
        if (arrived) {
            landed(place);
        }
        return arrived;
    });
}

void MessageTrace::window_gone(MPI_Win window) { windows_.erase(window); }

MessageTrace::Access& MessageTrace::access(MPI_Win window) {
    Access& found = windows_[window];
    if (found.ranks.empty()) {
        MPI_Group group = MPI_GROUP_NULL;
        PMPI_Win_get_group(window, &group);
        found.ranks = ranks_of(group);
        PMPI_Group_free(&group);
    }
    return found;
}

std::vector<int> MessageTrace::ranks_of(MPI_Group group) const {
    MPI_Group all = MPI_GROUP_NULL;
    int size = 0;
    PMPI_Comm_group(root_, &all);
    PMPI_Group_size(group, &size);
    std::vector<int> theirs(static_cast<std::size_t>(size)), ours(theirs.size());
    std::iota(theirs.begin(), theirs.end(), 0);
    PMPI_Group_translate_ranks(group, size, theirs.data(), all, ours.data());
    PMPI_Group_free(&all);
    for (int& rank : ours) {
        rank = rank == MPI_UNDEFINED ? -1 : rank;
    }
    return ours;
}

void MessageTrace::made(MPI_Comm parent, MPI_Comm child) {
    const auto found = groups_.find(parent);
    if (found == groups_.end()) {
        return;
    }
    const std::uint32_t channel = (found->second.channel * 0x9E3779B1U) ^ ++found->second.children;
    if (child == MPI_COMM_NULL) {
        return;
    }
    MPI_Group group = MPI_GROUP_NULL;
    PMPI_Comm_group(child, &group);
    Group made{channel, 0, ranks_of(group)};
    PMPI_Group_free(&group);
    groups_[child] = std::move(made);
}

void MessageTrace::gone(MPI_Comm comm) { groups_.erase(comm); }

}  // namespace tilewise::worker
