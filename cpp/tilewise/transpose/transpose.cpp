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

void change_byte(const std::string& path, const std::string& name, std::int64_t at) {
    std::byte byte{};
    io::PosixFile(path, name, io::PosixFile::Mode::read).read(&byte, 1, at);
    byte ^= std::byte{1};
    io::PosixFile(path, name, io::PosixFile::Mode::write).write(&byte, 1, at);
}

/// Makes the first digit of the last number that has any another one: a smaller one, so that its type still holds the number.
void change_digit(const io::Region& to) {
    constexpr std::int64_t most = std::int64_t{64} << 10;
    constexpr std::string_view digits = "0123456789";
    const io::PosixFile file(to.path, to.name, io::PosixFile::Mode::read);
    const std::int64_t begin = std::max(to.offset, file.size() - most);
    std::string end(static_cast<std::size_t>(file.size() - begin), ' ');
    file.read(reinterpret_cast<std::byte*>(end.data()), static_cast<std::int64_t>(end.size()), begin);
    const std::size_t last = end.find_last_of(digits);
    if (last == std::string::npos) {
        return;
    }
    const std::size_t before = end.find_last_of(std::string("\n") + to.text->separator, last);
    const std::size_t first = end.find_first_of(digits, before == std::string::npos ? 0 : before);
    const auto digit = static_cast<std::byte>(end[first] == '0' ? '1' : end[first] - 1);
    io::PosixFile(to.path, to.name, io::PosixFile::Mode::write)
        .write(&digit, 1, begin + static_cast<std::int64_t>(first));
}

/// What a proof must find: the last number is not what it was.
void make_wrong(const Context& context, const io::Region& to) {
    mpi::together(context.comm, [&] {
        if (context.comm.rank() != 0 || to.bytes() == 0) {
            return;
        }
        const auto item = static_cast<std::int64_t>(size_of(to.dtype));
        if (to.text) {
            change_digit(to);
        } else if (to.tiles.empty()) {
            change_byte(to.path, to.name, to.offset + to.bytes() - 1);
        } else {
            const auto last = std::find_if(to.tiles.rbegin(), to.tiles.rend(),
                                           [](const io::Tile& tile) { return tile.block.size() > 0; });
            change_byte(last->path, to.name, last->offset + last->block.size() * item - 1);
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
