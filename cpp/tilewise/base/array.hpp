// A buffer of numbers of one type, which are counted in 64 bits.
#pragma once

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "tilewise/base/buffer.hpp"

namespace tilewise {

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
    /// Makes place for `count` numbers. What was there is lost where there was too little, and goes first.
    T* grow(std::int64_t count) {
        if (!holds(count)) {
            *this = {};
            *this = Array(count);
        }
        return data();
    }

private:
    static std::size_t bytes_of(std::int64_t count) {
        return static_cast<std::size_t>(std::max<std::int64_t>(1, count)) * sizeof(T);
    }
};

}  // namespace tilewise
