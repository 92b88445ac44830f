// MPI's calls of whole groups, as this program has them: collectives, one-sided access, communicators. See
// interpose.cpp.
#include "tilewise/worker/message_trace.hpp"
#include "tilewise/worker/pulse.hpp"

namespace {

using tilewise::worker::InCall;
using tilewise::worker::message_trace;
using tilewise::worker::MessageTrace;

bool traced() { return MessageTrace::running(); }

template <class Real> int collective(const char* name, const Real& real, bool all = true) {
    const InCall inside(name);
    if (!traced()) {
        return real();
    }
    const double begin = message_trace().now();
    const int code = real();
    message_trace().called(name, begin, all);
    return code;
}

template <class Real>
int move(const char* name, std::int64_t count, MPI_Datatype type, int peer, MPI_Win window, bool put,
         const Real& real) {
    if (!traced()) {
        return real();
    }
    const double begin = message_trace().now();
    message_trace().moved(begin, count, type, peer, window, put, false);
    const int code = real();
    message_trace().called(name, begin);
    return code;
}

/// A call after which the one-sided messages of `window` to `peer`, or to anybody (-1), have arrived.
template <class Real> int synchronize(const char* name, MPI_Win window, int peer, const Real& real) {
    const InCall inside(name);
    if (!traced()) {
        return real();
    }
    const double begin = message_trace().now();
    const int code = real();
    message_trace().called(name, begin);
    message_trace().synchronized(window, peer);
    return code;
}

template <class Real> int make(const char* name, MPI_Comm parent, const MPI_Comm* child, const Real& real) {
    const InCall inside(name);
    const int code = real();
    if (traced() && code == MPI_SUCCESS) {
        message_trace().made(parent, *child);
    }
    return code;
}

}  // namespace

#define TILEWISE_COLLECTIVE(CALL, PARAMETERS, ...)                                 \
    int MPI_##CALL PARAMETERS {                                                    \
        return collective("MPI_" #CALL, [&] { return PMPI_##CALL(__VA_ARGS__); }); \
    }
#define TILEWISE_COLLECTIVES(C, COUNT, PLACE)                                                                          \
    TILEWISE_COLLECTIVE(Bcast##C, (void* data, COUNT n, MPI_Datatype t, int root, MPI_Comm comm), data, n, t, root,    \
                        comm)                                                                                          \
    TILEWISE_COLLECTIVE(Reduce##C,                                                                                     \
                        (const void* s, void* r, COUNT n, MPI_Datatype t, MPI_Op op, int root, MPI_Comm comm), s, r,   \
                        n, t, op, root, comm)                                                                          \
    TILEWISE_COLLECTIVE(Allreduce##C, (const void* s, void* r, COUNT n, MPI_Datatype t, MPI_Op op, MPI_Comm comm), s,  \
                        r, n, t, op, comm)                                                                             \
    TILEWISE_COLLECTIVE(Exscan##C, (const void* s, void* r, COUNT n, MPI_Datatype t, MPI_Op op, MPI_Comm comm), s, r,  \
                        n, t, op, comm)                                                                                \
    TILEWISE_COLLECTIVE(                                                                                               \
        Gather##C,                                                                                                     \
        (const void* s, COUNT sn, MPI_Datatype st, void* r, COUNT rn, MPI_Datatype rt, int root, MPI_Comm comm), s,    \
        sn, st, r, rn, rt, root, comm)                                                                                 \
    TILEWISE_COLLECTIVE(                                                                                               \
        Scatter##C,                                                                                                    \
        (const void* s, COUNT sn, MPI_Datatype st, void* r, COUNT rn, MPI_Datatype rt, int root, MPI_Comm comm), s,    \
        sn, st, r, rn, rt, root, comm)                                                                                 \
    TILEWISE_COLLECTIVE(Allgather##C,                                                                                  \
                        (const void* s, COUNT sn, MPI_Datatype st, void* r, COUNT rn, MPI_Datatype rt, MPI_Comm comm), \
                        s, sn, st, r, rn, rt, comm)                                                                    \
    TILEWISE_COLLECTIVE(Alltoall##C,                                                                                   \
                        (const void* s, COUNT sn, MPI_Datatype st, void* r, COUNT rn, MPI_Datatype rt, MPI_Comm comm), \
                        s, sn, st, r, rn, rt, comm)                                                                    \
    TILEWISE_COLLECTIVE(Gatherv##C,                                                                                    \
                        (const void* s, COUNT sn, MPI_Datatype st, void* r, const COUNT rn[], const PLACE at[],        \
                         MPI_Datatype rt, int root, MPI_Comm comm),                                                    \
                        s, sn, st, r, rn, at, rt, root, comm)                                                          \
    TILEWISE_COLLECTIVE(Igatherv##C,                                                                                   \
                        (const void* s, COUNT sn, MPI_Datatype st, void* r, const COUNT rn[], const PLACE at[],        \
                         MPI_Datatype rt, int root, MPI_Comm comm, MPI_Request* request),                              \
                        s, sn, st, r, rn, at, rt, root, comm, request)                                                 \
    TILEWISE_COLLECTIVE(Scatterv##C,                                                                                   \
                        (const void* s, const COUNT sn[], const PLACE at[], MPI_Datatype st, void* r, COUNT rn,        \
                         MPI_Datatype rt, int root, MPI_Comm comm),                                                    \
                        s, sn, at, st, r, rn, rt, root, comm)                                                          \
    TILEWISE_COLLECTIVE(Allgatherv##C,                                                                                 \
                        (const void* s, COUNT sn, MPI_Datatype st, void* r, const COUNT rn[], const PLACE at[],        \
                         MPI_Datatype rt, MPI_Comm comm),                                                              \
                        s, sn, st, r, rn, at, rt, comm)                                                                \
    TILEWISE_COLLECTIVE(Alltoallv##C,                                                                                  \
                        (const void* s, const COUNT sn[], const PLACE sat[], MPI_Datatype st, void* r,                 \
                         const COUNT rn[], const PLACE rat[], MPI_Datatype rt, MPI_Comm comm),                         \
                        s, sn, sat, st, r, rn, rat, rt, comm)                                                          \
    TILEWISE_COLLECTIVE(Neighbor_alltoallw##C,                                                                         \
                        (const void* s, const COUNT sn[], const MPI_Aint sat[], const MPI_Datatype st[], void* r,      \
                         const COUNT rn[], const MPI_Aint rat[], const MPI_Datatype rt[], MPI_Comm comm),              \
                        s, sn, sat, st, r, rn, rat, rt, comm)
