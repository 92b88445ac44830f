// Tests of what is measured of messages: that they arrive, that sums are sums, and that samples are what they say;
// never how long it took.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <doctest/doctest.h>
#include <limits>
#include <numeric>

#include "tilewise/measure/buffers.hpp"
#include "tilewise/measure/collective.hpp"
#include "tilewise/measure/measure.hpp"
#include "tilewise/measure/ping.hpp"
#include "tilewise/measure/samples.hpp"
#include "tilewise/mpi/together.hpp"
#include "tilewise/mpi/window.hpp"

using namespace tilewise;
using namespace tilewise::measure;

namespace {

constexpr Stop quick{4, 8, 1, 0.5, 0.02};

struct Job {
    mpi::Communicator comm{MPI_COMM_WORLD};
    Ledger ledger;
    Context context{comm, ledger};
    Clock clock = look_at_clock();
    int ranks = comm.size(), me = comm.rank();
};

/// (0, 1), (2, 3), …: as many as there are.
std::vector<std::pair<int, int>> neighbours(int ranks) {
    std::vector<std::pair<int, int>> pairs;
    for (int rank = 0; rank + 1 < ranks; rank += 2) {
        pairs.emplace_back(rank, rank + 1);
    }
    return pairs;
}

Point ping_point(std::string_view name, std::string_view pattern, std::int64_t bytes,
                 std::vector<std::pair<int, int>> pairs) {
    Point point;
    point.kind = "ping";
    point.name = name;
    point.pattern = pattern;
    point.bytes = bytes;
    point.pairs = std::move(pairs);
    return point;
}

Point collective_point(std::string_view name, std::string_view pattern, std::int64_t bytes) {
    return ping_point(name, pattern, bytes, {});
}

/// One series of that name on rank 0, with samples and a figure of each rank; nothing elsewhere; and the same number
/// of samples and of operations everywhere, or the ranks would not have come out of it.
void check_found(const Job& job, const Measurement& found, const Stop& stop, const std::string& name) {
    CHECK(found.skipped.empty());
    REQUIRE(found.series.size() == 1);
    const Series& series = found.series[0];
    CHECK(series.name == name);
    CHECK(found.inner >= 1);
    std::int64_t least = found.inner, most = found.inner;
    MPI_Allreduce(MPI_IN_PLACE, &least, 1, MPI_INT64_T, MPI_MIN, job.comm.get());
    MPI_Allreduce(MPI_IN_PLACE, &most, 1, MPI_INT64_T, MPI_MAX, job.comm.get());
    CHECK(least == most);
    if (job.me > 0) {
        CHECK(series.samples.empty());
        CHECK(series.by_rank.empty());
        return;
    }
    CHECK(series.samples.size() >= 3);
    CHECK(series.samples.size() <= static_cast<std::size_t>(stop.most));
    CHECK(series.by_rank.size() == static_cast<std::size_t>(job.ranks));
    for (const double sample : series.samples) {
        CHECK(std::isfinite(sample));
        CHECK(
            (sample > 0 || (sample == 0 && name == "seconds")));  // a rank that is kept from entering may find all done
    }
    // A sample is the greatest of the ranks', so that their mean is no less than any rank's.
    const double mean =
        std::accumulate(series.samples.begin(), series.samples.end(), 0.0) / static_cast<double>(series.samples.size());
    for (const double one : series.by_rank) {
        CHECK(one <= mean * (1 + 1e-9));
        CHECK(one >= 0);
    }
}

std::byte number(int rank, std::size_t index) {
    return static_cast<std::byte>(rank * 31 + static_cast<int>(index) * 7 + 1);
}

void fill(std::byte* data, std::size_t bytes, int rank) {
    for (std::size_t i = 0; i < bytes; ++i) {
        data[i] = number(rank, i);
    }
}

/// Whether `bytes` at `data` are what `fill` gave `rank`.
bool holds(const std::byte* data, std::size_t bytes, int rank) {
    for (std::size_t i = 0; i < bytes; ++i) {
        if (data[i] != number(rank, i)) {
            return false;
        }
    }
    return true;
}

/// What a call throws, and whether all ranks threw the same.
template <class F> std::string refused(const Job& job, const F& call) {
    std::string text;
    try {
        call();
    } catch (const Error& error) {  // anything else would leave the other ranks waiting
        CHECK(error.kind() == ErrorKind::usage);
        CHECK(error.agreed_by() == job.comm.size());
        text = error.what();
    }
    const std::size_t code = std::hash<std::string>{}(text);
    std::size_t first = code;
    MPI_Bcast(&first, sizeof first, MPI_BYTE, 0, job.comm.get());
    CHECK(code == first);
    return text;
}

}  // namespace

