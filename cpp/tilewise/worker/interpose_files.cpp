// MPI's calls on files, as this program has them: each says that it is being waited in. See interpose.cpp, pulse.hpp.
#include "tilewise/mpi/mpi.hpp"
#include "tilewise/worker/pulse.hpp"

using tilewise::worker::InCall;

#define TILEWISE_FILE_CALL(CALL, PARAMETERS, ...) \
    int MPI_File_##CALL PARAMETERS {              \
        const InCall inside("MPI_File_" #CALL);   \
        return PMPI_File_##CALL(__VA_ARGS__);     \
    }
#define TILEWISE_MOVE_HERE(CALL, DATA)                                                                                \
    TILEWISE_FILE_CALL(CALL, (MPI_File file, DATA data, int n, MPI_Datatype t, MPI_Status* status), file, data, n, t, \
                       status)
#define TILEWISE_MOVE_AT(CALL, DATA)                                                                               \
    TILEWISE_FILE_CALL(CALL, (MPI_File file, MPI_Offset at, DATA data, int n, MPI_Datatype t, MPI_Status* status), \
                       file, at, data, n, t, status)
#define TILEWISE_BEGIN_AND_END(CALL, DATA)                                                                          \
    TILEWISE_FILE_CALL(CALL##_all_begin, (MPI_File file, DATA data, int n, MPI_Datatype t), file, data, n, t)       \
    TILEWISE_FILE_CALL(CALL##_all_end, (MPI_File file, DATA data, MPI_Status * status), file, data, status)         \
    TILEWISE_FILE_CALL(CALL##_at_all_begin, (MPI_File file, MPI_Offset at, DATA data, int n, MPI_Datatype t), file, \
                       at, data, n, t)                                                                              \
    TILEWISE_FILE_CALL(CALL##_at_all_end, (MPI_File file, DATA data, MPI_Status * status), file, data, status)

TILEWISE_FILE_CALL(open, (MPI_Comm comm, const char* name, int mode, MPI_Info info, MPI_File* file), comm, name, mode,
                   info, file)
TILEWISE_FILE_CALL(close, (MPI_File * file), file)
TILEWISE_FILE_CALL(sync, (MPI_File file), file)
TILEWISE_FILE_CALL(seek_shared, (MPI_File file, MPI_Offset at, int whence), file, at, whence)
TILEWISE_FILE_CALL(set_view,
                   (MPI_File file, MPI_Offset at, MPI_Datatype item, MPI_Datatype view, const char* name,
                    MPI_Info info),
                   file, at, item, view, name, info)
TILEWISE_MOVE_HERE(read, void*)
TILEWISE_MOVE_HERE(read_all, void*)
TILEWISE_MOVE_HERE(read_shared, void*)
TILEWISE_MOVE_HERE(read_ordered, void*)
TILEWISE_MOVE_HERE(write, const void*)
TILEWISE_MOVE_HERE(write_all, const void*)
TILEWISE_MOVE_AT(read_at, void*)
TILEWISE_MOVE_AT(read_at_all, void*)
TILEWISE_MOVE_AT(write_at, const void*)
TILEWISE_MOVE_AT(write_at_all, const void*)
TILEWISE_BEGIN_AND_END(read, void*)
TILEWISE_BEGIN_AND_END(write, const void*)
