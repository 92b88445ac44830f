// Turns a matrix round in memory with libtilewise's kernel, and says whether every number is where it belongs.
#include <cstdint>
#include <cstdio>
#include <vector>

#include "tilewise/kernel/transpose.hpp"

int main() {
    constexpr std::int64_t rows = 1001, columns = 703, item = sizeof(float);
    std::vector<float> from(rows * columns), to(rows * columns);
    for (std::int64_t i = 0; i < rows * columns; ++i) {
        from[static_cast<std::size_t>(i)] = static_cast<float>(i);
    }
    tilewise::kernel::transpose(reinterpret_cast<const std::byte*>(from.data()), columns * item, rows, columns, item,
                                reinterpret_cast<std::byte*>(to.data()), rows * item, 2);
    bool right = true;
    for (std::int64_t i = 0; i < rows; ++i) {
        for (std::int64_t j = 0; j < columns; ++j) {
            right =
                right && to[static_cast<std::size_t>(j * rows + i)] == from[static_cast<std::size_t>(i * columns + j)];
        }
    }
    std::printf("turned: %s\n", right ? "yes" : "no");
    return right ? 0 : 1;
}
