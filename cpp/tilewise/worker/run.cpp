// The frame around every command: binding, books, the operation, the record.
#include "tilewise/worker/run.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <sstream>
#include <utility>

#include "tilewise/base/names.hpp"
#include "tilewise/base/work.hpp"
#include "tilewise/io/text.hpp"
#include "tilewise/kernel/isa/backend.hpp"
#include "tilewise/measure/ceilings.hpp"
#include "tilewise/mpi/sum.hpp"
#include "tilewise/mpi/together.hpp"
#include "tilewise/multiply/multiply.hpp"
#include "tilewise/transpose/transpose.hpp"
#include "tilewise/worker/crash_report.hpp"
#include "tilewise/worker/events.hpp"
#include "tilewise/worker/fault.hpp"
#include "tilewise/worker/message_trace.hpp"
#include "tilewise/worker/shm_cleanup.hpp"

namespace tilewise::worker {
namespace {

std::string share(std::int64_t count, std::int64_t rows, std::int64_t columns, const std::string& of) {
    return std::to_string(count) + " of " + std::to_string(rows * columns) + " numbers of " + of;
}
std::string_view be(std::int64_t count) { return count == 1 ? "is " : "are "; }

/// Where the numbers of a product that are not finite come from.
std::string spread_of(const multiply::NotFinite& odd, const io::Region& a, const io::Region& b, Dtype dtype) {
    const std::string c = share(odd.c, a.logical_rows(), b.logical_columns(), "the result");
    const std::int64_t of_b = a.name == b.name ? 0 : odd.b;
    std::ostringstream text;
    if (odd.a + of_b > 0) {
        text << (odd.a > 0 ? share(odd.a, a.rows, a.columns, a.name) : "") << (odd.a > 0 && of_b > 0 ? " and " : "")
             << (of_b > 0 ? share(of_b, b.rows, b.columns, b.name) : "") << ' ' << be(odd.a + of_b)
             << "NaN or infinite, and so " << be(odd.c) << c;
    } else {
        const bool narrow = dtype == Dtype::float32 || dtype == Dtype::complex64;
        text << c << ' ' << be(odd.c) << "NaN or infinite, but none of the inputs: sums are beyond " << name_of(dtype)
             << "; scale an input down" << (narrow ? ", or convert it to a wider type" : "");
    }
    return text.str();
}

Outcome run_multiply(Context& context, const Job& job) {
    multiply::Options options;
    mpi::together(context.comm, [&] {
        if (job.inputs.size() != 2) {
            throw UsageError("multiply takes two inputs");
        }
        options = options_of<multiply::Options>(job);
        if (const auto& c = job.output; c && (c->dtype != job.dtype || c->rows != job.inputs[0].logical_rows() ||
                                              c->columns != job.inputs[1].logical_columns())) {
            throw UsageError(c->name + ": the product is written as " + std::string(name_of(job.dtype)));
        }
    });
    const io::Region &a = job.inputs[0], &b = job.inputs[1];
    const Dtype dtype = job.dtype;
    const auto done = multiply::multiply(context, a, b, job.output ? &*job.output : nullptr, dtype, options);
    std::int64_t most = 0;
    mpi::check(MPI_Reduce(&done.ideal_exchanged, &most, 1, MPI_INT64_T, MPI_MAX, 0, context.comm.get()), "MPI_Reduce");
    Outcome outcome{done};
    outcome.gemm_kernel = kernel::gemm_kernel_name(options.kernel, dtype);
    const multiply::NotFinite& odd = done.not_finite;
    outcome.result = {{"exchanged_ideal_max_rank", most},
                      {"symmetric", options.symmetric},
                      {"stage", std::array{options.stage.m, options.stage.n, options.stage.k}},
                      {"non_finite", odd.c},
                      {"input_non_finite", std::array{odd.a, odd.b}}};
    if (odd.c > 0) {
        outcome.warnings.push_back(spread_of(odd, a, b, dtype));
    }
    add_resumed(outcome, done.resumed);
    if (done.halving.levels > 0 || options.kernel == kernel::Kernel::strassen) {
        outcome.result.add(
            "strassen",
            {{"levels", done.halving.levels}, {"bound", done.halving.bound(dtype)}, {"plain_flops", done.plain_flops}});
    }
    if (done.verification && done.verification->share < 1) {
        const double all = static_cast<double>(a.logical_rows()) * static_cast<double>(b.logical_columns());
        const auto unchecked = std::llround((1 - done.verification->share) * all);
        outcome.warnings.push_back(std::to_string(unchecked) + " of " + std::to_string(std::llround(all)) +
                                   " numbers of the result could not be verified: rows or columns with NaN or "
                                   "infinity, or results that may exceed the range of the type");
    }
    return outcome;
}

/// Also the making of a matrix: its input is then a generated one.
Outcome run_convert(Context& context, const Job& job) {
    OneToOne files;
    convert::Options options;
    mpi::together(context.comm, [&] {
        files = one_to_one(job);
        options = options_of<convert::Options>(job);
    });
    const auto done = convert::convert(context, files.from, files.to, options);
    Outcome outcome{done};
    outcome.result = {{"changed_numbers", done.changed}};
    if (options.scale) {
        outcome.result.add("scale", *options.scale);
    }
    if (done.changed > 0) {
        outcome.warnings.push_back(std::to_string(done.changed) + (done.changed == 1 ? " number is" : " numbers are") +
                                   " beyond the output's type: changed to the nearest value it holds, NaN to 0");
    }
    return outcome;
}

Outcome run_norm(Context& context, const Job& job) {
    norm::Options options;
    mpi::together(context.comm, [&] {
        if (job.inputs.size() != 1 || job.output) {
            throw UsageError("norm takes one input, and has no output");
        }
        options = options_of<norm::Options>(job);
    });
    const io::Region& a = job.inputs[0];
    const norm::Norms done = norm::norms(context, a, options);
    Outcome outcome{done};
    outcome.result = {{"frobenius", done.frobenius}, {"one", done.one},
                      {"infinity", done.infinity},   {"max", done.max},
                      {"nan_numbers", done.nans},    {"infinite_numbers", done.infinities}};
    if (const std::int64_t odd = done.nans + done.infinities; odd > 0) {
        outcome.warnings.push_back(share(odd, a.rows, a.columns, a.name) + " " + std::string(be(odd)) +
                                   "NaN or infinite, and so are its norms");
    }
    return outcome;
}

Outcome run_transpose(Context& context, const Job& job) {
    OneToOne files;
    transpose::Options options;
    mpi::together(context.comm, [&] {
        files = one_to_one(job, true);
        options = options_of<transpose::Options>(job);
    });
    const auto done = transpose::transpose(context, files.from, files.to, options);
    Outcome outcome{done};
    outcome.result = {{"turned", done.transposed}};
    add_resumed(outcome, done.resumed);
    return outcome;
}

struct Command {
    std::string_view name;
    Operation run;
    bool reads_last = false;  ///< a proof that there is reads the files, behind all that was written
};
constexpr std::array commands{Command{"multiply", run_multiply}, Command{"transpose", run_transpose, true},
                              Command{"svd", run_svd},           Command{"stencil", run_stencil, true},
                              Command{"convert", run_convert},   Command{"generate", run_convert},
                              Command{"norm", run_norm},         Command{"measure", run_measure}};

/// What was lost of numbers in texts, of each input that has any. @note Collective.
std::vector<Json> losses_of(Context& context, const Job& job) {
    const auto is_text = [](const io::Region& input) { return input.text.has_value(); };
    if (std::none_of(job.inputs.begin(), job.inputs.end(), is_text)) {
        return {};
    }
    const bool any = mpi::any_of(context.comm, context.ledger.met_loss());
    std::vector<Json> losses;
    for (std::size_t input = 0; any && input < job.inputs.size(); ++input) {
        const io::Region& region = job.inputs[input];
        if (!region.text || is_integer(region.dtype)) {  // integers are exact
            continue;
        }
        const io::TextLosses found = io::count_losses(context, region);
        const auto told = [&](const char* kind, const io::TextLoss& loss) {
            if (loss.count > 0) {
                losses.push_back(Json{{"input", input},
                                      {"kind", kind},
                                      {"count", loss.count},
                                      {"line", loss.line},
                                      {"column", loss.column}});
            }
        };
        told("rounded", found.rounded);
        told("overflow", found.overflow);
    }
    return losses;
}

}  // namespace

void run(const mpi::Communicator& comm, const Job& asked, const std::vector<int>& lost) {
    mpi::together(comm, [&] {
        if (asked.ranks != comm.size()) {
            throw LauncherError("the job is for " + std::to_string(asked.ranks) + " ranks, and " +
                                std::to_string(comm.size()) + " were started");
        }
    });
    const Binding binding = bind(comm, asked.threads, asked.bind, asked.place);
    Job job = asked;  // as it is done where the ranks are: only now does anybody know whether they share a node
    if (binding.node_ranks < comm.size() && !job.between_nodes.empty()) {
        job.exchange = job.between_nodes;
    }
    if (binding.node == comm.rank()) {
        take_names_from_segments();  // `bind` has heard of every rank
    }
    const std::vector<Json> ranks = gather_ranks(comm, binding);
    Ledger ledger;
    Context context{comm, ledger, job.threads};
    Ledger::Hook on_enter = fault_hook(job.fault, comm.rank());
    if (comm.rank() == 0) {
        emit({{"event", "started"}, {"ranks", ranks}});
        if (job.progress) {
            const auto meter = std::make_shared<ProgressMeter>();
            context.progress = [meter](Phase phase, double done) { (*meter)(phase, done); };
            on_enter = [meter, fault = std::move(on_enter)](Phase phase) {
                meter->enter(phase);
                if (fault) {
                    fault(phase);
                }
            };
        }
    }
    mpi::together(comm, [&] {
        fail_if_told(job.fault, comm.rank());
        kernel::backend();                              // may be forced to one that this host lacks
        if (job.site && binding.node == comm.rank()) {  // one rank a node looks for all
            io::require_site(*job.site, comm.rank() == 0, binding.node_ranks);
        }
    });
    comm.barrier();
    const PhaseTold told(ledger);
    ledger.start(Phase::input, !job.trace.empty(), std::move(on_enter));
    const Tracing tracing(!job.trace.empty(), comm, ledger);
    const Command* command = nullptr;
    mpi::together(comm, [&] { command = &commands.at(index_of(commands, job.command, "command")); });
    Outcome outcome = job.stack ? run_stack(context, job, command->run) : command->run(context, job);
    if (!lost.empty()) {
        outcome.result.add(
            "survived",
            {{"lost_ranks", lost}, {"ranks", comm.size()}, {"grid", std::array{job.grid.rows, job.grid.columns}}});
        std::string who = lost.size() == 1 ? "rank" : "ranks";
        for (const int rank : lost) {
            who += ' ' + std::to_string(rank);
        }
        outcome.warnings.push_back(who + " died, and the others went on; sizes and times are those of the last start");
    }
    outcome.losses = losses_of(context, job);
    {
        // What a rank waits for at the end belongs to the last thing that it did.
        const bool proved_last =
            outcome.verification && (outcome.verification->method == "serial" || !job.output || command->reads_last);
        const bool writes = job.output || job.parts;
        const Phase alone = comm.size() > 1 ? Phase::exchange : Phase::compute;  // one rank exchanges nothing
        const Timed timed(ledger, proved_last ? Phase::verify : writes ? Phase::output : alone, "");
        comm.barrier();
    }
    ledger.stop();
    message_trace().stop();
    if (outcome.afterwards) {
        std::exchange(outcome.afterwards, {})(outcome);
    }
    // Rank 0 knows: where it computes alone, the others have counted nothing.
    const bool computed = !is_simulated && mpi::of_root(comm, outcome.flops) > 0;
    const double peak = computed ? measure::peak(context, job.dtype) : 0;
    if (!job.trace.empty()) {
        write_trace(context, message_trace(), job.command, job.trace);
    }
    const Json record = gather_record(context, binding, ranks, job, outcome, peak);
    if (comm.rank() == 0) {
        emit(record);
    }
}

}  // namespace tilewise::worker
