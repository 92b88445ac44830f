// MPI's calls that send and receive, and those of whole groups (collectives, one-sided access, communicators), as this
// program has them: each tells the trace, and is otherwise the library's own.
//
// MPI lets a program define a function of its own in place of MPI_X: the library keeps PMPI_X. These are in the worker,
// not in libtilewise, which others link. Where no trace is wanted, a call costs one branch more; one that may wait also
// says that it is being waited in (see heartbeat.hpp).
#include <unordered_map>
#include <utility>

#include "tilewise/worker/heartbeat.hpp"
#include "tilewise/worker/message_trace.hpp"

namespace {

using tilewise::worker::InCall;
using tilewise::worker::message_trace;
using tilewise::worker::MessageTrace;

bool traced() { return MessageTrace::running(); }

/// What a request will mean when it completes.
struct Pending {
    int received = -1, moved = -1;  ///< places in the trace, or -1
    bool persistent = false, sends = false;
    std::int64_t count = 0;
    MPI_Datatype type = MPI_DATATYPE_NULL;
    int peer = 0, tag = 0;
    MPI_Comm comm = MPI_COMM_NULL;
};

std::unordered_map<MPI_Request, Pending>& pending() {
    static std::unordered_map<MPI_Request, Pending> all;
    return all;
}

template <class Real>
int send(const char* name, std::int64_t count, MPI_Datatype type, int peer, int tag, MPI_Comm comm, const Real& real) {
    const InCall inside(name);
    if (!traced()) {
        return real();
    }
    const double begin = message_trace().now();
    message_trace().sent(begin, count, type, peer, tag, comm);
    const int code = real();
    message_trace().called(name, begin);
    return code;
}

template <class Real> int receive(const char* name, int peer, int tag, MPI_Comm comm, const Real& real) {
    const InCall inside(name);
    if (!traced()) {
        return real();
    }
    const double begin = message_trace().now();
    const int posted = message_trace().posted(peer, tag, comm);
    const int code = real();
    message_trace().called(name, begin);
    message_trace().received(posted);
    return code;
}

template <class Real> int post(int peer, int tag, MPI_Comm comm, MPI_Request* request, const Real& real) {
    if (!traced()) {
        return real();
    }
    const int posted = message_trace().posted(peer, tag, comm);
    const int code = real();
    if (posted >= 0) {
        pending()[*request] = Pending{.received = posted};
    }
    return code;
}

/// What MPI_Start does with a request made by `real`.
template <class Real> int prepare(const Pending& made, MPI_Request* request, const Real& real) {
    const int code = real();
    if (traced()) {
        pending()[*request] = made;
    }
    return code;
}

void started(MPI_Request request, double at) {
    const auto found = pending().find(request);
    if (found == pending().end()) {
        return;
    }
    Pending& one = found->second;
    if (one.sends) {
        message_trace().sent(at, one.count, one.type, one.peer, one.tag, one.comm);
    } else {
        one.received = message_trace().posted(one.peer, one.tag, one.comm);
    }
}

/// The requests of a call that may complete them, as they were before it.
class Watched {
public:
    Watched(int count, const MPI_Request* requests)
        : requests_(requests, requests + count),
          begin_(message_trace().now()) {}
    void completed(int index) {
        const MPI_Request request = requests_[static_cast<std::size_t>(index)];
        const auto found = pending().find(request);
        if (found == pending().end()) {
            return;
        }
        message_trace().received(found->second.received);
        message_trace().landed(found->second.moved);
        found->second.received = found->second.moved = -1;
        any_ = true;
        if (!found->second.persistent) {
            pending().erase(found);
        }
    }
    void all_completed() {
        for (std::size_t i = 0; i < requests_.size(); ++i) {
            completed(static_cast<int>(i));
        }
    }
    /// A call that waits is always shown, one that looks only where it found something.
    void called(const char* name, bool waits) const {
        if (waits || any_) {
            message_trace().called(name, begin_);
        }
    }

private:
    std::vector<MPI_Request> requests_;
    double begin_;
    bool any_ = false;
};

/// `real` completes those requests that `pick` then names to the Watched.
template <class Real, class Pick>
int complete(const char* name, bool waits, int count, const MPI_Request* requests, const Real& real, const Pick& pick) {
    const auto call = [&] {
        const InCall inside(waits ? name : nullptr);
        return real();
    };
    if (!traced()) {
        return call();
    }
    Watched watched(count, requests);
    const int code = call();
    pick(watched);
    watched.called(name, waits);
    return code;
}

void some(Watched& watched, int count, const int* indices) {
    for (int i = 0; count != MPI_UNDEFINED && i < count; ++i) {
        watched.completed(indices[i]);
    }
}

}  // namespace

