// Duplicates and splits communicators, and makes them return errors instead of ending the program. ULFM's functions are
// called by their addresses: a library without them is no reason not to start.
#include "tilewise/mpi/communicator.hpp"

#include <array>
#include <dlfcn.h>
#include <string>
#include <vector>

#include "tilewise/base/error.hpp"
#include "tilewise/mpi/handle.hpp"

#ifdef OPEN_MPI
// MPICH has functions of the same names, and dies all the same.
#if __has_include(<mpi-ext.h>)
#include <mpi-ext.h>
#endif
#endif

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

bool survives = false;

struct Ulfm {
    int (*revoke)(MPI_Comm) = nullptr;
    int (*agree)(MPI_Comm, int*) = nullptr;
    int (*shrink)(MPI_Comm, MPI_Comm*) = nullptr;
};

template <class Function> void look_up(Function*& function, const char* name) {
    function = reinterpret_cast<Function*>(dlsym(RTLD_DEFAULT, name));
}

const Ulfm& ulfm() {
    static const Ulfm found = [] {
        Ulfm all;
#ifdef OMPI_HAVE_MPI_EXT_FTMPI
        look_up(all.revoke, "MPIX_Comm_revoke");
        look_up(all.agree, "MPIX_Comm_agree");
        look_up(all.shrink, "MPIX_Comm_shrink");
#endif
        return all;
    }();
    return found;
}

}  // namespace

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

std::vector<int> cartesian_order(const Communicator& comm, grid::Grid grid, bool periodic) {
    if (grid.size() != comm.size()) {
        throw UsageError("the grid has " + std::to_string(grid.size()) + " places for " + std::to_string(comm.size()) +
                         " ranks");
    }
    const std::array<int, 2> extents{grid.rows, grid.columns}, periods{periodic ? 1 : 0, periodic ? 1 : 0};
    Comm cartesian;
    check(MPI_Cart_create(comm.get(), 2, extents.data(), periods.data(), 1, cartesian.out()), "MPI_Cart_create");
    int mine = 0;
    check(MPI_Comm_rank(cartesian.get(), &mine), "MPI_Comm_rank");
    std::vector<int> order(static_cast<std::size_t>(comm.size()));
    check(MPI_Allgather(&mine, 1, MPI_INT, order.data(), 1, MPI_INT, comm.get()), "MPI_Allgather");
    return order;
}

bool can_survive() { return ulfm().revoke != nullptr && ulfm().agree != nullptr && ulfm().shrink != nullptr; }

void survive_losses(bool yes) { survives = yes && can_survive(); }

bool losses_are_survived() { return survives; }

void revoke_all() {
    for (const std::weak_ptr<Comm>& each : made()) {
        if (const std::shared_ptr<Comm> held = each.lock()) {
            ulfm().revoke(held->get());
        }
    }
}

bool all_finished(const Communicator& comm, bool mine) {
    int flag = mine ? 1 : 0;
    ulfm().agree(comm.get(), &flag);  // its code tells of deaths, which do not matter to who has finished
    return flag != 0;
}

Communicator survivors(const Communicator& comm) {
    MPI_Comm rest = MPI_COMM_NULL;
    check(ulfm().shrink(comm.get(), &rest), "MPIX_Comm_shrink");
    const Comm owner(rest);
    check(MPI_Comm_set_errhandler(rest, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");
    return Communicator(rest);
}

}  // namespace tilewise::mpi
