// Tests of the kit of exchanges: every kind moves every sort of set, again and again, and keeps the same books.
#include <cstring>
#include <doctest/doctest.h>

#include "exchange_cases.hpp"
#include "tilewise/base/error.hpp"
#include "tilewise/mpi/exchange/exchange.hpp"
#include "tilewise/mpi/mpi.hpp"

using namespace tilewise;
using namespace tilewise::mpi;

namespace {

constexpr int rounds = 3;

/// Number `index` of what `from` sends to `to` in a round; none is used twice.
double number(int from, int to, int round, std::int64_t index) {
    return from * 1e6 + to * 1e4 + round * 1e3 + static_cast<double>(index);
}

std::int64_t size(int from, int to) { return 1 + 2 * from + 3 * to; }

int turn(const Communicator& comm, int from, int to) { return (to - from + comm.size()) % comm.size(); }

/// Messages from each rank to each other one, without places.
MessageSet to_all_others(const Communicator& comm) {
    MessageSet set;
    for (int peer = 0; peer < comm.size(); ++peer) {
        if (peer != comm.rank()) {
            set.out.push_back({peer, turn(comm, comm.rank(), peer), 1, size(comm.rank(), peer)});
            set.in.push_back({peer, turn(comm, peer, comm.rank()), 1, size(peer, comm.rank())});
        }
    }
    return set;
}

}  // namespace

TEST_CASE("a name is that of a kind, and an operation takes those that it does not leave out") {
    constexpr auto taken = exchange_names_without(ExchangeKind::none, ExchangeKind::shared);
    CHECK(taken.size() + 2 == mechanisms.size());
    for (const Mechanism& mechanism : mechanisms) {
        CHECK(name_of(mechanism.kind) == mechanism.name);
        if (mechanism.kind == ExchangeKind::none || mechanism.kind == ExchangeKind::shared) {
            CHECK_THROWS_AS(exchange_named(mechanism.name, taken), UsageError);
        } else {
            CHECK(exchange_named(mechanism.name, taken) == mechanism.kind);
        }
    }
}

TEST_CASE("a kind that this library does not have is refused, alike on every rank, with what to use instead") {
    const Communicator comm(MPI_COMM_WORLD);
    Ledger ledger;
    for (const Mechanism& mechanism : mechanisms) {
        if (!test::is_in_library(mechanism.kind)) {
            try {
                make_exchange(mechanism.kind, {.comm = comm, .ledger = ledger, .dtype = Dtype::float64});
                FAIL("it was taken");
            } catch (const UsageError& error) {
                CHECK(error.agreed_by() == comm.size());
                CHECK(std::string(error.what()).find(library_version() + "; use ") != std::string::npos);
            }
        }
    }
}

TEST_CASE("every kind moves messages without a place from all to all, in every round what was put there") {
    const Communicator comm(MPI_COMM_WORLD);
    for (const Mechanism& mechanism : mechanisms) {
        if (!test::is_in_library(mechanism.kind)) {
            continue;
        }
        for (const bool all_to_all : {false, true}) {
            CAPTURE(mechanism.name);
            const MessageSet set = to_all_others(comm);
            Ledger ledger;
            ledger.start(Phase::exchange);
            const auto exchange = make_exchange(
                mechanism.kind,
                {.comm = comm, .ledger = ledger, .dtype = Dtype::float64, .sets = {set}, .all_to_all = all_to_all});
            std::int64_t bytes = 0;
            for (int round = 0; round < rounds; ++round) {
                exchange->begin();
                for (std::size_t i = 0; i < set.out.size(); ++i) {
                    for (std::int64_t k = 0; k < set.out[i].size(); ++k) {
                        const double value = number(comm.rank(), set.out[i].peer, round, k);
                        std::memcpy(exchange->place(i) + k * 8, &value, 8);
                    }
                    exchange->ready(i);
                    exchange->progress();
                }
                std::vector<int> came(set.in.size());
                exchange->complete([&](std::size_t i, const std::byte* data) {
                    ++came[i];
                    bytes += set.in[i].size() * 8;
                    for (std::int64_t k = 0; k < set.in[i].size(); ++k) {
                        double value = 0;
                        std::memcpy(&value, data + k * 8, 8);
                        CHECK(value == number(set.in[i].peer, comm.rank(), round, k));
                    }
                });
                CHECK(came == std::vector<int>(set.in.size(), 1));
            }
            const bool shared = mechanism.kind == ExchangeKind::shared;
            CHECK((shared ? ledger.count().copied_in_node : ledger.count().exchanged) == bytes);
            CHECK((shared ? ledger.count().exchanged : ledger.count().copied_in_node) == 0);
            CHECK(ledger.count().messages == (shared ? 0 : rounds * std::ssize(set.in)));
        }
    }
}

