// Exchanges between all ranks, as they are and by way of a leader a node: seconds of each, as JSON on rank 0.
//
//     node_level ROUNDS BYTES…       BYTES of one message: what a rank has for each other rank
//
//     broadcast   direct: rank 0 sends to each      library: MPI_Bcast      leaders: rank 0 to leaders, then within
//                 ring: each passes it on to the                            each node
//                 next, as SUMMA does
//     scatter     direct: rank 0 sends to each      library: MPI_Scatter    leaders: a node's parts as one message
//     alltoall    direct: Isend and Irecv of all    library: MPI_Alltoall   leaders: gathered, one message for each two
//                                                                           nodes, dealt out
//
// Nodes have the same number of ranks, next to each other. Every way is checked before it is timed.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

#include <mpi.h>

namespace {

using Bytes = std::vector<char>;

struct Place {
    MPI_Comm world = MPI_COMM_WORLD, node = MPI_COMM_NULL, leaders = MPI_COMM_NULL;
    int rank = 0, ranks = 0, local = 0, width = 0, nodes = 0, mine = 0;  // mine: the number of this node
};

Place find_place() {
    Place place;
    MPI_Comm_rank(place.world, &place.rank);
    MPI_Comm_size(place.world, &place.ranks);
    MPI_Comm_split_type(place.world, MPI_COMM_TYPE_SHARED, place.rank, MPI_INFO_NULL, &place.node);
    MPI_Comm_rank(place.node, &place.local);
    MPI_Comm_size(place.node, &place.width);
    MPI_Comm_split(place.world, place.local == 0 ? 0 : MPI_UNDEFINED, place.rank, &place.leaders);
    place.nodes = place.ranks / place.width;
    place.mine = place.rank / place.width;
    int fits = place.rank == place.mine * place.width + place.local && place.nodes * place.width == place.ranks;
    MPI_Allreduce(MPI_IN_PLACE, &fits, 1, MPI_INT, MPI_MIN, place.world);
    if (fits == 0) {
        throw std::runtime_error("every node must have the same number of ranks, next to each other");
    }
    return place;
}

struct Buffers {
    std::size_t each;
    Bytes out, in, node_out, node_in;  // node_*: what all ranks of this node have, at its leader

