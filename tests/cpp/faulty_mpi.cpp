// MPI lets every call be replaced, and offers the true one as PMPI_…, for tools that watch programs.
#include "faulty_mpi.hpp"

#include "tilewise/mpi/mpi.hpp"

namespace tilewise::test {
namespace {

const FaultyMpi* current = nullptr;

int nothing(int count) { return current != nullptr && current->reads_nothing ? 0 : count; }

}  // namespace

FaultyMpi::FaultyMpi() { current = this; }
FaultyMpi::~FaultyMpi() { current = nullptr; }

}  // namespace tilewise::test

using tilewise::test::nothing;

extern "C" {

int MPI_File_close(MPI_File* file) {
    const int code = PMPI_File_close(file);
    const auto* faults = tilewise::test::current;
    return faults != nullptr && faults->close_fails ? MPI_ERR_NO_SPACE : code;
}

int MPI_File_read(MPI_File file, void* data, int count, MPI_Datatype type, MPI_Status* status) {
    return PMPI_File_read(file, data, nothing(count), type, status);
}

int MPI_File_read_all(MPI_File file, void* data, int count, MPI_Datatype type, MPI_Status* status) {
    return PMPI_File_read_all(file, data, nothing(count), type, status);
}

int MPI_File_read_all_begin(MPI_File file, void* data, int count, MPI_Datatype type) {
    return PMPI_File_read_all_begin(file, data, nothing(count), type);
}

int MPI_Get_elements_x(const MPI_Status* status, MPI_Datatype type, MPI_Count* count) {
    const int code = PMPI_Get_elements_x(status, type, count);
    if (nothing(1) == 0) {
        *count = MPI_UNDEFINED;  // as of a library that did not count
    }
    return code;
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