// Calls that differ in name and in the type of their counts alone.
#define TILEWISE_SEND(CALL, COUNT)                                                                       \
    int MPI_##CALL(const void* data, COUNT count, MPI_Datatype type, int peer, int tag, MPI_Comm comm) { \
        return send("MPI_" #CALL, static_cast<std::int64_t>(count), type, peer, tag, comm,               \
                    [&] { return PMPI_##CALL(data, count, type, peer, tag, comm); });                    \
    }
#define TILEWISE_ISEND(CALL, COUNT)                                                                    \
    int MPI_##CALL(const void* data, COUNT count, MPI_Datatype type, int peer, int tag, MPI_Comm comm, \
                   MPI_Request* request) {                                                             \
        return send("MPI_" #CALL, static_cast<std::int64_t>(count), type, peer, tag, comm,             \
                    [&] { return PMPI_##CALL(data, count, type, peer, tag, comm, request); });         \
    }
#define TILEWISE_SEND_INIT(CALL, COUNT)                                                                          \
    int MPI_##CALL(const void* data, COUNT count, MPI_Datatype type, int peer, int tag, MPI_Comm comm,           \
                   MPI_Request* request) {                                                                       \
        const Pending made{.persistent = true,                                                                   \
                           .sends = true,                                                                        \
                           .count = static_cast<std::int64_t>(count),                                            \
                           .type = type,                                                                         \
                           .peer = peer,                                                                         \
                           .tag = tag,                                                                           \
                           .comm = comm};                                                                        \
        return prepare(made, request, [&] { return PMPI_##CALL(data, count, type, peer, tag, comm, request); }); \
    }
#define TILEWISE_RECEIVE(SUFFIX, COUNT)                                                                              \
    int MPI_Recv##SUFFIX(void* data, COUNT count, MPI_Datatype type, int peer, int tag, MPI_Comm comm,               \
                         MPI_Status* status) {                                                                       \
        return receive("MPI_Recv" #SUFFIX, peer, tag, comm,                                                          \
                       [&] { return PMPI_Recv##SUFFIX(data, count, type, peer, tag, comm, status); });               \
    }                                                                                                                \
    int MPI_Irecv##SUFFIX(void* data, COUNT count, MPI_Datatype type, int peer, int tag, MPI_Comm comm,              \
                          MPI_Request* request) {                                                                    \
        return post(peer, tag, comm, request,                                                                        \
                    [&] { return PMPI_Irecv##SUFFIX(data, count, type, peer, tag, comm, request); });                \
    }                                                                                                                \
    int MPI_Recv_init##SUFFIX(void* data, COUNT count, MPI_Datatype type, int peer, int tag, MPI_Comm comm,          \
                              MPI_Request* request) {                                                                \
        const Pending made{.persistent = true, .peer = peer, .tag = tag, .comm = comm};                              \
        return prepare(made, request,                                                                                \
                       [&] { return PMPI_Recv_init##SUFFIX(data, count, type, peer, tag, comm, request); });         \
    }                                                                                                                \
    int MPI_Sendrecv##SUFFIX(const void* out, COUNT out_count, MPI_Datatype out_type, int to, int out_tag, void* in, \
                             COUNT in_count, MPI_Datatype in_type, int from, int in_tag, MPI_Comm comm,              \
                             MPI_Status* status) {                                                                   \
        if (traced()) {                                                                                              \
            message_trace().sent(message_trace().now(), static_cast<std::int64_t>(out_count), out_type, to, out_tag, \
                                 comm);                                                                              \
        }                                                                                                            \
        return receive("MPI_Sendrecv" #SUFFIX, from, in_tag, comm, [&] {                                             \
            return PMPI_Sendrecv##SUFFIX(out, out_count, out_type, to, out_tag, in, in_count, in_type, from, in_tag, \
                                         comm, status);                                                              \
        });                                                                                                          \
    }
/// MPICH gives all moves that are complete at once the same request: one that is still pending under it has landed.
#define TILEWISE_REQUEST_MOVE(CALL, DATA, PUT, COUNT)                                                          \
    int MPI_##CALL(DATA data, COUNT count, MPI_Datatype type, int peer, MPI_Aint place, COUNT there,           \
                   MPI_Datatype there_type, MPI_Win window, MPI_Request* request) {                            \
        const double begin = traced() ? message_trace().now() : 0;                                             \
        const int code = PMPI_##CALL(data, count, type, peer, place, there, there_type, window, request);      \
        if (traced()) {                                                                                        \
            const int moved =                                                                                  \
                message_trace().moved(begin, static_cast<std::int64_t>(count), type, peer, window, PUT, true); \
            message_trace().called("MPI_" #CALL, begin);                                                       \
            message_trace().landed(std::exchange(pending()[*request], Pending{.moved = moved}).moved);         \
        }                                                                                                      \
        return code;                                                                                           \
    }

TILEWISE_SEND(Send, int)
TILEWISE_SEND(Ssend, int)
TILEWISE_ISEND(Isend, int)
TILEWISE_ISEND(Issend, int)
TILEWISE_SEND_INIT(Send_init, int)
TILEWISE_SEND_INIT(Ssend_init, int)
TILEWISE_RECEIVE(, int)
TILEWISE_REQUEST_MOVE(Rget, void*, false, int)
TILEWISE_REQUEST_MOVE(Rput, const void*, true, int)
#if MPI_VERSION >= 4
TILEWISE_SEND(Send_c, MPI_Count)
TILEWISE_SEND(Ssend_c, MPI_Count)
TILEWISE_ISEND(Isend_c, MPI_Count)
TILEWISE_ISEND(Issend_c, MPI_Count)
TILEWISE_SEND_INIT(Send_init_c, MPI_Count)
TILEWISE_SEND_INIT(Ssend_init_c, MPI_Count)
TILEWISE_RECEIVE(_c, MPI_Count)
TILEWISE_REQUEST_MOVE(Rget_c, void*, false, MPI_Count)
TILEWISE_REQUEST_MOVE(Rput_c, const void*, true, MPI_Count)
#endif

int MPI_Start(MPI_Request* request) {
    if (traced()) {
        started(*request, message_trace().now());
    }
    return PMPI_Start(request);
}

int MPI_Startall(int count, MPI_Request requests[]) {
    if (!traced()) {
        return PMPI_Startall(count, requests);
    }
    const double begin = message_trace().now();
    for (int i = 0; i < count; ++i) {
        started(requests[i], begin);
    }
    const int code = PMPI_Startall(count, requests);
    message_trace().called("MPI_Startall", begin);
    return code;
}

int MPI_Request_free(MPI_Request* request) {
    if (traced()) {
        pending().erase(*request);
    }
    return PMPI_Request_free(request);
}

int MPI_Wait(MPI_Request* request, MPI_Status* status) {
    return complete(
        "MPI_Wait", true, 1, request, [&] { return PMPI_Wait(request, status); },
        [](Watched& watched) { watched.all_completed(); });
}

int MPI_Waitall(int count, MPI_Request requests[], MPI_Status statuses[]) {
    return complete(
        "MPI_Waitall", true, count, requests, [&] { return PMPI_Waitall(count, requests, statuses); },
        [](Watched& watched) { watched.all_completed(); });
}

int MPI_Waitany(int count, MPI_Request requests[], int* index, MPI_Status* status) {
    return complete(
        "MPI_Waitany", true, count, requests, [&] { return PMPI_Waitany(count, requests, index, status); },
        [&](Watched& watched) { some(watched, *index == MPI_UNDEFINED ? 0 : 1, index); });
}

int MPI_Waitsome(int count, MPI_Request requests[], int* done, int indices[], MPI_Status statuses[]) {
    return complete(
        "MPI_Waitsome", true, count, requests, [&] { return PMPI_Waitsome(count, requests, done, indices, statuses); },
        [&](Watched& watched) { some(watched, *done, indices); });
}

int MPI_Test(MPI_Request* request, int* flag, MPI_Status* status) {
    return complete(
        "MPI_Test", false, 1, request, [&] { return PMPI_Test(request, flag, status); },
        [&](Watched& watched) {
            if (*flag != 0) {
                watched.all_completed();
            }
        });
}

int MPI_Testall(int count, MPI_Request requests[], int* flag, MPI_Status statuses[]) {
    return complete(
        "MPI_Testall", false, count, requests, [&] { return PMPI_Testall(count, requests, flag, statuses); },
        [&](Watched& watched) {
            if (*flag != 0) {
                watched.all_completed();
            }
        });
}

int MPI_Testany(int count, MPI_Request requests[], int* index, int* flag, MPI_Status* status) {
    return complete(
        "MPI_Testany", false, count, requests, [&] { return PMPI_Testany(count, requests, index, flag, status); },
        [&](Watched& watched) { some(watched, *flag != 0 && *index != MPI_UNDEFINED ? 1 : 0, index); });
}

int MPI_Testsome(int count, MPI_Request requests[], int* done, int indices[], MPI_Status statuses[]) {
    return complete(
        "MPI_Testsome", false, count, requests, [&] { return PMPI_Testsome(count, requests, done, indices, statuses); },
        [&](Watched& watched) { some(watched, *done, indices); });
}

// Calls on files: each says that it is being waited in.
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

// Calls of whole groups.

namespace {

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
