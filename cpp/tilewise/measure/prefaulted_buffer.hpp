// Memory for messages: on pages of its own and already there, as a program's own buffers are by the time they travel.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <memory>

namespace tilewise::measure {

/// `bytes` of memory that begin at a page, every byte `value`. Not a Buffer, which would be on huge pages: MPI moves
/// those faster than the memory that most programs send from. Throws MemoryError.
class PrefaultedBuffer {
public:
    explicit PrefaultedBuffer(std::size_t bytes = 0, std::byte value = std::byte{0});

    std::byte* data() const { return data_.get(); }
    std::size_t bytes() const { return bytes_; }

private:
    struct Free {
        void operator()(std::byte* data) const { std::free(data); }
    };

    std::size_t bytes_ = 0;
    std::unique_ptr<std::byte, Free> data_;
};

}  // namespace tilewise::measure
