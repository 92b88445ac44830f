// Of a file rank 0 changes a byte, and the others wait until that is done.
#include "tilewise/io/corrupt_for_test.hpp"

#include <algorithm>
#include <string>
#include <string_view>
#include <type_traits>

#include "tilewise/io/file.hpp"
#include "tilewise/mpi/together.hpp"

namespace tilewise::io {
namespace {

bool corrupts = false;

void change_byte(const std::string& path, const std::string& name, std::int64_t at) {
    std::byte byte{};
    PosixFile file(path, name, PosixFile::Mode::write);
    file.read(&byte, 1, at);
    byte ^= std::byte{1};
    file.write(&byte, 1, at);
    file.close();
}

/// Makes the first digit of the last number that has any another one: a smaller one, so that its type still holds the
/// number.
void change_digit(const Region& region) {
    constexpr std::int64_t most = std::int64_t{64} << 10;
    constexpr std::string_view digits = "0123456789";
    PosixFile file(region.path, region.name, PosixFile::Mode::write);
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
    file.write(&digit, 1, begin + static_cast<std::int64_t>(first));
    file.close();
}

}  // namespace

void corrupt_results(bool wanted) { corrupts = wanted; }

void corrupt_for_test(Dtype dtype, std::byte* data, std::int64_t count) {
    if (!corrupts || count == 0) {
        return;
    }
    with_compute_type(dtype, [&](auto tag) {
        using T = typename decltype(tag)::type;
        T& element = reinterpret_cast<T*>(data)[count / 2];
        if constexpr (std::is_integral_v<T>) {
            element ^= T(1);  // never beyond the type's range
        } else {
            element = element == T(-1) ? T(1) : element * T(2) + T(1);
        }
    });
}

void corrupt_for_test(const Context& context, const Region& region) {
    if (!corrupts) {
        return;
    }
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
            change_byte(last->path, region.name, last->offset + last->extent() * item - 1);
        }
    });
    context.comm.barrier();
}

}  // namespace tilewise::io