#define TILEWISE_MOVE(CALL, DATA, PUT, COUNT)                                                                \
    int MPI_##CALL(DATA data, COUNT count, MPI_Datatype type, int peer, MPI_Aint place, COUNT there,         \
                   MPI_Datatype there_type, MPI_Win window) {                                                \
        return move("MPI_" #CALL, static_cast<std::int64_t>(count), type, peer, window, PUT,                 \
                    [&] { return PMPI_##CALL(data, count, type, peer, place, there, there_type, window); }); \
    }
#define TILEWISE_SYNCHRONIZE(CALL, PEER, PARAMETERS, ...)                                                 \
    int MPI_Win_##CALL PARAMETERS {                                                                       \
        return synchronize("MPI_Win_" #CALL, window, PEER, [&] { return PMPI_Win_##CALL(__VA_ARGS__); }); \
    }
#define TILEWISE_MAKE(CALL, PARAMETERS, ...)                                                \
    int MPI_##CALL PARAMETERS {                                                             \
        return make("MPI_" #CALL, parent, child, [&] { return PMPI_##CALL(__VA_ARGS__); }); \
    }

TILEWISE_COLLECTIVE(Barrier, (MPI_Comm comm), comm)
TILEWISE_COLLECTIVES(, int, int)
TILEWISE_MOVE(Get, void*, false, int)
TILEWISE_MOVE(Put, const void*, true, int)
#if MPI_VERSION >= 4
TILEWISE_COLLECTIVES(_c, MPI_Count, MPI_Aint)
TILEWISE_MOVE(Get_c, void*, false, MPI_Count)
TILEWISE_MOVE(Put_c, const void*, true, MPI_Count)
#endif

TILEWISE_SYNCHRONIZE(fence, -1, (int hint, MPI_Win window), hint, window)
TILEWISE_SYNCHRONIZE(complete, -1, (MPI_Win window), window)
TILEWISE_SYNCHRONIZE(flush, peer, (int peer, MPI_Win window), peer, window)
TILEWISE_SYNCHRONIZE(flush_all, -1, (MPI_Win window), window)
TILEWISE_SYNCHRONIZE(unlock, peer, (int peer, MPI_Win window), peer, window)
TILEWISE_SYNCHRONIZE(unlock_all, -1, (MPI_Win window), window)

TILEWISE_MAKE(Comm_dup, (MPI_Comm parent, MPI_Comm* child), parent, child)
TILEWISE_MAKE(Comm_split, (MPI_Comm parent, int color, int key, MPI_Comm* child), parent, color, key, child)
TILEWISE_MAKE(Comm_split_type, (MPI_Comm parent, int type, int key, MPI_Info info, MPI_Comm* child), parent, type, key,
              info, child)
TILEWISE_MAKE(Cart_create,
              (MPI_Comm parent, int count, const int sizes[], const int periods[], int reorder, MPI_Comm* child),
              parent, count, sizes, periods, reorder, child)
TILEWISE_MAKE(Dist_graph_create_adjacent,
              (MPI_Comm parent, int in, const int from[], const int in_weights[], int out, const int to[],
               const int out_weights[], MPI_Info info, int reorder, MPI_Comm* child),
              parent, in, from, in_weights, out, to, out_weights, info, reorder, child)

int MPI_Win_wait(MPI_Win window) {
    return collective("MPI_Win_wait", [&] { return PMPI_Win_wait(window); }, false);
}

int MPI_Win_free(MPI_Win* window) {
    if (traced()) {
        message_trace().window_gone(*window);
    }
    const InCall inside("MPI_Win_free");
    return PMPI_Win_free(window);
}

int MPI_Comm_free(MPI_Comm* comm) {
    if (traced()) {
        message_trace().gone(*comm);
    }
    const InCall inside("MPI_Comm_free");
    return PMPI_Comm_free(comm);
}
