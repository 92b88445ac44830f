// Gathers numbers as arrays and text as one string a rank; the front makes statistics of them.
#include "tilewise/worker/record.hpp"

#include <array>
#include <cmath>
#include <fstream>
#include <sys/resource.h>
#include <unistd.h>

#include "tilewise/kernel/gemm.hpp"
#include "tilewise/worker/build.hpp"

namespace tilewise::worker {
namespace {

using mpi::check;
using nlohmann::json;

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

template <class T> json gather_numbers(const mpi::Communicator& comm, T mine) {
    std::vector<T> all(static_cast<std::size_t>(comm.rank() == 0 ? comm.size() : 0));
    check(MPI_Gather(&mine, sizeof mine, MPI_BYTE, all.data(), sizeof mine, MPI_BYTE, 0, comm.get()), "MPI_Gather");
    return all;
}

/** The most memory this program ever held. getrusage's figure outlives exec: a rank started by a big process, a
 *  notebook say, would report that process's memory as its own; so it only serves where /proc is missing. */
std::int64_t peak_rss_bytes() {
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

std::string host_name() {
    std::array<char, 256> name{};
    gethostname(name.data(), name.size() - 1);
    return name.data();
}

json finite_or_null(double value) { return std::isfinite(value) ? json(value) : json(nullptr); }

json verification_of(const Outcome& outcome) {
    if (!outcome.verification) {
        return nullptr;
    }
    const auto& v = *outcome.verification;
    return {{"method", v.method},
            {"passed", v.passed},
            {"share", v.share},
            {"error", finite_or_null(v.error)},
            {"tolerance", v.tolerance}};
}

}  // namespace

json gather_ranks(const mpi::Communicator& comm, const Binding& binding) {
    const json mine{{"rank", comm.rank()},
                    {"host", host_name()},
                    {"pid", getpid()},
                    {"cpus", binding.cpus},
                    {"node", binding.node}};
    json ranks = json::array();
    for (const std::string& text : gather_texts(comm, mine.dump())) {
        ranks.push_back(json::parse(text));
    }
    return ranks;
}

json gather_record(const Context& context, const Binding& binding, const Job& job, const Outcome& outcome,
                   double peak_flops) {
    const Ledger& ledger = context.ledger;
    const mpi::Communicator& comm = context.comm;
    const auto phase = [&](Phase p) { return gather_numbers(comm, ledger.seconds(p)); };
    const auto step = [&](Phase p, Step s) { return gather_numbers(comm, ledger.seconds(p, s)); };
    const auto number = [&](std::int64_t value) { return gather_numbers(comm, value); };
    const Counters& count = ledger.count();

    json seconds{{"input", phase(Phase::input)},
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
                 {"total", gather_numbers(comm, ledger.total())}};
    json bytes{{"read", number(count.read)},
               {"useful", number(count.useful)},
               {"written", number(count.written)},
               {"exchanged", number(count.exchanged)},
               {"copied_in_node", number(count.copied_in_node)}};
    const json messages = number(count.messages), io_calls = number(count.io_calls);
    const json rss = number(peak_rss_bytes()), working = number(outcome.working ? 1 : 0);
    json ranks = gather_ranks(comm, binding);
    if (comm.rank() != 0) {
        return {};
    }
    for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
        ranks[rank]["peak_rss_bytes"] = rss[rank];
        ranks[rank]["working"] = working[rank] != 0;
    }
    json samples = json::array();
    for (const auto& sample : outcome.samples) {
        json all = json::object();
        for (const auto& [name, values] : seconds.items()) {
            all[name] = *std::max_element(values.begin(), values.end());
        }
        const double before = all["compute"].get<double>() + all["exchange"].get<double>();
        all["total"] = all["total"].get<double>() - before + sample.compute + sample.exchange;
        all["compute"] = sample.compute;
        all["exchange"] = sample.exchange;
        samples.push_back(all);
    }
    int major = 0, minor = 0;
    check(MPI_Get_version(&major, &minor), "MPI_Get_version");
    const auto blas = kernel::blas_facts();
    return {
        {"event", "record"},
        {"ranks", ranks},
        {"seconds", seconds},
        {"samples", samples},
        {"bytes", bytes},
        {"messages", messages},
        {"io_calls", io_calls},
        {"flops", outcome.flops},
        {"peak_flops", peak_flops > 0 ? json(peak_flops) : json(nullptr)},
        {"verification", verification_of(outcome)},
        {"result", outcome.result},
        {"warnings", outcome.warnings},
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
