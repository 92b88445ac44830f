// Asks the C library for whole pages, and writes each byte once.
#include "tilewise/measure/prefaulted_buffer.hpp"

#include <cstring>
#include <string>

#include "tilewise/base/error.hpp"
#include "tilewise/base/page.hpp"

namespace tilewise::measure {

PrefaultedBuffer::PrefaultedBuffer(std::size_t bytes, std::byte value) : bytes_(bytes) {
    const auto whole = static_cast<std::size_t>(rounded_to_pages(static_cast<std::int64_t>(bytes)));
    if (whole == 0) {
        return;
    }
    data_.reset(static_cast<std::byte*>(std::aligned_alloc(static_cast<std::size_t>(page), whole)));
    if (!data_) {
        throw MemoryError("could not get " + std::to_string(whole) + " bytes of memory for messages");
    }
    std::memset(data_.get(), static_cast<int>(value), whole);
}

}  // namespace tilewise::measure
