// The loops themselves; calls that MPI has are written out, since a level in between would be measured with them.
#include "tilewise/measure/ping_loops.hpp"

#include <algorithm>

namespace tilewise::measure {
namespace {

constexpr int message_tag = 1, answer_tag = 2, meeting_tag = 3;
constexpr int answer_bytes = 4;

/// mpi::check, of which only the comparison is in the loop: a call costs a percent of the shortest message.
inline void ok(int code, const char* call) {
    if (code != MPI_SUCCESS) [[unlikely]] {
        mpi::check(code, call);
    }
}

void send(const Side& s) { ok(MPI_Send(s.out, s.count, s.type, s.peer, message_tag, s.comm), "MPI_Send"); }
void receive(const Side& s) {
    ok(MPI_Recv(s.in, s.count, s.type, s.peer, message_tag, s.comm, MPI_STATUS_IGNORE), "MPI_Recv");
}
MPI_Request start_send(const Side& s) {
    MPI_Request request = MPI_REQUEST_NULL;
    ok(MPI_Isend(s.out, s.count, s.type, s.peer, message_tag, s.comm, &request), "MPI_Isend");
    return request;
}
MPI_Request start_receive(const Side& s) {
    MPI_Request request = MPI_REQUEST_NULL;
    ok(MPI_Irecv(s.in, s.count, s.type, s.peer, message_tag, s.comm, &request), "MPI_Irecv");
    return request;
}
void wait(MPI_Request request) { ok(MPI_Wait(&request, MPI_STATUS_IGNORE), "MPI_Wait"); }

void send_answer(const Side& s) {
    const std::array<std::byte, answer_bytes> nothing{};
    ok(MPI_Send(nothing.data(), answer_bytes, MPI_BYTE, s.peer, answer_tag, s.comm), "MPI_Send");
}
void receive_answer(const Side& s) {
    std::array<std::byte, answer_bytes> nothing;
    ok(MPI_Recv(nothing.data(), answer_bytes, MPI_BYTE, s.peer, answer_tag, s.comm, MPI_STATUS_IGNORE), "MPI_Recv");
}

void blocking_roundtrip(const Side& s, std::int64_t count) {
    if (s.first) {
        for (std::int64_t i = 0; i < count; ++i) {
            send(s);
            receive(s);
        }
    } else {
        for (std::int64_t i = 0; i < count; ++i) {
            receive(s);
            send(s);
        }
    }
}

/// The first has its receive posted before it sends, which is what nonblocking messages are for.
void nonblocking_roundtrip(const Side& s, std::int64_t count) {
    if (s.first) {
        for (std::int64_t i = 0; i < count; ++i) {
            const MPI_Request answer = start_receive(s), message = start_send(s);
            wait(message);
            wait(answer);
        }
    } else {
        for (std::int64_t i = 0; i < count; ++i) {
            wait(start_receive(s));
            wait(start_send(s));
        }
    }
}

void blocking_stream(const Side& s, std::int64_t count) {
    for (std::int64_t i = 0; i < count; ++i) {
        for (int message = 0; message < window_messages; ++message) {
            s.first ? send(s) : receive(s);
        }
        s.first ? receive_answer(s) : send_answer(s);
    }
}

void nonblocking_stream(const Side& s, std::int64_t count) {
    std::array<MPI_Request, window_messages> requests;
    for (std::int64_t i = 0; i < count; ++i) {
        for (MPI_Request& request : requests) {
            request = s.first ? start_send(s) : start_receive(s);
        }
        ok(MPI_Waitall(window_messages, requests.data(), MPI_STATUSES_IGNORE), "MPI_Waitall");
        s.first ? receive_answer(s) : send_answer(s);
    }
}

/// All puts of a window go to the same place, and bring the same numbers, so that whichever is last leaves them there.
template <int messages> void put(const Side& s, std::int64_t count) {
    for (std::int64_t i = 0; i < count; ++i) {
        for (int message = 0; message < messages; ++message) {
            ok(MPI_Put(s.out, s.count, s.type, s.peer, 0, s.count, s.type, s.window), "MPI_Put");
        }
        ok(MPI_Win_flush(s.peer, s.window), "MPI_Win_flush");
    }
}

template <int messages> void get(const Side& s, std::int64_t count) {
    for (std::int64_t i = 0; i < count; ++i) {
        for (int message = 0; message < messages; ++message) {
            ok(MPI_Get(s.in, s.count, s.type, s.peer, 0, s.count, s.type, s.window), "MPI_Get");
        }
        ok(MPI_Win_flush(s.peer, s.window), "MPI_Win_flush");
    }
}

}  // namespace

const std::array<PingEntry, 8> ping_table{{
    {"blocking", "roundtrip", blocking_roundtrip, 1, false},
    {"blocking", "stream", blocking_stream, window_messages, false},
    {"nonblocking", "roundtrip", nonblocking_roundtrip, 1, false},
    {"nonblocking", "stream", nonblocking_stream, window_messages, false},
    {"put", "roundtrip", put<1>, 1, true},
    {"put", "stream", put<window_messages>, window_messages, true},
    {"get", "roundtrip", get<1>, 1, true},
    {"get", "stream", get<window_messages>, window_messages, true},
}};

const PingEntry* find_ping(std::string_view name, std::string_view pattern, bool staged) {
    const PingEntry* begin = staged ? staged_table.data() : ping_table.data();
    const PingEntry* end = begin + (staged ? staged_table.size() : ping_table.size());
    const PingEntry* found = std::find_if(
        begin, end, [&](const PingEntry& entry) { return entry.name == name && entry.pattern == pattern; });
    return found == end ? nullptr : found;
}

void meet_peer(const Side& s) {
    const auto send_nothing = [&] { ok(MPI_Send(nullptr, 0, MPI_BYTE, s.peer, meeting_tag, s.comm), "MPI_Send"); };
    const auto receive_nothing = [&] {
        ok(MPI_Recv(nullptr, 0, MPI_BYTE, s.peer, meeting_tag, s.comm, MPI_STATUS_IGNORE), "MPI_Recv");
    };
    if (s.first) {
        send_nothing();
        receive_nothing();
    } else {
        receive_nothing();
        send_nothing();
    }
}

}  // namespace tilewise::measure
