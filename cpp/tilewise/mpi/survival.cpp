// Calls ULFM's functions by their addresses: a library without them is no reason not to start.
#include "tilewise/mpi/survival.hpp"

#include <dlfcn.h>

#include "tilewise/mpi/handle.hpp"

#ifdef OPEN_MPI
// MPICH has functions of the same names, and dies all the same.
#if __has_include(<mpi-ext.h>)
#include <mpi-ext.h>
#endif
#endif

namespace tilewise::mpi {
namespace {

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

bool can_survive() { return ulfm().revoke != nullptr && ulfm().agree != nullptr && ulfm().shrink != nullptr; }

void survive_losses(bool yes) { survives = yes && can_survive(); }

bool losses_are_survived() { return survives; }

void revoke_all() {
    for_all_communicators([](MPI_Comm comm) { ulfm().revoke(comm); });
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
