// The frame around every command: binding, books, the operation, the record.
#include "tilewise/worker/run.hpp"

#include "tilewise/base/buffer.hpp"
#include "tilewise/io/transfer.hpp"
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
        if (c->dtype != dtype || c->swap_bytes || c->column_major || c->rows != a.wanted_rows() ||
            c->columns != b.wanted_columns()) {
            throw UsageError(c->name + ": the product is written as " + std::string(name_of(dtype)) +
                             ", row by row, in this machine's byte order");
        }
    }
    return multiply::multiply(context, a, b, c ? &*c : nullptr, dtype, options_of(job));
}

/// Every rank makes a range of rows, and writes it.
multiply::Outcome run_generate(Context& context, const Job& job) {
    if (job.inputs.size() != 1 || !job.output) {
        throw UsageError("generate takes one generated input and an output");
    }
    const io::Region made = region_of(job.inputs[0]), out = region_of(*job.output);
    const grid::Partition rows(made.rows, context.comm.size());
    const auto mine = [&](int rank) { return grid::Block{rows[rank], {0, made.columns}}; };
    Buffer block;
    mpi::together(context.comm, [&] {
        block = Buffer(static_cast<std::size_t>(mine(context.comm.rank()).size()) * size_of(made.dtype));
    });
    {
        const Timed timed(context.ledger, Phase::compute, "make");
        io::load(context, *io::strategy_named("positioned", {}), made, made.dtype, mine, block.data());
    }
    const Timed timed(context.ledger, Phase::output, "output");
    io::store(context, *io::strategy_named(job.variant.write, job.hints), out, mine, block.data(), job.sync);
    multiply::Outcome outcome;
    outcome.working = mine(context.comm.rank()).size() > 0;
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
    multiply::Outcome outcome = job.command == "generate" ? run_generate(context, job) : run_multiply(context, job);
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
