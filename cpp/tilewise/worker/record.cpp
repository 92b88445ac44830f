// Gathers numbers as arrays and text as one string a rank; the front makes statistics of them.
// Orders a node's cores by where they sit, and deals them out by rank.
#include <algorithm>
#include <fstream>
#include <map>
#include <sched.h>
#include <sys/resource.h>
#include <tuple>
#include <unistd.h>
#include <utility>

#include "tilewise/base/host.hpp"
#include "tilewise/base/work.hpp"
#include "tilewise/kernel/product/gemm.hpp"
#include "tilewise/mpi/sum.hpp"
#include "tilewise/worker/constants.hpp"
#include "tilewise/worker/run.hpp"

namespace tilewise::worker {
namespace {

std::vector<int> allowed_cpus() {
    cpu_set_t set;
    CPU_ZERO(&set);
    std::vector<int> cpus;
    if (sched_getaffinity(0, sizeof set, &set) == 0) {
        for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
            if (CPU_ISSET(cpu, &set)) {
                cpus.push_back(cpu);
            }
        }
    }
    return cpus;
}

int topology(int cpu, const char* file) {
    std::ifstream in("/sys/devices/system/cpu/cpu" + std::to_string(cpu) + "/topology/" + file);
    int value = 0;
    in >> value;  // of a list such as "3,67" the first; where there is none, 0
    return value;
}

/// One hardware thread of every core first, its siblings last; then by socket and core, or turn by turn over the
/// sockets.
std::vector<int> in_order(std::vector<int> cpus, const std::string& place) {
    struct Seat {
        bool sibling;
        int socket, core, cpu, turn;
    };
    std::vector<Seat> seats;
    for (const int cpu : cpus) {
        seats.push_back({topology(cpu, "thread_siblings_list") != cpu, topology(cpu, "physical_package_id"),
                         topology(cpu, "core_id"), cpu, 0});
    }
    std::sort(seats.begin(), seats.end(), [](const Seat& x, const Seat& y) {
        return std::tie(x.sibling, x.socket, x.core, x.cpu) < std::tie(y.sibling, y.socket, y.core, y.cpu);
    });
    if (place == "socket") {
        for (std::size_t i = 0; i < seats.size(); ++i) {
            seats[i].turn = static_cast<int>(std::count_if(
                seats.begin(), seats.begin() + static_cast<std::ptrdiff_t>(i),
                [&](const Seat& s) { return s.sibling == seats[i].sibling && s.socket == seats[i].socket; }));
        }
        std::sort(seats.begin(), seats.end(), [](const Seat& x, const Seat& y) {
            return std::tie(x.sibling, x.turn, x.socket, x.cpu) < std::tie(y.sibling, y.turn, y.socket, y.cpu);
        });
    }
    std::vector<int> ordered;
    for (const Seat& seat : seats) {
        ordered.push_back(seat.cpu);
    }
    return ordered;
}

/// Whether all ranks of the node may use exactly the same cores.
bool all_unbound(const mpi::Communicator& node, const std::vector<int>& cpus) {
    cpu_set_t mine;
    CPU_ZERO(&mine);
    for (const int cpu : cpus) {
        CPU_SET(cpu, &mine);
    }
    cpu_set_t common = mine, any = mine;
    mpi::check(MPI_Allreduce(&mine, &common, sizeof mine, MPI_BYTE, MPI_BAND, node.get()), "MPI_Allreduce");
    mpi::check(MPI_Allreduce(&mine, &any, sizeof mine, MPI_BYTE, MPI_BOR, node.get()), "MPI_Allreduce");
    return CPU_EQUAL(&common, &any) != 0;
}

using mpi::check;

/// Of each of these numbers those of all ranks, on rank 0; by one message a rank, however many they are.
template <class T>
std::vector<std::vector<T>> gather_numbers(const mpi::Communicator& comm, const std::vector<T>& mine) {
    const auto ranks = static_cast<std::size_t>(comm.rank() == 0 ? comm.size() : 0);
    const auto bytes = static_cast<int>(mine.size() * sizeof(T));
    std::vector<T> all(ranks * mine.size());
    check(MPI_Gather(mine.data(), bytes, MPI_BYTE, all.data(), bytes, MPI_BYTE, 0, comm.get()), "MPI_Gather");
    std::vector<std::vector<T>> columns(mine.size(), std::vector<T>(ranks));
    for (std::size_t i = 0; i < all.size(); ++i) {
        columns[i % mine.size()][i / mine.size()] = all[i];
    }
    return columns;
}

/** The most memory this program ever held. getrusage's figure outlives exec: a rank started by a big process, a
 *  notebook say, would report that process's memory as its own; so it only serves where /proc is missing. */
std::int64_t peak_rss_bytes() {
    if (is_simulated) {  // the process has the memory of all ranks
        return peak_block_bytes();
    }
    std::ifstream status("/proc/self/status");
    for (std::string line; std::getline(status, line);) {
        if (line.rfind("VmHWM:", 0) == 0) {
            return std::stoll(line.substr(6)) * 1024;
        }
    }
    struct rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    return static_cast<std::int64_t>(usage.ru_maxrss) * 1024;
}

}  // namespace

