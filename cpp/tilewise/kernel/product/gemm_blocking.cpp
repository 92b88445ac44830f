// The model's arithmetic, rounded to whole tiles.
#include "tilewise/kernel/product/gemm_blocking.hpp"

#include <algorithm>
#include <cmath>

namespace tilewise::kernel {

Blocking blocking_for(const Caches& caches, std::int64_t rows, std::int64_t columns, std::int64_t size) {
    constexpr std::int64_t weight = 4, depth_unit = 32, KiB = 1024;
    // Fewer columns of B would have A packed too often: packing a number costs as much as 20 multiply-adds.
    constexpr std::int64_t least_columns = 1024;
    const auto half = static_cast<double>(caches.second * KiB / 2 / size);
    const double ideal = std::sqrt(half / static_cast<double>(weight));
    const auto whole = [](double value, std::int64_t unit) {
        return std::max<std::int64_t>(1, std::llround(value / static_cast<double>(unit))) * unit;
    };
    Blocking blocking{};
    blocking.rows = whole(ideal, rows);
    blocking.depth = whole(half / static_cast<double>(blocking.rows), depth_unit);
    const std::int64_t wanted = std::max(least_columns, caches.third * KiB / (blocking.depth * size));
    blocking.columns = (wanted + columns - 1) / columns * columns;
    return blocking;
}

}  // namespace tilewise::kernel
