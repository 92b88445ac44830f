// Gets block memory from mmap, so that its alignment and page size are ours to choose.
#include "tilewise/base/buffer.hpp"

#include <cerrno>
#include <cstdint>
#include <string>
#include <sys/mman.h>

#include "tilewise/base/error.hpp"
#include "tilewise/base/memory.hpp"

namespace tilewise {
namespace {

constexpr std::size_t huge_page = std::size_t{2} << 20;

constexpr std::size_t round_up(std::size_t bytes, std::size_t unit) { return (bytes + unit - 1) / unit * unit; }

void* map(std::size_t bytes) {
    void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) {
        throw MemoryError("could not get " + std::to_string(bytes) + " bytes of memory: " + system_reason(errno));
    }
    return memory;
}

}  // namespace

Buffer::Buffer(std::size_t bytes) {
    if (bytes == 0) {
        return;
    }
    // The end lies on small pages: a plan counts the bytes that it asks for, and not up to a huge page more.
    bytes_ = round_up(bytes, std::size_t{page});
    if (bytes < 2 * huge_page) {
        data_ = static_cast<std::byte*>(map(bytes_));
        return;
    }
    // Map one huge page more than needed, and give back what sticks out on either side of the aligned middle.
    auto* start = static_cast<std::byte*>(map(bytes_ + huge_page));
    const std::size_t before = (huge_page - reinterpret_cast<std::uintptr_t>(start) % huge_page) % huge_page;
    if (before > 0) {
        munmap(start, before);
    }
    data_ = start + before;
    munmap(data_ + bytes_, huge_page - before);
    madvise(data_, bytes_, MADV_HUGEPAGE);  // a wish: where it is not granted, only speed is lost
}

Buffer::~Buffer() {
    if (data_ != nullptr) {
        munmap(data_, bytes_);
    }
}

}  // namespace tilewise