Binding bind(const mpi::Communicator& comm, int threads, bool wanted, const std::string& place) {
    const mpi::Communicator node = comm.node();
    Binding binding{.cpus = allowed_cpus()};
    binding.node = mpi::of_root(node, comm.rank());
    binding.node_ranks = node.size();

    if (is_simulated) {  // on cores that are not ours
        binding.cpus.clear();
        return binding;
    }
    const bool unbound = all_unbound(node, binding.cpus);
    const auto needed = static_cast<std::size_t>(node.size()) * static_cast<std::size_t>(threads);
    binding.oversubscribed =
        unbound ? needed > binding.cpus.size() : static_cast<std::size_t>(threads) > binding.cpus.size();
    const bool any = mpi::any_of(comm, binding.oversubscribed);
    if (!wanted || !unbound || binding.oversubscribed || node.size() == 1) {
        binding.oversubscribed = any;
        return binding;
    }
    const std::vector<int> ordered = in_order(binding.cpus, place);
    const auto begin = static_cast<std::size_t>(node.rank()) * static_cast<std::size_t>(threads);
    cpu_set_t set;
    CPU_ZERO(&set);
    for (std::size_t i = begin; i < begin + static_cast<std::size_t>(threads); ++i) {
        CPU_SET(ordered[i], &set);
    }
    if (sched_setaffinity(0, sizeof set, &set) == 0) {  // where it is not allowed, the system places the ranks
        binding.cpus = allowed_cpus();
    }
    binding.oversubscribed = any;
    return binding;
}

std::vector<std::string> gather_texts(const mpi::Communicator& comm, const std::string& mine) {
    const auto length = static_cast<int>(mine.size());
    const auto ranks = static_cast<std::size_t>(comm.rank() == 0 ? comm.size() : 0);
    std::vector<int> lengths(ranks), places(ranks);
    check(MPI_Gather(&length, 1, MPI_INT, lengths.data(), 1, MPI_INT, 0, comm.get()), "MPI_Gather");
    int total = 0;
    for (std::size_t rank = 0; rank < ranks; ++rank) {
        places[rank] = total;
        total += lengths[rank];
    }
    std::string all(static_cast<std::size_t>(total), ' ');
    check(
        MPI_Gatherv(mine.data(), length, MPI_CHAR, all.data(), lengths.data(), places.data(), MPI_CHAR, 0, comm.get()),
        "MPI_Gatherv");
    std::vector<std::string> texts;
    for (std::size_t rank = 0; rank < ranks; ++rank) {
        texts.push_back(all.substr(static_cast<std::size_t>(places[rank]), static_cast<std::size_t>(lengths[rank])));
    }
    return texts;
}

Json verification_of(const std::optional<Verification>& verification) {
    if (!verification) {
        return nullptr;
    }
    const Verification& v = *verification;
    return {
        {"method", v.method}, {"passed", v.passed}, {"share", v.share}, {"error", v.error}, {"tolerance", v.tolerance}};
}

std::vector<Json> gather_ranks(const mpi::Communicator& comm, const Binding& binding) {
    const Json mine{{"rank", comm.rank()},
                    {"host", host_name()},
                    {"pid", getpid()},
                    {"cpus", binding.cpus},
                    {"node", binding.node}};
    std::vector<Json> ranks;
    for (const std::string& text : gather_texts(comm, mine.text())) {
        ranks.push_back(Json::written(text));
    }
    return ranks;
}

