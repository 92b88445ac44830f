// Sleeping while somebody else works, and the binding that is lifted meanwhile.
#include "tilewise/dist/root_task.hpp"

#include <array>
#include <optional>
#include <sched.h>
#include <unistd.h>
#include <vector>

#include "tilewise/mpi/together.hpp"

namespace tilewise::dist {
namespace {

using mpi::check;

constexpr unsigned nap = 100;  // microseconds
constexpr int done_tag = 7;

/// Rank 0 tells each rank itself: of a tree, or a barrier that does not block, every level would sleep through a nap.
void tell_done(const mpi::Communicator& comm) {
    if (comm.rank() == 0) {
        std::vector<MPI_Request> told(static_cast<std::size_t>(comm.size() - 1), MPI_REQUEST_NULL);
        for (int rank = 1; rank < comm.size(); ++rank) {
            check(
                MPI_Isend(nullptr, 0, MPI_BYTE, rank, done_tag, comm.get(), &told[static_cast<std::size_t>(rank - 1)]),
                "MPI_Isend");
        }
        check(MPI_Waitall(comm.size() - 1, told.data(), MPI_STATUSES_IGNORE), "MPI_Waitall");
        return;
    }
    MPI_Request request = MPI_REQUEST_NULL;
    check(MPI_Irecv(nullptr, 0, MPI_BYTE, 0, done_tag, comm.get(), &request), "MPI_Irecv");
    for (int done = 0; done == 0;) {
        check(MPI_Test(&request, &done, MPI_STATUS_IGNORE), "MPI_Test");
        if (done == 0) {
            usleep(nap);
        }
    }
}

/// The calling thread may run on `cores` for the time being. Threads that it starts meanwhile may, too, and go
/// on to: those that the BLAS keeps for later are not bound again.
class Unbound {
public:
    explicit Unbound(const std::vector<unsigned char>& cores) {
        if (sched_getaffinity(0, sizeof before_, &before_) == 0) {
            // Where it is not allowed, threads share what this one is bound to.
            changed_ = sched_setaffinity(0, cores.size(), reinterpret_cast<const cpu_set_t*>(cores.data())) == 0;
        }
    }
    Unbound(const Unbound&) = delete;
    Unbound& operator=(const Unbound&) = delete;
    ~Unbound() {
        if (changed_) {
            sched_setaffinity(0, sizeof before_, &before_);
        }
    }

private:
    cpu_set_t before_{};
    bool changed_ = false;
};

}  // namespace

RootTask::RootTask(Context& context) : context_(context), threads_(context.threads), cores_(sizeof(cpu_set_t)) {
    if (context.comm.size() == 1) {
        return;
    }
    const mpi::Communicator node = context.comm.node();
    std::vector<unsigned char> mine(sizeof(cpu_set_t));
    // It fails where there are more processors than such a set has room for.
    const bool known = sched_getaffinity(0, mine.size(), reinterpret_cast<cpu_set_t*>(mine.data())) == 0;
    std::array<int, 2> sums{context.threads, known ? 0 : 1};
    check(MPI_Allreduce(MPI_IN_PLACE, sums.data(), 2, MPI_INT, MPI_SUM, node.get()), "MPI_Allreduce");
    check(MPI_Allreduce(mine.data(), cores_.data(), static_cast<int>(mine.size()), MPI_BYTE, MPI_BOR, node.get()),
          "MPI_Allreduce");
    if (sums[1] > 0) {
        cores_.clear();  // then rank 0 stays on its own, with its own threads
        return;
    }
    threads_ = sums[0];
    // Ranks that take turns on a core have no more cores together than there are.
    threads_ = std::max(1, std::min(threads_, CPU_COUNT(reinterpret_cast<const cpu_set_t*>(cores_.data()))));
}

void RootTask::run(const std::function<void(int threads)>& work) const {
    const mpi::Communicator& comm = context_.comm;
    if (comm.size() == 1) {
        const Timed timed(context_.ledger, Phase::compute, "alone");
        mpi::together(comm, [&] { work(threads_); });
        return;
    }
    std::optional<Error> failure;
    if (comm.rank() == 0) {
        const Timed timed(context_.ledger, Phase::compute, "alone");
        try {
            std::optional<Unbound> unbound;
            if (!cores_.empty()) {
                unbound.emplace(cores_);
            }
            work(threads_);
        } catch (...) {
            failure = error_in_flight();
        }
    }
    const Timed timed(context_.ledger, Phase::exchange, "wait for rank 0");
    tell_done(comm);
    mpi::agree(comm, failure);
}

}  // namespace tilewise::dist
