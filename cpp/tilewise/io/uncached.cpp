// Splits every piece into whole pages and ends.
#include "tilewise/io/uncached.hpp"

#include <algorithm>

#include "tilewise/base/page.hpp"

namespace tilewise::io {
namespace {

constexpr std::int64_t request = std::int64_t{8} << 20;

/// Calls buffered(part) or direct(part) for consecutive parts [begin, end) of a piece that lies at `data` and `offset`.
template <class Buffered, class Direct>
std::int64_t split(const std::byte* data, std::int64_t bytes, std::int64_t offset, std::int64_t least,
                   Buffered buffered, Direct direct) {
    const auto address = static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(data) % page);
    const std::int64_t head = std::min(bytes, (page - offset % page) % page);
    const std::int64_t middle = (bytes - head) / page * page;
    if (address != offset % page || middle < least) {
        return buffered(std::int64_t{0}, bytes);
    }
    std::int64_t calls = head > 0 ? buffered(std::int64_t{0}, head) : 0;
    for (std::int64_t begin = head; begin < head + middle; begin += request) {
        calls += direct(begin, std::min(begin + request, head + middle));
    }
    return calls + (head + middle < bytes ? buffered(head + middle, bytes) : 0);
}

}  // namespace

UncachedFile::UncachedFile(const std::string& path, const std::string& name, PosixFile::Mode mode, std::int64_t least)
    : buffered_(path, name, mode),
      direct_(path, name, mode, PosixFile::Cache::bypassed),
      least_(least) {}

std::int64_t UncachedFile::read(std::byte* data, std::int64_t bytes, std::int64_t offset) const {
    const auto by = [&](const PosixFile& file) {
        return [&, data, offset](std::int64_t begin, std::int64_t end) {
            return file.read(data + begin, end - begin, offset + begin);
        };
    };
    return split(data, bytes, offset, least_, by(buffered_), by(direct_));
}

std::int64_t UncachedFile::write(const std::byte* data, std::int64_t bytes, std::int64_t offset) const {
    const auto by = [&](const PosixFile& file) {
        return [&, data, offset](std::int64_t begin, std::int64_t end) {
            return file.write(data + begin, end - begin, offset + begin);
        };
    };
    return split(data, bytes, offset, least_, by(buffered_), by(direct_));
}

void UncachedFile::close() {
    direct_.close();
    buffered_.close();
}

}  // namespace tilewise::io
