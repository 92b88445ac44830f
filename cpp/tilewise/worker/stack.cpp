// A slice is the job with other offsets. Ranks that work apart send nothing but the word that one of them has failed:
//
//     together   0 0 1 1 2 2 …     all ranks work on one slice, then on the next
//     apart      0 1 2 | 3 4 5     rank 0 does the first half of them, rank 1 the second, each as if it were alone
// Design: docs/design/formats.md
#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tilewise/grid/grid.hpp"
#include "tilewise/mpi/mpi.hpp"
#include "tilewise/mpi/sum.hpp"
#include "tilewise/mpi/together.hpp"
#include "tilewise/worker/run.hpp"

namespace tilewise::worker {
namespace {

using mpi::check;
using Index = std::vector<std::int64_t>;

/// `name` with the numbers of `index` in the place of the stars in its last brackets: "A.npy[*]" is "A.npy[17]".
std::string slice_name(std::string name, const Index& index) {
    std::size_t at = name.rfind('[');
    for (const std::int64_t number : index) {
        at = at == std::string::npos ? at : name.find('*', at);
        if (at != std::string::npos) {
            name.replace(at, 1, std::to_string(number));
        }
    }
    return name;
}

/// Moves `region` to its slice; one without steps is the same for every slice.
void move_to(io::Region& region, const Index& index) {
    if (region.steps.empty()) {
        return;
    }
    for (std::size_t axis = 0; axis < index.size(); ++axis) {
        region.offset += index[axis] * region.steps[axis];
    }
    region.steps.clear();
    region.name = slice_name(std::move(region.name), index);
}

template <class Change> void for_each_region(Job& job, const Change& change) {
    std::for_each(job.inputs.begin(), job.inputs.end(), change);
    if (job.output) {
        change(*job.output);
    }
    if (job.parts) {
        change(job.parts->s);
        for (auto* region : {&job.parts->u, &job.parts->vt, &job.parts->us}) {
            if (*region) {
                change(**region);
            }
        }
    }
}

void require_sound(const Job& job) {
    for (const std::int64_t extent : job.stack->extents) {
        if (extent < 0) {
            throw UsageError("a stack has a negative extent");
        }
    }
    Job copy = job;
    for_each_region(copy, [&](const io::Region& region) {
        if (!region.steps.empty() && region.steps.size() != job.stack->extents.size()) {
            throw UsageError(region.name + ": a stack has a step for each of its axes");
        }
        std::int64_t first = region.offset;
        for (std::size_t axis = 0; axis < region.steps.size(); ++axis) {
            const std::int64_t steps = std::max<std::int64_t>(job.stack->extents[axis] - 1, 0);
            first += std::min<std::int64_t>(0, region.steps[axis] * steps);
        }
        if (first < 0) {
            throw UsageError(region.name + ": negative size or offset");
        }
    });
}

std::int64_t count_of(const Stack& stack) {
    std::int64_t count = 1;
    for (const std::int64_t extent : stack.extents) {
        count *= extent;
    }
    return count;
}

/// `error`, which names the slice where it did not do so by itself.
Error naming_slice(const Error& error, const Job& slice, int rank) {
    const std::string& name = slice.inputs.at(0).name;
    const std::string what = error.what();
    const bool named = std::any_of(slice.inputs.begin(), slice.inputs.end(),
                                   [&](const io::Region& input) { return what.find(input.name) != std::string::npos; });
    return {error.kind(), named ? what : name + ": " + what, rank, error.error_number(), error.advice()};
}

/// Adds what one more slice says. What would be measured afterwards is not: it keeps the slice in memory.
void add(Outcome& all, Outcome one) {
    all.flops += one.flops;
    all.working = all.working || one.working;
    all.samples.resize(std::max(all.samples.size(), one.samples.size()));
    for (std::size_t i = 0; i < one.samples.size(); ++i) {
        all.samples[i].compute += one.samples[i].compute;
        all.samples[i].exchange += one.samples[i].exchange;
        all.samples[i].both += one.samples[i].both;
    }
    all.gemm_kernel = one.gemm_kernel;
    all.verification = one.verification;
    all.slices.push_back(
        Json{{"result", one.result}, {"verification", verification_of(one.verification)}, {"warnings", one.warnings}});
}

/// Ranks that work apart tell each other of a failure, so that nobody goes on for nothing.
class Alarm {
public:
    explicit Alarm(const mpi::Communicator& comm) : comm_(comm) {}

