// Fuzzes what unpacks chunks: any bytes through any chain of filters are refused or unpacked, and nothing is read or
// written outside what there is.
#include "tilewise/kernel/codec/unpack.hpp"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>

#include "require.hpp"
#include "tilewise/base/error.hpp"

using namespace tilewise;
using namespace tilewise::kernel;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    if (size < 3) {
        return 0;
    }
    // Two filters, the second of which may be skipped; up to 4 KiB in rows of up to 64 numbers.
    Packing packing;
    packing.filters = {
        {static_cast<FilterKind>(data[0] % filter_names.size()), 1 << (data[1] & 3), (data[1] & 4) != 0},
        {static_cast<FilterKind>(data[0] / 16 % filter_names.size()), 1 << (data[1] >> 3 & 3), (data[1] & 32) != 0}};
    packing.samples = 1 + (data[1] >> 6);
    packing.row_bytes = 8 * packing.samples * (1 + data[2] % 8);
    packing.bytes = packing.row_bytes * (1 + data[2] / 8);
    const auto packed = static_cast<std::int64_t>(size - 3);
    const auto room = static_cast<std::size_t>(packing.room());
    // Each lies at the end of its memory; what is given may be overwritten, and is no smaller than what comes out.
    const std::size_t given = std::max(room, size - 3);
    const std::unique_ptr<std::byte[]> from(new std::byte[given]), first(new std::byte[room]),
        second(new std::byte[room]);
    std::transform(data + 3, data + size, from.get(), [](std::uint8_t byte) { return static_cast<std::byte>(byte); });
    try {
        const Unpacked found = unpack(packing, data[0] >> 7 << 1, from.get(), packed, first.get(), second.get());
        require(found.bytes >= 0 && found.bytes <= packing.bytes, "no more than a chunk has");
    } catch (const UsageError& error) {
        require(std::string(error.what()).size() < 100, "a short message");
    }
    return 0;
}
