// The frame around every command: binding, books, the operation, the record.
#include "tilewise/worker/run.hpp"

#include <cmath>
#include <memory>
#include <utility>

#include "tilewise/convert/convert.hpp"
#include "tilewise/measure/gemm_rate.hpp"
#include "tilewise/mpi/together.hpp"
#include "tilewise/multiply/multiply.hpp"
#include "tilewise/transpose/transpose.hpp"
#include "tilewise/worker/binding.hpp"
#include "tilewise/worker/events.hpp"
#include "tilewise/worker/fault.hpp"
#include "tilewise/worker/last_words.hpp"
#include "tilewise/worker/record.hpp"
#include "tilewise/worker/run_measure.hpp"
#include "tilewise/worker/run_stencil.hpp"
#include "tilewise/worker/run_svd.hpp"
#include "tilewise/worker/segments.hpp"
#include "tilewise/worker/trace.hpp"

namespace tilewise::worker {
namespace {

Outcome run_multiply(Context& context, const Job& job) {
    if (job.inputs.size() != 2) {
        throw UsageError("multiply takes two inputs");
    }
    const io::Region a = region_of(job.inputs[0]), b = region_of(job.inputs[1]);
    std::optional<io::Region> c;
    const Dtype dtype = dtype_of(job.dtype);
    if (job.output) {
        c = region_of(*job.output);
        if (c->dtype != dtype || c->rows != a.wanted_rows() || c->columns != b.wanted_columns()) {
            throw UsageError(c->name + ": the product is written as " + std::string(name_of(dtype)));
        }
    }
    const auto done = multiply::multiply(context, a, b, c ? &*c : nullptr, dtype, options_of(job));
    std::int64_t most = 0;
    mpi::check(MPI_Reduce(&done.ideal_exchanged, &most, 1, MPI_INT64_T, MPI_MAX, 0, context.comm.get()), "MPI_Reduce");
    Outcome outcome;
    outcome.flops = done.flops;
    outcome.working = done.working;
    outcome.verification = done.verification;
    outcome.samples = done.samples;
    outcome.result = {{"exchanged_ideal_max_rank", most}};
    if (done.verification && done.verification->share < 1) {
        const double all = static_cast<double>(a.wanted_rows()) * static_cast<double>(b.wanted_columns());
        const auto unchecked = std::llround((1 - done.verification->share) * all);
        outcome.warnings.push_back(std::to_string(unchecked) + " of " + std::to_string(std::llround(all)) +
                                   " numbers of the result could not be verified: rows or columns with NaN or "
                                   "infinity, or what may be beyond the type's range");
    }
    return outcome;
}

/// Also the making of a matrix: its input is then a generated one.
Outcome run_convert(Context& context, const Job& job) {
    const auto [from, to] = one_to_one(job);
    const VariantFields& variant = job.variant;
    const auto done = convert::convert(context, from, to,
                                       {.read = variant.read,
                                        .write = variant.write,
                                        .hints = job.hints,
                                        .grid = {variant.grid[0], variant.grid[1]},
                                        .band_bytes = job.band_bytes,
                                        .sync = job.sync,
                                        .read_back = job.read_back});
    Outcome outcome;
    outcome.working = done.working;
    if (done.holds) {
        outcome.verification =
            Verification{.method = "read_back", .passed = *done.holds, .error = *done.holds ? 0.0 : 1.0};
    }
    outcome.result = {{"changed_numbers", done.changed}};
    if (done.changed > 0) {
        outcome.warnings.push_back(std::to_string(done.changed) + (done.changed == 1 ? " number is" : " numbers are") +
                                   " beyond the output's type: changed to the nearest that it holds, NaN to 0");
    }
    return outcome;
}

Outcome run_transpose(Context& context, const Job& job) {
    const auto [from, to] = one_to_one(job);
    const auto done = transpose::transpose(context, from, to, transpose_options_of(job));
    Outcome outcome;
    outcome.working = done.working;
    outcome.verification = done.verification;
    outcome.samples = done.samples;
    outcome.result = {{"turned", done.turned}};
    return outcome;
}

Outcome run_command(Context& context, const Job& job) {
    if (job.command == "multiply") {
        return run_multiply(context, job);
    }
    if (job.command == "stencil") {
        return run_stencil(context, job);
    }
    if (job.command == "svd") {
        return run_svd(context, job);
    }
    if (job.command == "measure") {
        return run_measure(context, job);
    }
    return job.command == "transpose" ? run_transpose(context, job) : run_convert(context, job);
}

}  // namespace

void run(const mpi::Communicator& comm, const Job& job) {
    if (job.variant.ranks != comm.size()) {
        throw Error(ErrorKind::launcher, "the job is for " + std::to_string(job.variant.ranks) + " ranks, and " +
                                             std::to_string(comm.size()) + " were started");
    }
    const Binding binding = bind(comm, job.variant.threads, job.bind, job.place);
    if (binding.node == comm.rank()) {
        take_names_from_segments();  // `bind` has heard of every rank
    }
    const nlohmann::json started{{"event", "started"}, {"ranks", gather_ranks(comm, binding)}};
    Ledger ledger;
    Context context{comm, ledger, job.variant.threads};
    Ledger::Hook on_enter = fault_hook(job.fault, comm.rank());
    if (comm.rank() == 0) {
        emit(started);
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
    mpi::together(comm, [&] { fail_if_told(job.fault, comm.rank()); });
    comm.barrier();
    const PhaseTold told(ledger);
    ledger.start(Phase::input, !job.trace.empty(), std::move(on_enter));
    const Tracing tracing(!job.trace.empty(), comm, ledger);
    Outcome outcome = run_command(context, job);
    {
        // What a rank waits for at the end belongs to the last thing that it did.
        const bool proved_last = outcome.verification && (outcome.verification->method == "serial" || !job.output ||
                                                          job.command == "transpose" || job.command == "stencil");
        const bool writes = job.output || job.svd;
        const Timed timed(ledger, proved_last ? Phase::verify : writes ? Phase::output : Phase::exchange, "");
        comm.barrier();
    }
    ledger.stop();
    message_trace().stop();
    if (outcome.afterwards) {
        std::exchange(outcome.afterwards, {})(outcome);
    }
    const double peak = job.calibrate ? measure::gemm_rate(context, dtype_of(job.dtype)) : 0;
    if (!job.trace.empty()) {
        write_trace(context, message_trace(), job.command, job.trace);
    }
    const nlohmann::json record = gather_record(context, binding, job, outcome, peak);
    if (comm.rank() == 0) {
        emit(record);
    }
}

}  // namespace tilewise::worker