    Buffers(const Place& place, std::size_t bytes)
        : each(bytes),
          out(bytes * static_cast<std::size_t>(place.ranks)),
          in(out.size()),
          node_out(out.size() * static_cast<std::size_t>(place.width)),
          node_in(node_out.size()) {}
};

int whole(std::size_t bytes) { return static_cast<int>(bytes); }

void send_to_all(const Place& p, const char* from, std::size_t stride, char* mine, std::size_t bytes) {
    if (p.rank != 0) {
        MPI_Recv(mine, whole(bytes), MPI_BYTE, 0, 0, p.world, MPI_STATUS_IGNORE);
        return;
    }
    std::vector<MPI_Request> requests(static_cast<std::size_t>(p.ranks), MPI_REQUEST_NULL);
    for (int to = 1; to < p.ranks; ++to) {
        const auto at = static_cast<std::size_t>(to);
        MPI_Isend(from + at * stride, whole(bytes), MPI_BYTE, to, 0, p.world, &requests[at]);
    }
    if (mine != from) {
        std::memcpy(mine, from, bytes);
    }
    MPI_Waitall(p.ranks, requests.data(), MPI_STATUSES_IGNORE);
}

void broadcast_direct(const Place& p, Buffers& b) { send_to_all(p, b.in.data(), 0, b.in.data(), b.each); }
void broadcast_library(const Place& p, Buffers& b) { MPI_Bcast(b.in.data(), whole(b.each), MPI_BYTE, 0, p.world); }
void broadcast_leaders(const Place& p, Buffers& b) {
    if (p.local == 0) {
        MPI_Bcast(b.in.data(), whole(b.each), MPI_BYTE, 0, p.leaders);
    }
    MPI_Bcast(b.in.data(), whole(b.each), MPI_BYTE, 0, p.node);
}

void broadcast_ring(const Place& p, Buffers& b) {  // as SUMMA spreads a panel
    if (p.rank > 0) {
        MPI_Recv(b.in.data(), whole(b.each), MPI_BYTE, p.rank - 1, 0, p.world, MPI_STATUS_IGNORE);
    }
    if (p.rank + 1 < p.ranks) {
        MPI_Send(b.in.data(), whole(b.each), MPI_BYTE, p.rank + 1, 0, p.world);
    }
}

void scatter_direct(const Place& p, Buffers& b) { send_to_all(p, b.out.data(), b.each, b.in.data(), b.each); }
void scatter_library(const Place& p, Buffers& b) {
    MPI_Scatter(b.out.data(), whole(b.each), MPI_BYTE, b.in.data(), whole(b.each), MPI_BYTE, 0, p.world);
}
void scatter_leaders(const Place& p, Buffers& b) {
    const std::size_t node = b.each * static_cast<std::size_t>(p.width);
    if (p.local == 0) {
        MPI_Scatter(b.out.data(), whole(node), MPI_BYTE, b.node_in.data(), whole(node), MPI_BYTE, 0, p.leaders);
    }
    MPI_Scatter(b.node_in.data(), whole(b.each), MPI_BYTE, b.in.data(), whole(b.each), MPI_BYTE, 0, p.node);
}

void alltoall_direct(const Place& p, Buffers& b) {
    std::vector<MPI_Request> requests(2 * static_cast<std::size_t>(p.ranks), MPI_REQUEST_NULL);
    for (int turn = 1; turn < p.ranks; ++turn) {
        const int to = (p.rank + turn) % p.ranks, from = (p.rank + p.ranks - turn) % p.ranks;
        const auto there = static_cast<std::size_t>(to), here = static_cast<std::size_t>(from);
        MPI_Irecv(&b.in[here * b.each], whole(b.each), MPI_BYTE, from, 0, p.world, &requests[2 * here]);
        MPI_Isend(&b.out[there * b.each], whole(b.each), MPI_BYTE, to, 0, p.world, &requests[2 * there + 1]);
    }
    const auto me = static_cast<std::size_t>(p.rank);
    std::memcpy(&b.in[me * b.each], &b.out[me * b.each], b.each);
    MPI_Waitall(whole(requests.size()), requests.data(), MPI_STATUSES_IGNORE);
}
void alltoall_library(const Place& p, Buffers& b) {
    MPI_Alltoall(b.out.data(), whole(b.each), MPI_BYTE, b.in.data(), whole(b.each), MPI_BYTE, p.world);
}
// Orders pieces that lie by [a][b][c] as [b][a][c].
void reorder(const Bytes& from, Bytes& to, int a, int b, std::size_t piece) {
    for (int i = 0; i < a; ++i) {
        for (int j = 0; j < b; ++j) {
            std::memcpy(&to[static_cast<std::size_t>(j * a + i) * piece],
                        &from[static_cast<std::size_t>(i * b + j) * piece], piece);
        }
    }
}
void alltoall_leaders(const Place& p, Buffers& b) {
    const std::size_t all = b.each * static_cast<std::size_t>(p.ranks),
                      group = b.each * static_cast<std::size_t>(p.width);
    MPI_Gather(b.out.data(), whole(all), MPI_BYTE, b.node_in.data(), whole(all), MPI_BYTE, 0, p.node);
    if (p.local == 0) {  // by sender, node, receiver; then by node, sender, receiver
        reorder(b.node_in, b.node_out, p.width, p.nodes, group);
        const std::size_t message = group * static_cast<std::size_t>(p.width);
        MPI_Alltoall(b.node_out.data(), whole(message), MPI_BYTE, b.node_in.data(), whole(message), MPI_BYTE,
                     p.leaders);
        reorder(b.node_in, b.node_out, p.ranks, p.width, b.each);  // by sender, receiver; then by receiver
    }
    MPI_Scatter(b.node_out.data(), whole(all), MPI_BYTE, b.in.data(), whole(all), MPI_BYTE, 0, p.node);
}

using Way = std::function<void(const Place&, Buffers&)>;
struct Exchange {
    const char* name;
    std::vector<std::pair<const char*, Way>> ways;
};

// What rank `from` has for rank `to`.
char mark(int from, int to) { return static_cast<char>(1 + from * 31 + to * 7); }

void check(const Place& p, Buffers& b, const std::string& name, const Way& way) {
    std::fill(b.in.begin(), b.in.end(), char{0});
    for (int to = 0; to < p.ranks; ++to) {
        std::fill_n(b.out.begin() + static_cast<std::ptrdiff_t>(b.each) * to, b.each, mark(p.rank, to));
    }
    if (name == "broadcast" && p.rank == 0) {
        std::fill_n(b.in.begin(), b.each, mark(0, 0));
    }
    way(p, b);
    const int pieces = name == "alltoall" ? p.ranks : 1;
    for (int from = 0; from < pieces; ++from) {
        const char wanted = mark(from, name == "broadcast" ? 0 : p.rank);
        const auto begin = b.in.begin() + static_cast<std::ptrdiff_t>(b.each) * from;
        if (!std::all_of(begin, begin + static_cast<std::ptrdiff_t>(b.each), [&](char c) { return c == wanted; })) {
            std::fprintf(stderr, "rank %d: %s: wrong bytes of rank %d\n", p.rank, name.c_str(), from);
            MPI_Abort(p.world, 1);
        }
    }
}

// Seconds of the slowest rank, begun together.
double timed(const Place& p, Buffers& b, const Way& way) {
    MPI_Barrier(p.world);
    const double begin = MPI_Wtime();
    way(p, b);
    double took = MPI_Wtime() - begin;
    MPI_Allreduce(MPI_IN_PLACE, &took, 1, MPI_DOUBLE, MPI_MAX, p.world);
    return took;
}

void measure(const Place& p, int rounds, std::size_t bytes, const Exchange& exchange, bool& first) {
    Buffers buffers(p, bytes);
    std::vector<std::vector<double>> seconds(exchange.ways.size());
    for (const auto& [_, way] : exchange.ways) {
        check(p, buffers, exchange.name, way);
        timed(p, buffers, way);
    }
    for (int round = 0; round < rounds; ++round) {  // in turns: what drifts, drifts for all
        for (std::size_t i = 0; i < exchange.ways.size(); ++i) {
            seconds[i].push_back(timed(p, buffers, exchange.ways[i].second));
        }
    }
    for (std::size_t i = 0; p.rank == 0 && i < exchange.ways.size(); ++i) {
        std::printf("%s{\"exchange\": \"%s\", \"way\": \"%s\", \"bytes\": %zu, \"seconds\": [", first ? "" : ",\n",
                    exchange.name, exchange.ways[i].first, bytes);
        first = false;
        for (std::size_t k = 0; k < seconds[i].size(); ++k) {
            std::printf("%s%.3e", k > 0 ? ", " : "", seconds[i][k]);
        }
        std::printf("]}");
    }
}

}  // namespace

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    try {
        const std::vector<Exchange> exchanges = {
            {"broadcast",
             {{"direct", broadcast_direct},
              {"ring", broadcast_ring},
              {"library", broadcast_library},
              {"leaders", broadcast_leaders}}},
            {"scatter", {{"direct", scatter_direct}, {"library", scatter_library}, {"leaders", scatter_leaders}}},
            {"alltoall", {{"direct", alltoall_direct}, {"library", alltoall_library}, {"leaders", alltoall_leaders}}}};
        const Place place = find_place();
        bool first = true;
        if (place.rank == 0) {
            std::printf("{\"ranks\": %d, \"nodes\": %d, \"lines\": [\n", place.ranks, place.nodes);
        }
        for (int i = 2; i < argc; ++i) {
            for (const Exchange& exchange : exchanges) {
                measure(place, std::atoi(argv[1]), std::strtoul(argv[i], nullptr, 10), exchange, first);
            }
        }
        if (place.rank == 0) {
            std::printf("]}\n");
        }
    } catch (const std::exception& error) {
        std::fprintf(stderr, "node_level: %s\n", error.what());
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    MPI_Finalize();
    return 0;
}