Json gather_record(const Context& context, const Binding& binding, std::vector<Json> ranks, const Job& job,
                   const Outcome& outcome, double peak_flops) {
    const Ledger& ledger = context.ledger;
    const mpi::Communicator& comm = context.comm;
    const auto phase = [&](Phase p) { return ledger.seconds(p); };
    const auto step = [&](Phase p, Step s) { return ledger.seconds(p, s); };
    const Counters& count = ledger.count();

    const std::vector<std::pair<std::string, double>> times{{"input", phase(Phase::input)},
                                                            {"input_parse", step(Phase::input, Step::convert)},
                                                            {"input_file", step(Phase::input, Step::file)},
                                                            {"input_distribute", step(Phase::input, Step::move)},
                                                            {"compute", phase(Phase::compute)},
                                                            {"exchange", phase(Phase::exchange)},
                                                            {"output", phase(Phase::output)},
                                                            {"output_format", step(Phase::output, Step::convert)},
                                                            {"output_file", step(Phase::output, Step::file)},
                                                            {"output_collect", step(Phase::output, Step::move)},
                                                            {"verify", phase(Phase::verify)},
                                                            {"total", ledger.total()}};
    std::vector<double> mine;
    for (const auto& [name, value] : times) {
        mine.push_back(value);
    }
    const auto seconds_of = gather_numbers(comm, mine);
    const auto counts = gather_numbers<std::int64_t>(
        comm, {count.read, count.useful, count.written, count.exchanged, count.copied_in_node, count.messages,
               count.io_calls, peak_rss_bytes(), outcome.working ? 1 : 0, ledger.moved(Phase::input).read,
               ledger.moved(Phase::output).written});
    const Json bytes{{"read", counts[0]},
                     {"useful", counts[1]},
                     {"written", counts[2]},
                     {"exchanged", counts[3]},
                     {"copied_in_node", counts[4]},
                     {"read_in_input", counts[9]},
                     {"written_in_output", counts[10]}};
    const Json messages = counts[5], io_calls = counts[6];
    const std::vector<std::int64_t>&rss = counts[7], &working = counts[8];
    if (comm.rank() != 0) {
        return {};
    }
    for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
        ranks[rank].add("peak_rss_bytes", rss[rank]);
        ranks[rank].add("working", working[rank] != 0);
    }
    Json seconds = Json::object();
    std::map<std::string, double> longest;
    for (std::size_t i = 0; i < times.size(); ++i) {
        seconds.add(times[i].first, seconds_of[i]);
        longest[times[i].first] = *std::max_element(seconds_of[i].begin(), seconds_of[i].end());
    }
    const double others = longest["total"] - (longest["compute"] + longest["exchange"]);
    std::vector<Json> samples;
    for (const Sample& sample : outcome.samples) {
        longest["compute"] = sample.compute;
        longest["exchange"] = sample.exchange;
        longest["total"] = others + sample.compute + sample.exchange;
        Json& all = samples.emplace_back(Json::object());
        for (const auto& [name, value] : longest) {
            all.add(name, value);
        }
    }
    int major = 0, minor = 0;
    check(MPI_Get_version(&major, &minor), "MPI_Get_version");
    const auto blas = kernel::blas_facts();
    return Json{{"event", "record"},
                {"ranks", ranks},
                {"seconds", seconds},
                {"samples", samples},
                {"bytes", bytes},
                {"messages", messages},
                {"io_calls", io_calls},
                {"flops", outcome.flops},
                {"peak_flops", peak_flops > 0 ? Json(peak_flops) : Json()},
                {"verification", verification_of(outcome.verification)},
                {"result", outcome.result},
                {"slices", outcome.slices},
                {"exchange", job.exchange},
                {"warnings", outcome.warnings},
                {"losses", outcome.losses},
                {"environment",
                 {{"mpi_library", mpi::library_version()},
                  {"mpi_standard", std::to_string(major) + "." + std::to_string(minor)},
                  {"blas", blas.library},
                  {"blas_kernel", blas.kernel},
                  {"gemm_kernel", outcome.gemm_kernel},
                  {"worker_version", build_version()},
                  {"compiler", build_compiler()}}},
                {"oversubscribed", binding.oversubscribed}};
}

void add_resumed(Outcome& outcome, const std::optional<io::Resumed>& resumed) {
    if (!resumed || resumed->started == 0) {
        return;
    }
    outcome.result.add(
        "resumed",
        {{"starts", resumed->started + 1}, {"kept_pieces", resumed->kept}, {"spoilt_pieces", resumed->spoilt}});
    if (resumed->spoilt > 0) {
        outcome.warnings.push_back(std::to_string(resumed->spoilt) + (resumed->spoilt == 1 ? " piece" : " pieces") +
                                   " of the result did not hold what the journal says, and went through the job again");
    }
}

void add_resumed(Outcome& outcome, const std::optional<io::Restored>& restored) {
    if (!restored || restored->started == 0) {
        return;
    }
    outcome.result.add("resumed", {{"starts", restored->started + 1},
                                   {"sweeps", restored->version.value_or(0)},
                                   {"spoilt_checkpoints", restored->spoilt}});
    if (restored->spoilt > 0) {
        outcome.warnings.push_back(
            (restored->spoilt == 1 ? std::string("a checkpoint") : std::string("two checkpoints")) +
            " did not hold what the journal says; the job resumed from " +
            (restored->version ? "sweep " + std::to_string(*restored->version) : std::string("the beginning")));
    }
}

}  // namespace tilewise::worker
