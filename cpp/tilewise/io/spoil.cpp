// Rank 0 does it, and the others wait until it is done.
#include "tilewise/io/spoil.hpp"

#include <algorithm>
#include <string>
#include <string_view>

#include "tilewise/io/file.hpp"
#include "tilewise/mpi/together.hpp"

namespace tilewise::io {
namespace {

void change_byte(const std::string& path, const std::string& name, std::int64_t at) {
    std::byte byte{};
    PosixFile(path, name, PosixFile::Mode::read).read(&byte, 1, at);
    byte ^= std::byte{1};
    PosixFile(path, name, PosixFile::Mode::write).write(&byte, 1, at);
}

/// Makes the first digit of the last number that has any another one: a smaller one, so that its type still holds the number.
void change_digit(const Region& region) {
    constexpr std::int64_t most = std::int64_t{64} << 10;
    constexpr std::string_view digits = "0123456789";
    const PosixFile file(region.path, region.name, PosixFile::Mode::read);
    const std::int64_t begin = std::max(region.offset, file.size() - most);
    std::string end(static_cast<std::size_t>(file.size() - begin), ' ');
    file.read(reinterpret_cast<std::byte*>(end.data()), static_cast<std::int64_t>(end.size()), begin);
    const std::size_t last = end.find_last_of(digits);
    if (last == std::string::npos) {
        return;
    }
    const std::size_t before = end.find_last_of(std::string("\n") + region.text->separator, last);
    const std::size_t first = end.find_first_of(digits, before == std::string::npos ? 0 : before);
    const auto digit = static_cast<std::byte>(end[first] == '0' ? '1' : end[first] - 1);
    PosixFile(region.path, region.name, PosixFile::Mode::write)
        .write(&digit, 1, begin + static_cast<std::int64_t>(first));
}

}  // namespace

void spoil_last_number(const Context& context, const Region& region) {
    context.comm.barrier();
    mpi::together(context.comm, [&] {
        if (context.comm.rank() != 0 || region.bytes() == 0) {
            return;
        }
        const auto item = static_cast<std::int64_t>(size_of(region.dtype));
        if (region.text) {
            change_digit(region);
        } else if (region.tiles.empty()) {
            change_byte(region.path, region.name, region.offset + region.bytes() - 1);
        } else {
            const auto last = std::find_if(region.tiles.rbegin(), region.tiles.rend(),
                                           [](const Tile& tile) { return tile.block.size() > 0; });
            change_byte(last->path, region.name, last->offset + last->block.size() * item - 1);
        }
    });
    context.comm.barrier();
}

}  // namespace tilewise::io
