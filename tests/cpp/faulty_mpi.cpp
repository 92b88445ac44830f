// MPI lets every call be replaced, and offers the true one as PMPI_…, for tools that watch programs.
#include "faulty_mpi.hpp"

#include "tilewise/mpi/mpi.hpp"

namespace tilewise::test {
namespace {

const FaultyMpi* current = nullptr;
Held held;

/// `code` of a call that makes or frees one of `what`.
int counted(int code, int& what, int by) {
    what += code == MPI_SUCCESS ? by : 0;
    return code;
}

int nothing(int count) { return current != nullptr && current->reads_nothing ? 0 : count; }

}  // namespace

FaultyMpi::FaultyMpi() { current = this; }
FaultyMpi::~FaultyMpi() { current = nullptr; }

Held held_now() { return held; }

}  // namespace tilewise::test

using tilewise::test::counted;
using tilewise::test::held;
using tilewise::test::nothing;

extern "C" {

int MPI_File_open(MPI_Comm comm, const char* name, int mode, MPI_Info info, MPI_File* file) {
    return counted(PMPI_File_open(comm, name, mode, info, file), held.files, 1);
}

int MPI_File_close(MPI_File* file) {
    const int code = counted(PMPI_File_close(file), held.files, -1);
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

int MPI_File_read_shared(MPI_File file, void* data, int count, MPI_Datatype type, MPI_Status* status) {
    return PMPI_File_read_shared(file, data, nothing(count), type, status);
}

int MPI_File_read_ordered(MPI_File file, void* data, int count, MPI_Datatype type, MPI_Status* status) {
    return PMPI_File_read_ordered(file, data, nothing(count), type, status);
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
    return faults != nullptr && faults->no_windows
               ? MPI_ERR_OTHER
               : counted(PMPI_Win_allocate(size, unit, info, comm, base, window), held.windows, 1);
}

int MPI_Win_allocate_shared(MPI_Aint size, int unit, MPI_Info info, MPI_Comm comm, void* base, MPI_Win* window) {
    return counted(PMPI_Win_allocate_shared(size, unit, info, comm, base, window), held.windows, 1);
}

int MPI_Win_create(void* base, MPI_Aint size, int unit, MPI_Info info, MPI_Comm comm, MPI_Win* window) {
    return counted(PMPI_Win_create(base, size, unit, info, comm, window), held.windows, 1);
}

int MPI_Win_free(MPI_Win* window) { return counted(PMPI_Win_free(window), held.windows, -1); }

int MPI_Comm_dup(MPI_Comm comm, MPI_Comm* copy) { return counted(PMPI_Comm_dup(comm, copy), held.communicators, 1); }

int MPI_Comm_split(MPI_Comm comm, int color, int key, MPI_Comm* part) {
    return counted(PMPI_Comm_split(comm, color, key, part), held.communicators, 1);
}

int MPI_Dist_graph_create_adjacent(MPI_Comm comm, int sources, const int* from, const int* from_weights, int targets,
                                   const int* to, const int* to_weights, MPI_Info info, int reorder, MPI_Comm* graph) {
    return counted(PMPI_Dist_graph_create_adjacent(comm, sources, from, from_weights, targets, to, to_weights, info,
                                                   reorder, graph),
                   held.communicators, 1);
}

int MPI_Comm_free(MPI_Comm* comm) { return counted(PMPI_Comm_free(comm), held.communicators, -1); }

int MPI_Comm_split_type(MPI_Comm comm, int type, int key, MPI_Info info, MPI_Comm* part) {
    const auto* faults = tilewise::test::current;
    if (faults != nullptr && faults->everybody_alone) {
        int rank = 0;
        PMPI_Comm_rank(comm, &rank);
        return MPI_Comm_split(comm, rank, key, part);
    }
    return counted(PMPI_Comm_split_type(comm, type, key, info, part), held.communicators, 1);
}
}
