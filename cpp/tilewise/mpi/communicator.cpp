// Duplicates and splits communicators, and makes them return errors instead of ending the program.
#include "tilewise/mpi/communicator.hpp"

#include <vector>

namespace tilewise::mpi {
namespace {

MPI_Comm duplicate(MPI_Comm parent) {
    MPI_Comm copy = MPI_COMM_NULL;
    check(MPI_Comm_dup(parent, &copy), "MPI_Comm_dup");
    return copy;
}

/// Those that the thread which calls MPI has made, and may have freed.
std::vector<std::weak_ptr<Comm>>& made() {
    static std::vector<std::weak_ptr<Comm>> all;
    return all;
}

}  // namespace

void for_all_communicators(const std::function<void(MPI_Comm comm)>& visit) {
    for (const std::weak_ptr<Comm>& each : made()) {
        if (const std::shared_ptr<Comm> held = each.lock()) {
            visit(held->get());
        }
    }
}

Communicator::Communicator(MPI_Comm parent) : Communicator(Adopt{}, duplicate(parent)) {}

Communicator::Communicator(Adopt, MPI_Comm comm) : comm_(std::make_shared<Comm>(comm)) {
    check(MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");
    check(MPI_Comm_rank(comm, &rank_), "MPI_Comm_rank");
    check(MPI_Comm_size(comm, &size_), "MPI_Comm_size");
    std::erase_if(made(), [](const std::weak_ptr<Comm>& each) { return each.expired(); });
    made().push_back(comm_);
}

Communicator Communicator::split(int color, int key) const {
    MPI_Comm part = MPI_COMM_NULL;
    check(MPI_Comm_split(get(), color, key, &part), "MPI_Comm_split");
    return {Adopt{}, part};
}

Communicator Communicator::node() const {
    MPI_Comm part = MPI_COMM_NULL;
    check(MPI_Comm_split_type(get(), MPI_COMM_TYPE_SHARED, rank(), MPI_INFO_NULL, &part), "MPI_Comm_split_type");
    return {Adopt{}, part};
}

void Communicator::barrier() const { check(MPI_Barrier(get()), "MPI_Barrier"); }

}  // namespace tilewise::mpi
