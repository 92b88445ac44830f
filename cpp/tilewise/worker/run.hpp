// One job on all ranks, from binding them to cores to the record of what they did; commands that take more than some
// lines have files of their own.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "tilewise/base/outcome.hpp"
#include "tilewise/io/journal.hpp"
#include "tilewise/mpi/communicator.hpp"
#include "tilewise/mpi/context.hpp"
#include "tilewise/worker/events.hpp"
#include "tilewise/worker/job.hpp"

namespace tilewise::worker {

/// What every command says when it is done, whatever it did: what the record is made of beside the books.
struct Outcome : tilewise::Outcome {
    std::string gemm_kernel = {};   ///< of a product
    Json result = Json::object();   ///< what the command itself has to say; rank 0's counts
    std::vector<Json> losses = {};  ///< of numbers in texts, each with its input; the same on all ranks
    std::vector<Json> slices = {};  ///< of a stack: result, verification and warnings of each; rank 0's count
    /// What is measured once the books are closed; may add to `result`. Collective.
    std::function<void(Outcome& outcome)> afterwards = {};
};

/// Does `asked`; ranks `lost` have died before. Throws the agreed Error on every rank. @note Collective.
void run(const mpi::Communicator& comm, const Job& asked, const std::vector<int>& lost = {});

/// The points of a measurement, one after the other, in the order in which the job has them. `result` has what
/// docs/reference/seam.md lists for measurements. @note Collective.
Outcome run_measure(Context& context, const Job& job);

/// The command `stencil`: out of a job into the operation, and what it has to say into the record. Throws the agreed
/// Error on every rank. @note Collective.
Outcome run_stencil(Context& context, const Job& job);

/// The command `svd`: from the job's fields to the decomposition, and from what it found to the record. @note
/// Collective.
Outcome run_svd(Context& context, const Job& job);

// A job that loses ranks, and that the others finish: survive.cpp.

/// As run(), and where a rank dies the others begin the job anew among themselves: its journal says what is done. Each
/// death is told by an event. Throws the agreed Error on every rank. @note Collective.
void run_surviving(const mpi::Communicator& comm, Job job);

/// Whether this rank has gone on without another. MPI_Finalize would then wait for the dead.
bool has_lost_ranks();

// One operation for every slice of a stack, all ranks slice after slice, or each rank slices of its own: stack.cpp.

using Operation = Outcome (*)(Context& context, const Job& job);

/// The job for the slice of that number, counted as numpy counts: the last axis of the stack runs fastest.
Job slice_of(const Job& stack, std::int64_t number);

/// Runs `operation` for every slice of `job`; an error names the slice. @note Collective.
Outcome run_stack(Context& context, const Job& job, Operation operation);

// Each rank of a node gets its own cores, whatever launcher started it: record.cpp.

struct Binding {
    std::vector<int> cpus;        ///< that this rank may use now
    int node = 0;                 ///< index of the node, in the order of its first rank
    int node_ranks = 1;           ///< how many ranks are on that node
    bool oversubscribed = false;  ///< more threads on this node than cores
};

/// Ranks that all may use the same cores get `threads` of them each: neighbours on neighbouring cores (`core`), or in
/// turn on each socket (`socket`). Ranks that the launcher has bound already, and ranks that are too many, stay as they
/// are.
/// @note Collective.
Binding bind(const mpi::Communicator& comm, int threads, bool wanted, const std::string& place);

// What the record says of a job that went on after a death: record.cpp.

/// What was found where the job went on from pieces of its result.
void add_resumed(Outcome& outcome, const std::optional<io::Resumed>& resumed);
/// The same of states, which are numbered by sweeps.
void add_resumed(Outcome& outcome, const std::optional<io::Restored>& restored);

// What the ranks know at the end, gathered on rank 0, the `record` event: record.cpp.

/// The texts of all ranks. @note Collective; only rank 0 gets them.
std::vector<std::string> gather_texts(const mpi::Communicator& comm, const std::string& mine);

/// What a proof said, or null.
Json verification_of(const std::optional<Verification>& verification);

/// One rank's line in `ranks`: host, process and cores. @note Collective; only rank 0 gets the list.
std::vector<Json> gather_ranks(const mpi::Communicator& comm, const Binding& binding);

/// The whole `record` event, with the list of `gather_ranks`; only rank 0's result means anything. @note Collective.
Json gather_record(const Context& context, const Binding& binding, std::vector<Json> ranks, const Job& job,
                   const Outcome& outcome, double peak_flops);

}  // namespace tilewise::worker
