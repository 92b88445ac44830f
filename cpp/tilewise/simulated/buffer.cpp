// Memory of simulated ranks, in place of base/buffer.cpp. Without numbers all blocks of all ranks lie on the same few
// pages, so that thousands of ranks need no more memory than one; and the simulator copies nothing between them.
#include "tilewise/base/buffer.hpp"

#include <algorithm>
#include <cstdlib>
#include <string>

#include <mpi.h>

#include "tilewise/base/error.hpp"
#include "tilewise/base/memory.hpp"
#include "tilewise/base/work.hpp"

namespace tilewise {
namespace {

std::size_t held = 0, most = 0;  // each rank has a copy of this library's variables

}  // namespace

std::int64_t peak_block_bytes() { return static_cast<std::int64_t>(most); }

Buffer::Buffer(std::size_t bytes)
    : bytes_(static_cast<std::size_t>(rounded_to_pages(static_cast<std::int64_t>(bytes)))) {
    if (bytes == 0) {
        return;
    }
    data_ = static_cast<std::byte*>(without_numbers() ? smpi_shared_malloc(bytes_, __FILE__, __LINE__)
                                                      : std::aligned_alloc(page, bytes_));
    if (data_ == nullptr) {
        throw MemoryError("could not get " + std::to_string(bytes) + " bytes of memory");
    }
    if (!without_numbers()) {
        std::fill_n(data_, bytes_, std::byte{0});
    }
    held += bytes_;
    most = std::max(most, held);
}

Buffer::~Buffer() {
    if (data_ == nullptr) {
        return;
    }
    held -= bytes_;
    if (without_numbers()) {
        smpi_shared_free(data_);
    } else {
        std::free(data_);
    }
}

}  // namespace tilewise
