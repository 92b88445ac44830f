// Transposition as two loops: what the fast one is compared with.
#include <cstring>

#include "tilewise/kernel/transpose/transpose.hpp"

namespace tilewise::kernel {

void plain_transpose(const std::byte* from, std::int64_t from_stride, std::int64_t rows, std::int64_t columns,
                     std::size_t item, std::byte* to, std::int64_t to_stride) {
    const auto size = static_cast<std::int64_t>(item);
    for (std::int64_t i = 0; i < rows; ++i) {
        for (std::int64_t j = 0; j < columns; ++j) {
            std::memcpy(to + j * to_stride + i * size, from + i * from_stride + j * size, item);
        }
    }
}

}  // namespace tilewise::kernel
