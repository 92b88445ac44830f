// The frame around every command: binding, books, the operation, the record.
#include "tilewise/worker/run.hpp"

#include "tilewise/convert/convert.hpp"
#include "tilewise/measure/gemm_rate.hpp"
#include "tilewise/mpi/together.hpp"
#include "tilewise/worker/binding.hpp"
#include "tilewise/worker/events.hpp"
#include "tilewise/worker/fault.hpp"
#include "tilewise/worker/record.hpp"

namespace tilewise::worker {
namespace {

multiply::Outcome run_multiply(Context& context, const Job& job) {
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
    return multiply::multiply(context, a, b, c ? &*c : nullptr, dtype, options_of(job));
}

/// Also the making of a matrix: its input is then a generated one.
multiply::Outcome run_convert(Context& context, const Job& job) {
    if (job.inputs.size() != 1 || !job.output) {
        throw UsageError(job.command + " takes one input and an output");
    }
    const VariantFields& variant = job.variant;
    const io::Region from = region_of(job.inputs[0]), to = region_of(*job.output);
    const auto done = convert::convert(context, from, to,
                                       {.read = variant.read,
                                        .write = variant.write,
                                        .hints = job.hints,
                                        .grid = {variant.grid[0], variant.grid[1]},
                                        .band_bytes = job.band_bytes,
                                        .sync = job.sync,
                                        .read_back = job.read_back});
    multiply::Outcome outcome;
    outcome.working = done.working;
    outcome.changed = done.changed;
    if (done.holds) {
        outcome.verification = multiply::Verification{.method = "read_back", .error = *done.holds ? 0.0 : 1.0};
        outcome.verification->passed = *done.holds;
    }
    return outcome;
}

}  // namespace

void run(const mpi::Communicator& comm, const Job& job) {
    if (job.variant.ranks != comm.size()) {
        throw Error(ErrorKind::launcher, "the job is for " + std::to_string(job.variant.ranks) + " ranks, and " +
                                             std::to_string(comm.size()) + " were started");
    }
    const Binding binding = bind(comm, job.variant.threads, job.bind, job.place);
    const nlohmann::json started{{"event", "started"}, {"ranks", gather_ranks(comm, binding)}};
    Ledger ledger;
    Context context{comm, ledger, job.variant.threads};
    if (comm.rank() == 0) {
        emit(started);
        if (job.progress) {
            context.progress = ProgressMeter{};
        }
    }
    mpi::together(comm, [&] { fail_if_told(job.fault, comm.rank()); });
    comm.barrier();
    ledger.start(Phase::input, !job.trace.empty(), fault_hook(job.fault, comm.rank()));
    multiply::Outcome outcome = job.command == "multiply" ? run_multiply(context, job) : run_convert(context, job);
    {
        // What a rank waits for at the end belongs to the last thing that it did.
        const bool proved_last = outcome.verification && (outcome.verification->method == "serial" || !job.output);
        const Timed timed(ledger, proved_last ? Phase::verify : job.output ? Phase::output : Phase::exchange, "");
        comm.barrier();
    }
    ledger.stop();
    const double peak = job.calibrate ? measure::gemm_rate(context, dtype_of(job.dtype)) : 0;
    if (!job.trace.empty()) {
        write_trace(context, job.trace);
    }
    const nlohmann::json record = gather_record(context, binding, job, outcome, peak);
    if (comm.rank() == 0) {
        emit(record);
    }
}

}  // namespace tilewise::worker