TEST_CASE("every kind moves rectangles from where they lie to where they are wanted, two sets in turn") {
    const Communicator comm(MPI_COMM_WORLD);
    if (comm.size() == 1) {
        return;  // it has no neighbours, and Open MPI no window for it over memory that is there
    }
    // Two planes of 4 rows, whose length differs by rank: columns 1 and 2 go to both neighbours' columns 3 to 6.
    const std::int64_t pitch = 8 + comm.rank();
    const int left = (comm.rank() + comm.size() - 1) % comm.size(), right = (comm.rank() + 1) % comm.size();
    const auto bytes = static_cast<std::size_t>(2 * 4 * pitch * 8);
    for (const Mechanism& mechanism : mechanisms) {
        if (!test::is_in_library(mechanism.kind)) {
            continue;
        }
        CAPTURE(mechanism.name);
        Buffer own(bytes);
        Exposed shared;
        if (mechanism.kind == ExchangeKind::shared) {
            shared = allocate_on_one_node(comm, bytes);
        }
        std::byte* memory = shared.data != nullptr ? shared.data : own.data();
        auto* numbers = reinterpret_cast<double*>(memory);
        std::vector<MessageSet> sets(2);
        for (std::size_t set = 0; set < sets.size(); ++set) {
            std::byte* plane = memory + static_cast<std::int64_t>(set) * 4 * pitch * 8;
            sets[set].out = {{left, 0, 4, 2, plane + 8, pitch}, {right, 1, 4, 2, plane + 8, pitch}};
            sets[set].in = {{right, 0, 4, 2, plane + 3 * 8, pitch}, {left, 1, 4, 2, plane + 5 * 8, pitch}};
        }
        Ledger ledger;
        ledger.start(Phase::exchange);
        const auto exchange = make_exchange(mechanism.kind, {.comm = comm,
                                                             .ledger = ledger,
                                                             .dtype = Dtype::float64,
                                                             .sets = sets,
                                                             .memory = {memory, bytes},
                                                             .exposed = shared.data != nullptr ? &shared : nullptr});
        for (int round = 0; round < 2 * rounds; ++round) {
            double* plane = numbers + (round % 2) * 4 * pitch;
            for (std::int64_t row = 0; row < 4; ++row) {
                for (std::int64_t column = 0; column < pitch; ++column) {
                    plane[row * pitch + column] = number(comm.rank(), 0, round, 10 * row + column);
                }
            }
            exchange->start(static_cast<std::size_t>(round % 2));
            exchange->complete();
            for (std::int64_t row = 0; row < 4; ++row) {
                for (std::int64_t column = 0; column < pitch; ++column) {
                    const bool from_right = column == 3 || column == 4, from_left = column == 5 || column == 6;
                    const int from = from_right ? right : from_left ? left : comm.rank();
                    const std::int64_t there = from_right ? column - 2 : from_left ? column - 4 : column;
                    CHECK(plane[row * pitch + column] == number(from, 0, round, 10 * row + there));
                }
            }
        }
    }
}

TEST_CASE("sets that come one by one are sent, or put, from memory that changes hands") {
    const Communicator comm(MPI_COMM_WORLD);
    for (const ExchangeKind kind : {ExchangeKind::synchronous, ExchangeKind::blocking, ExchangeKind::nonblocking,
                                    ExchangeKind::overlap, ExchangeKind::one_sided_lock}) {
        CAPTURE(name_of(kind));
        Ledger ledger;
        ledger.start(Phase::exchange);
        const auto exchange =
            make_exchange(kind, {.comm = comm, .ledger = ledger, .dtype = Dtype::float64, .tags = 2, .largest = 9});
        for (int round = 0; round < 2 * rounds; ++round) {
            std::vector<std::vector<double>> out, in;
            MessageSet set;
            out.reserve(2), in.reserve(2);
            for (const int step : {1, -1}) {  // from a line of ranks, whose ends have one neighbour
                const int peer = comm.rank() + step;
                if (peer >= 0 && peer < comm.size()) {
                    const std::int64_t count = 3 + round;
                    auto& leaving =
                        out.emplace_back(static_cast<std::size_t>(count), number(comm.rank(), peer, round, 0));
                    auto& coming = in.emplace_back(static_cast<std::size_t>(count));
                    set.out.push_back({peer, step > 0 ? 0 : 1, 1, count, reinterpret_cast<std::byte*>(leaving.data())});
                    set.in.push_back({peer, step > 0 ? 1 : 0, 1, count, reinterpret_cast<std::byte*>(coming.data())});
                }
            }
            exchange->start(set);
            exchange->complete();
            for (std::size_t i = 0; i < in.size(); ++i) {
                CHECK(in[i] == std::vector<double>(in[i].size(), number(set.in[i].peer, comm.rank(), round, 0)));
            }
        }
    }
}
