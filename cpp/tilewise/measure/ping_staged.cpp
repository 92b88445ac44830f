// The loops of messages that a program copies off its device before it sends, and onto it after they have arrived.
//
// One stage a side: the next message is copied into it when the one before has left, also in a stream.
#include <array>

#include "tilewise/base/memory.hpp"
#include "tilewise/measure/ping_loops.hpp"

namespace tilewise::measure {
namespace {

constexpr int message_tag = 1, answer_tag = 2;

void send(const Side& s) {
    s.staging->out->to_host(s.staging->out_stage, 0, s.staging->bytes);
    mpi::check(MPI_Send(s.out, s.count, s.type, s.peer, message_tag, s.comm), "MPI_Send");
}

void receive(const Side& s) {
    mpi::check(MPI_Recv(s.in, s.count, s.type, s.peer, message_tag, s.comm, MPI_STATUS_IGNORE), "MPI_Recv");
    s.staging->in->from_host(0, s.staging->in_stage, s.staging->bytes);
}

void blocking_roundtrip(const Side& s, std::int64_t count) {
    for (std::int64_t i = 0; i < count; ++i) {
        s.first ? send(s) : receive(s);
        s.first ? receive(s) : send(s);
    }
}

/// The receive of the answer is posted before the message is copied and sent.
void nonblocking_roundtrip(const Side& s, std::int64_t count) {
    for (std::int64_t i = 0; i < count; ++i) {
        MPI_Request arriving = MPI_REQUEST_NULL, leaving = MPI_REQUEST_NULL;
        mpi::check(MPI_Irecv(s.in, s.count, s.type, s.peer, message_tag, s.comm, &arriving), "MPI_Irecv");
        const auto go = [&] {
            s.staging->out->to_host(s.staging->out_stage, 0, s.staging->bytes);
            mpi::check(MPI_Isend(s.out, s.count, s.type, s.peer, message_tag, s.comm, &leaving), "MPI_Isend");
            mpi::check(MPI_Wait(&leaving, MPI_STATUS_IGNORE), "MPI_Wait");
        };
        const auto come = [&] {
            mpi::check(MPI_Wait(&arriving, MPI_STATUS_IGNORE), "MPI_Wait");
            s.staging->in->from_host(0, s.staging->in_stage, s.staging->bytes);
        };
        if (s.first) {
            go();
            come();
        } else {
            come();
            go();
        }
    }
}

void stream(const Side& s, std::int64_t count) {
    std::array<std::byte, 4> answer{};
    for (std::int64_t i = 0; i < count; ++i) {
        for (int message = 0; message < window_messages; ++message) {
            s.first ? send(s) : receive(s);
        }
        const auto bytes = static_cast<int>(answer.size());
        if (s.first) {
            mpi::check(MPI_Recv(answer.data(), bytes, MPI_BYTE, s.peer, answer_tag, s.comm, MPI_STATUS_IGNORE),
                       "MPI_Recv");
        } else {
            mpi::check(MPI_Send(answer.data(), bytes, MPI_BYTE, s.peer, answer_tag, s.comm), "MPI_Send");
        }
    }
}

}  // namespace

const std::array<PingEntry, 4> staged_table{{
    {"blocking", "roundtrip", blocking_roundtrip, 1, false},
    {"blocking", "stream", stream, window_messages, false},
    {"nonblocking", "roundtrip", nonblocking_roundtrip, 1, false},
    {"nonblocking", "stream", stream, window_messages, false},
}};

}  // namespace tilewise::measure
