// Checks a transposition, runs the algorithm that was asked for, and proves what stands in the file.
#include "tilewise/transpose/transpose.hpp"

#include <algorithm>

#include "tilewise/io/spoil.hpp"

namespace tilewise::transpose {
namespace {

const Algorithm& algorithm_named(std::string_view name) {
    const auto found =
        std::find_if(algorithms.begin(), algorithms.end(), [&](const Algorithm& entry) { return entry.name == name; });
    if (found == algorithms.end()) {
        throw UsageError("unknown algorithm '" + std::string(name) + "'");
    }
    return *found;
}

}  // namespace

Outcome transpose(Context& context, const io::Region& from, const io::Region& to, const Options& options) {
    if (from.wanted_rows() != to.wanted_columns() || from.wanted_columns() != to.wanted_rows()) {
        throw UsageError(to.name + " has not the shape of the transpose of " + from.name);
    }
    if (from.dtype != to.dtype) {
        throw UsageError(to.name + " has another type than " + from.name);
    }
    if (options.grid.size() != context.comm.size()) {
        throw UsageError("the grid has " + std::to_string(options.grid.size()) + " places for " +
                         std::to_string(context.comm.size()) + " ranks");
    }
    io::Region wanted = from;
    wanted.transposed = !from.transposed;
    Outcome outcome = algorithm_named(options.algorithm).run(context, wanted, to, options);
    outcome.turned = is_turned(wanted, to);
    if (options.tamper) {
        io::spoil_last_number(context, to);
    }
    if (options.verify != Verify::off) {
        outcome.verification = verify(context, wanted, to, options.verify);
    }
    return outcome;
}

}  // namespace tilewise::transpose
