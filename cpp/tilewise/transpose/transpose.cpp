// Checks a transposition, runs the algorithm that was asked for, and proves what stands in the file.
#include "tilewise/transpose/transpose.hpp"

#include <algorithm>

#include "tilewise/mpi/together.hpp"

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

/// What a proof must find: the last byte of the last number is not what it was.
void make_wrong(const Context& context, const io::Region& to) {
    mpi::together(context.comm, [&] {
        if (context.comm.rank() == 0 && to.bytes() > 0 && to.tiles.empty() && !to.text) {
            const std::int64_t last = to.offset + to.bytes() - 1;
            std::byte byte{};
            io::PosixFile(to.path, to.name, io::PosixFile::Mode::read).read(&byte, 1, last);
            byte ^= std::byte{1};
            io::PosixFile(to.path, to.name, io::PosixFile::Mode::write).write(&byte, 1, last);
        }
    });
    context.comm.barrier();
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
        make_wrong(context, to);
    }
    if (options.verify != Verify::off) {
        outcome.verification = verify(context, wanted, to, options.verify);
    }
    return outcome;
}

}  // namespace tilewise::transpose
