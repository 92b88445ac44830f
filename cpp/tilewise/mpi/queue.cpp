// One counter on rank 0, which every rank fetches and adds to.
#include "tilewise/mpi/queue.hpp"

#include <exception>

namespace tilewise::mpi {

Queue::Queue(const Communicator& comm) : ranks_(comm.size()) {
    if (ranks_ == 1) {
        return;
    }
    exposed_ = allocate_window(comm, comm.rank() == 0 ? sizeof(std::int64_t) : 0);
    check(MPI_Win_lock_all(MPI_MODE_NOCHECK, exposed_.window.get()), "MPI_Win_lock_all");
    if (comm.rank() == 0) {
        const std::int64_t none = 0;
        std::int64_t was = 0;
        check(MPI_Fetch_and_op(&none, &was, MPI_INT64_T, 0, 0, MPI_REPLACE, exposed_.window.get()), "MPI_Fetch_and_op");
        check(MPI_Win_flush(0, exposed_.window.get()), "MPI_Win_flush");
    }
    comm.barrier();
}

Queue::~Queue() {
    if (exposed_.window && !must_not_free(ranks_)) {
        MPI_Win_unlock_all(exposed_.window.get());
    }
}

std::int64_t Queue::next() {
    if (ranks_ == 1) {
        return here_++;
    }
    const std::int64_t one = 1;
    std::int64_t mine = 0;
    check(MPI_Fetch_and_op(&one, &mine, MPI_INT64_T, 0, 0, MPI_SUM, exposed_.window.get()), "MPI_Fetch_and_op");
    check(MPI_Win_flush(0, exposed_.window.get()), "MPI_Win_flush");
    return mine;
}

}  // namespace tilewise::mpi
