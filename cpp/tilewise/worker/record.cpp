// Gathers numbers as arrays and text as one string a rank; the front makes statistics of them.
#include <algorithm>
#include <fstream>
#include <map>
#include <sys/resource.h>
#include <unistd.h>
#include <utility>

#include "tilewise/base/host.hpp"
#include "tilewise/base/work.hpp"
#include "tilewise/kernel/product/gemm.hpp"
#include "tilewise/worker/constants.hpp"
#include "tilewise/worker/run.hpp"

namespace tilewise::worker {
namespace {

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
    return Json{
        {"event", "record"},
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
        {"exchange", job.variant.exchange},
        {"warnings", outcome.warnings},
        {"losses", outcome.losses},
        {"environment",
         {{"mpi_library", mpi::library_version()},
          {"mpi_standard", std::to_string(major) + "." + std::to_string(minor)},
          {"blas", blas.library},
          {"blas_kernel", blas.kernel},
          {"gemm_kernel", job.command == "multiply"
                              ? kernel::gemm_kernel_name(kernel::kernel_named(job.variant.kernel), dtype_of(job.dtype))
                              : ""},
          {"worker_version", build_version()},
          {"compiler", build_compiler()}}},
        {"oversubscribed", binding.oversubscribed}};
}

}  // namespace tilewise::worker
