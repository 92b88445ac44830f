// MPI lets every call be replaced, and offers the true one as PMPI_…, for tools that watch programs.
#include "faulty_mpi.hpp"

#include "tilewise/mpi/mpi.hpp"

namespace tilewise::test {
namespace {

const FaultyMpi* current = nullptr;

}  // namespace

FaultyMpi::FaultyMpi() { current = this; }
FaultyMpi::~FaultyMpi() { current = nullptr; }

}  // namespace tilewise::test

extern "C" {

int MPI_File_close(MPI_File* file) {
    const int code = PMPI_File_close(file);
    const auto* faults = tilewise::test::current;
    return faults != nullptr && faults->close_fails ? MPI_ERR_NO_SPACE : code;
}

int MPI_Win_allocate(MPI_Aint size, int unit, MPI_Info info, MPI_Comm comm, void* base, MPI_Win* window) {
    const auto* faults = tilewise::test::current;
    return faults != nullptr && faults->no_windows ? MPI_ERR_OTHER
                                                   : PMPI_Win_allocate(size, unit, info, comm, base, window);
}

int MPI_Comm_split_type(MPI_Comm comm, int type, int key, MPI_Info info, MPI_Comm* part) {
    const auto* faults = tilewise::test::current;
    if (faults != nullptr && faults->everybody_alone) {
        int rank = 0;
        PMPI_Comm_rank(comm, &rank);
        return PMPI_Comm_split(comm, rank, key, part);
    }
    return PMPI_Comm_split_type(comm, type, key, info, part);
}
}
