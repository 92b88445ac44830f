// Asks the C library for whole pages, and writes each byte once.
#include "tilewise/measure/touched.hpp"

#include <cstring>
#include <string>

#include "tilewise/base/error.hpp"

namespace tilewise::measure {

Touched::Touched(std::size_t bytes, std::byte value) : bytes_(bytes) {
    constexpr std::size_t page = 4096;
    const std::size_t whole = (bytes + page - 1) / page * page;
    if (whole == 0) {
        return;
    }
    data_.reset(static_cast<std::byte*>(std::aligned_alloc(page, whole)));
    if (!data_) {
        throw MemoryError("could not get " + std::to_string(whole) + " bytes of memory for messages");
    }
    std::memset(data_.get(), static_cast<int>(value), whole);
}

}  // namespace tilewise::measure