TEST_CASE("measure: messages, puts and gets arrive whole") {
    Job job;
    if (job.ranks < 2) {
        return;
    }
    for (const PingEntry& entry : ping_table) {
        for (const std::size_t bytes : {std::size_t{1}, std::size_t{13}, std::size_t{4096}, std::size_t{300'001}}) {
            CAPTURE(entry.name);
            CAPTURE(entry.pattern);
            CAPTURE(bytes);
            const int partner = job.me ^ 1;
            const bool in_pair = partner < job.ranks;
            PrefaultedBuffer out(bytes), in(bytes);
            fill(out.data(), bytes, job.me);
            Side side{job.comm.get(), partner,    job.me % 2 == 0, static_cast<int>(bytes),
                      MPI_BYTE,       out.data(), in.data(),       {}};
            mpi::Exposed exposed;
            if (entry.one_sided) {
                exposed = mpi::allocate_window(job.comm, bytes);
                std::memset(exposed.data, 0, bytes);
                if (entry.name == "get") {
                    fill(exposed.data, bytes, job.me);
                }
                side.window = exposed.window.get();
                job.comm.barrier();
                MPI_Win_lock_all(0, side.window);
            }
            if (in_pair) {
                meet_peer(side);
                if (!entry.one_sided || side.first) {
                    entry.run(side, 3);
                }
            }
            if (entry.one_sided) {
                MPI_Win_unlock_all(side.window);
                job.comm.barrier();
            }
            if (!in_pair) {
                continue;
            }
            const bool both_ways = entry.pattern == "roundtrip" && !entry.one_sided;
            if (entry.name == "put") {
                CHECK((side.first || holds(exposed.data, bytes, partner)));
            } else if (entry.name == "get") {
                CHECK((!side.first || holds(in.data(), bytes, partner)));
            } else if (both_ways || !side.first) {
                CHECK(holds(in.data(), bytes, partner));
            }
            CHECK(holds(out.data(), bytes, job.me));
        }
    }
}

TEST_CASE("measure: samples of messages, for each way, one pair and several") {
    Job job;
    if (job.ranks < 2) {
        return;
    }
    for (const PingEntry& entry : ping_table) {
        for (const std::int64_t bytes : {1, 65'536}) {
            CAPTURE(entry.name);
            CAPTURE(entry.pattern);
            CAPTURE(bytes);
            for (const auto& pairs : {neighbours(job.ranks), {{job.ranks - 1, 0}}}) {
                const Measurement found =
                    ping(job.context, ping_point(entry.name, entry.pattern, bytes, pairs), quick, job.clock);
                check_found(job, found, quick, std::string(entry.pattern));
                CHECK(found.inner % entry.messages == 0);
                CHECK(entry.messages == (entry.pattern == "stream" ? 64 : 1));
                for (int rank = 0; job.me == 0 && rank < job.ranks; ++rank) {  // the first of each pair has its figure
                    const bool first =
                        std::any_of(pairs.begin(), pairs.end(), [&](const auto& pair) { return pair.first == rank; });
                    CHECK((found.series[0].by_rank[static_cast<std::size_t>(rank)] > 0) == first);
                }
            }
        }
    }
}

TEST_CASE("measure: what cannot be a message or a pair is refused alike on all ranks") {
    Job job;
    const auto with = [&](std::string_view name, std::string_view pattern, std::int64_t bytes,
                          const std::vector<std::pair<int, int>>& pairs) {
        return refused(job, [&] { ping(job.context, ping_point(name, pattern, bytes, pairs), quick, job.clock); });
    };
    const int last = job.ranks - 1;
    CHECK(with("blocking", "roundtrip", 8, {}).find("at least one pair") != std::string::npos);
    CHECK(with("blocking", "roundtrip", 8, {{0, job.ranks}}).find("names rank " + std::to_string(job.ranks)) !=
          std::string::npos);
    CHECK(with("blocking", "roundtrip", 8, {{-1, 0}}).find("names rank -1") != std::string::npos);
    CHECK(with("blocking", "roundtrip", 8, {{last, last}}).find("named twice") != std::string::npos);
    CHECK(with("blocking", "roundtrip", 8, {{0, last}, {last, 0}}).find("named twice") != std::string::npos);
    CHECK(with("shouting", "roundtrip", 8, {{0, last}}).find("'shouting'") != std::string::npos);
    CHECK(with("blocking", "circle", 8, {{0, last}}).find("'circle'") != std::string::npos);
    CHECK(with("blocking", "roundtrip", 0, {{0, last}}).find("0 bytes") != std::string::npos);
}

TEST_CASE("measure: a loop of messages brings what the library's collective brings") {
    Job job;
    const auto ranks = static_cast<std::size_t>(job.ranks);
    for (const CollectiveEntry& entry : collective_table) {
        for (const std::size_t bytes : {std::size_t{8}, std::size_t{24}, std::size_t{40'000}}) {
            CAPTURE(entry.name);
            CAPTURE(bytes);
            PrefaultedBuffer out(bytes * ranks), spare(bytes), by_library(bytes * ranks), by_loop(bytes * ranks);
            if (entry.name == "allreduce") {
                auto* numbers = reinterpret_cast<double*>(out.data());
                for (std::size_t i = 0; i < bytes / 8; ++i) {
                    numbers[i] = static_cast<double>(i + 1) * (job.me + 1);
                }
            } else {
                fill(out.data(), bytes * ranks, job.me);
            }
            Parts parts{&job.comm, static_cast<std::int64_t>(bytes), out.data(), by_library.data(), spare.data()};
            // A second time must find the same: nothing adds up from one to the next. It counts in parts, as it would
            // bytes beyond 2³¹.
            for (const std::int64_t most : {std::int64_t{INT32_MAX}, std::int64_t{0}}) {
                count_parts(parts, entry, most);
                CHECK(parts.count == (most > 0 ? static_cast<int>(bytes) : 1));
                parts.in = by_library.data();
                entry.library(parts);
                parts.in = by_loop.data();
                entry.loop(parts);
            }
            CHECK(std::memcmp(by_library.data(), by_loop.data(), bytes * ranks) == 0);
            // And that it is what it should be, from the numbers themselves.
            if (entry.name == "allreduce") {
                const auto* sums = reinterpret_cast<const double*>(by_loop.data());
                for (std::size_t i = 0; i < bytes / 8; ++i) {
                    CHECK(sums[i] == static_cast<double>(i + 1) * job.ranks * (job.ranks + 1) / 2);
                }
            } else if (entry.name == "bcast") {
                CHECK((job.me == 0 || holds(by_loop.data(), bytes, 0)));
            } else if (entry.name == "scatter") {
                for (std::size_t i = 0; i < bytes; ++i) {
                    REQUIRE(by_loop.data()[i] == number(0, static_cast<std::size_t>(job.me) * bytes + i));
                }
            } else if (entry.name == "gather") {
                for (int rank = 0; job.me == 0 && rank < job.ranks; ++rank) {
                    CHECK(holds(by_loop.data() + static_cast<std::size_t>(rank) * bytes, bytes, rank));
                }
            } else {
                for (std::size_t i = 0; i < bytes * ranks; ++i) {
                    REQUIRE(by_loop.data()[i] ==
                            number(static_cast<int>(i / bytes), static_cast<std::size_t>(job.me) * bytes + i % bytes));
                }
            }
        }
    }
}

TEST_CASE("measure: samples of collectives, by the library and by the loop") {
    Job job;
    for (const CollectiveEntry& entry : collective_table) {
        for (const std::string_view pattern : {"library", "loop"}) {
            for (const std::int64_t bytes : {8, 65'536}) {
                CAPTURE(entry.name);
                CAPTURE(pattern);
                CAPTURE(bytes);
                const Measurement found =
                    collective(job.context, collective_point(entry.name, pattern, bytes), quick, job.clock);
                if (job.ranks == 1) {
                    CHECK(found.skipped.find("one rank") != std::string::npos);
                    CHECK(found.series.empty());
                } else {
                    check_found(job, found, quick, "seconds");
                    CHECK(found.notes.empty());  // all ranks are on one node here
                }
            }
        }
    }
    if (job.ranks > 1) {
        const Measurement odd = collective(job.context, collective_point("allreduce", "loop", 12), quick, job.clock);
        CHECK(odd.skipped.find("12 bytes") != std::string::npos);
        CHECK(odd.series.empty());
    }
}

TEST_CASE("measure: what cannot be a collective is refused alike on all ranks") {
    Job job;
    const auto with = [&](std::string_view name, std::string_view pattern, std::int64_t bytes) {
        return refused(job, [&] { collective(job.context, collective_point(name, pattern, bytes), quick, job.clock); });
    };
    CHECK(with("reduce", "library", 8).find("'reduce'") != std::string::npos);
    CHECK(with("bcast", "tree", 8).find("'tree'") != std::string::npos);
    CHECK(with("bcast", "library", 0).find("0 bytes") != std::string::npos);
}

TEST_CASE("measure: samples end when there are enough, and every rank takes the same number") {
    Job job;
    const auto taken_with = [&](const Stop& stop, const measure::Sample& sample) {
        int taken = 0, warm = 0;
        const auto series = take_samples(job.comm, stop, {"a", "b"}, [&](int n) {
            ++(n < 0 ? warm : taken);
            return sample(n);
        });
        int least = taken, most = taken;
        MPI_Allreduce(MPI_IN_PLACE, &least, 1, MPI_INT, MPI_MIN, job.comm.get());
        MPI_Allreduce(MPI_IN_PLACE, &most, 1, MPI_INT, MPI_MAX, job.comm.get());
        CHECK(least == most);
        CHECK(warm >= std::min(1, stop.warmup));
        CHECK(warm <= stop.warmup);
        REQUIRE(series.size() == 2);
        CHECK(series[0].warmup == warm);
        CHECK(series[1].warmup == warm);
        if (job.me == 0) {
            CHECK(static_cast<int>(series[0].samples.size()) == taken);
            CHECK(static_cast<int>(series[1].samples.size()) == taken);
        }
        return std::pair{taken, series};
    };
    const auto steady = [&](int) { return std::vector{1.0 + job.me, 5.0 - job.me}; };
    const auto [enough, same] = taken_with({10, 200, 2, 0.05, 10}, steady);
    CHECK(enough == 10);
    if (job.me == 0) {  // the greatest of the ranks, each series by itself
        CHECK(same[0].samples.back() == job.ranks);
        CHECK(same[1].samples.back() == 5);
        CHECK(same[0].by_rank.back() == job.ranks);
        CHECK(same[1].by_rank.back() == 6 - job.ranks);
    }
    const auto restless = [](int n) { return std::vector{1.0, n % 2 == 0 ? 1.0 : 9.0}; };
    CHECK(taken_with({10, 40, 2, 0.05, 10}, restless).first == 40);
    CHECK(taken_with({10, 40, 0, 0.05, 10}, restless).first == 40);
    const auto slow = [&](int) {
        for (const double begin = now(); now() - begin < 0.02;) {
        }
        return std::vector{1.0, 1.0};
    };
    CHECK(taken_with({10, 40, 2, 0.05, 0.05}, slow).first == 3);
    CHECK(taken_with({1, 2, 0, 0.05, 0.05}, slow).first == 2);
}

TEST_CASE("measure: a sample has as many operations as its length asks for") {
    Job job;
    const Stop stop{10, 200, 2, 0.05, 100.0};
    // Rank 0 needs a microsecond for each, the last rank four.
    const auto of = [&](double each) {
        return calibrate(job.comm, stop, 1e-3, 5000,
                         [&](std::int64_t count) { return each * static_cast<double>(count); });
    };
    CHECK(std::abs(of(job.me == job.ranks - 1 ? 4e-6 : 1e-6) - 250) <= 1);
    CHECK(of(1e-9) == 5000);
    CHECK(of(0.0) == 5000);
    CHECK(of(0.5) == 1);
    // What is not timed counts too: 5 ms of it around each leave room for two in a tenth of 0.1 s.
    int calls = 0;
    const std::int64_t alone = calibrate(job.comm, {10, 200, 2, 0.05, 0.1}, 1e-3, 5000, [&](std::int64_t count) {
        ++calls;
        for (const double begin = now(); now() - begin < 0.005 * static_cast<double>(count);) {
        }
        return 1e-6 * static_cast<double>(count);
    });
    CHECK(alone <= 2);
    CHECK(calls <= 5);
    // One alone takes more than all the time there is: no second one is begun to see how long it lasts.
    calls = 0;
    CHECK(calibrate(job.comm, {10, 200, 2, 0.05, 0.0}, 1e-3, 5000, [&](std::int64_t) { return ++calls * 1e-9; }) == 1);
    CHECK(calls == 1);
    CHECK(relative_half_width({1, 1, 1, 1, 1}) == std::numeric_limits<double>::infinity());
    CHECK(relative_half_width({2, 1, 1, 1, 1, 1, 1}) <= 0.5);
    CHECK(relative_half_width(std::vector<double>(50, 3.0)) == 0);
}