    bool heard() const {
        int there = 0;
        check(MPI_Iprobe(MPI_ANY_SOURCE, tag, comm_.get(), &there, MPI_STATUS_IGNORE), "MPI_Iprobe");
        return there != 0;
    }
    void raise() {
        for (int rank = 0; rank < comm_.size(); ++rank) {
            if (rank != comm_.rank()) {
                check(MPI_Isend(nullptr, 0, MPI_BYTE, rank, tag, comm_.get(), &sent_.emplace_back()), "MPI_Isend");
            }
        }
    }
    /// Takes in what all others have sent, whether or not it was heard. @note Collective.
    void end(bool raised) {
        const int mine = raised ? 1 : 0, all = mpi::sum_of(comm_, mine);
        for (int i = mine; i < all; ++i) {
            check(MPI_Recv(nullptr, 0, MPI_BYTE, MPI_ANY_SOURCE, tag, comm_.get(), MPI_STATUS_IGNORE), "MPI_Recv");
        }
        check(MPI_Waitall(static_cast<int>(sent_.size()), sent_.data(), MPI_STATUSES_IGNORE), "MPI_Waitall");
    }

private:
    static constexpr int tag = 1;
    mpi::Communicator comm_;
    std::vector<MPI_Request> sent_;
};

/// Rank 0 gets what all ranks say of their slices, whose sequence is that of the ranks. @note Collective.
void gather(const mpi::Communicator& comm, Outcome& outcome) {
    std::vector<Json> slices;
    for (const std::string& text : gather_texts(comm, Json(outcome.slices).text())) {
        if (text.size() > 2) {  // and not []
            slices.push_back(Json::written(text.substr(1, text.size() - 2)));
        }
    }
    outcome.slices = std::move(slices);
    outcome.samples.resize(static_cast<std::size_t>(mpi::most_of(comm, static_cast<int>(outcome.samples.size()))));
    for (Sample& sample : outcome.samples) {
        std::array<double, 3> seconds{sample.compute, sample.exchange, sample.both};
        check(MPI_Allreduce(MPI_IN_PLACE, seconds.data(), 3, MPI_DOUBLE, MPI_MAX, comm.get()), "MPI_Allreduce");
        sample = {seconds[0], seconds[1], seconds[2]};
    }
    outcome.flops = mpi::sum_of(comm, outcome.flops);
}

/// The slices of `mine`, on the ranks of `context`. `goes_on` is asked before each.
template <class GoesOn>
Outcome run_slices(Context& context, const Job& job, Operation operation, grid::Range mine, const GoesOn& goes_on) {
    Outcome all;
    all.working = false;
    std::int64_t number = mine.begin;
    Context one{context.comm, context.ledger, context.threads, {}};
    if (context.progress) {
        one.progress = [&](Phase phase, double done) {
            context.progress(phase,
                             (static_cast<double>(number - mine.begin) + done) / static_cast<double>(mine.size()));
        };
    }
    for (; number < mine.end && goes_on(); ++number) {
        const Job slice = slice_of(job, number);
        try {
            add(all, operation(one, slice));
        } catch (...) {
            const Error error = error_in_flight();
            if (context.comm.size() > 1 && error.agreed_by() < context.comm.size()) {
                throw;
            }
            mpi::throw_agreed(context.comm, naming_slice(error, slice, context.comm.size() > 1 ? error.rank() : -1));
        }
    }
    return all;
}

Outcome run_apart(Context& context, const Job& job, Operation operation, std::int64_t count) {
    const mpi::Communicator& comm = context.comm;
    Context alone{comm.split(comm.rank(), 0), context.ledger, context.threads, context.progress};
    Alarm alarm(comm);
    std::optional<Error> failure;
    Outcome outcome;
    try {
        const grid::Range mine = grid::Partition(count, comm.size())[comm.rank()];
        outcome = run_slices(alone, job, operation, mine, [&] { return !alarm.heard(); });
    } catch (...) {
        failure = error_in_flight();
        alarm.raise();
    }
    const Timed timed(context.ledger, Phase::exchange, "");  // others have more to do
    alarm.end(failure.has_value());
    mpi::agree(comm, failure);
    gather(comm, outcome);
    return outcome;
}

}  // namespace

Job slice_of(const Job& stack, std::int64_t number) {
    Index index(stack.stack->extents.size());
    for (std::size_t axis = index.size(); axis-- > 0;) {
        const std::int64_t extent = stack.stack->extents[axis];
        index[axis] = number % extent;
        number /= extent;
    }
    Job slice = stack;
    slice.stack.reset();
    for_each_region(slice, [&](io::Region& region) { move_to(region, index); });
    return slice;
}

Outcome run_stack(Context& context, const Job& job, Operation operation) {
    mpi::together(context.comm, [&] { require_sound(job); });
    const std::int64_t count = count_of(*job.stack);
    if (job.stack->apart && context.comm.size() > 1) {
        return run_apart(context, job, operation, count);
    }
    return run_slices(context, job, operation, {0, count}, [] { return true; });
}

}  // namespace tilewise::worker
