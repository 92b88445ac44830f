// Checks a transposition, runs the algorithm that was asked for, and proves what stands in the file.
#include "tilewise/transpose/transpose.hpp"

#include "tilewise/base/names.hpp"
#include "tilewise/io/corrupt_for_test.hpp"
#include "tilewise/mpi/together.hpp"

namespace tilewise::transpose {

static_assert(algorithms[static_cast<std::size_t>(AlgorithmKind::staged)].name == "staged");

AlgorithmKind algorithm_named(std::string_view name) {
    return enum_named<AlgorithmKind>(algorithms, name, "algorithm");
}

namespace {

void check(const Context& context, const io::Region& from, const io::Region& to, const Options& options) {
    if (from.logical_rows() != to.logical_columns() || from.logical_columns() != to.logical_rows()) {
        throw UsageError(to.name + " does not have the shape of the transpose of " + from.name);
    }
    if (from.dtype != to.dtype) {
        throw UsageError(to.name + " has a different type from " + from.name);
    }
    if (options.grid.size() != context.comm.size()) {
        throw UsageError("the grid has " + std::to_string(options.grid.size()) + " places for " +
                         std::to_string(context.comm.size()) + " ranks");
    }
}

Outcome run(Context& context, const io::Region& from, const io::Region& to, const Options& options) {
    io::Region wanted = from;
    wanted.transposed = !from.transposed;
    Outcome outcome = algorithms.at(static_cast<std::size_t>(options.algorithm)).run(context, wanted, to, options);
    outcome.transposed = is_transposed(wanted, to);
    io::corrupt_for_test(context, to);
    if (options.verify != Verify::off) {
        outcome.verification = verify(context, wanted, to, options.verify);
    }
    return outcome;
}

}  // namespace

Outcome transpose(Context& context, const io::Region& from, const io::Region& to, const Options& options) {
    mpi::together(context.comm, [&] { check(context, from, to, options); });
    return mpi::no_return(context.comm, [&] { return run(context, from, to, options); });
}

}  // namespace tilewise::transpose
