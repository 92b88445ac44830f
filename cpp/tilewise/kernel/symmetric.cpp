// Each rectangle is a product for one thread; its mirror image is a transposition.
#include "tilewise/kernel/symmetric.hpp"

#include <algorithm>
#include <atomic>
#include <cstring>

#include "tilewise/base/threads.hpp"
#include "tilewise/kernel/transpose.hpp"

namespace tilewise::kernel {
namespace {

std::int64_t elements_of(const std::vector<grid::Block>& blocks) {
    std::int64_t sum = 0;
    for (const grid::Block& block : blocks) {
        sum += block.size();
    }
    return sum;
}

}  // namespace

void gemm_parts(const Product& product, const std::vector<grid::Block>& parts, int threads, Kernel kernel,
                const Between& between, std::int64_t slice) {
    if (parts.size() == 1) {
        gemm(part_of(product, parts.front()), threads, kernel, between, slice);
        return;
    }
    const auto all = static_cast<double>(std::max<std::int64_t>(1, elements_of(parts)));
    const int workers = 2 * all * static_cast<double>(product.k) < 4e6 ? 1 : threads;
    std::atomic<std::int64_t> done = 0;
    parallel_tasks(workers, std::ssize(parts), [&](std::int64_t index, int thread) {
        const grid::Block& block = parts[static_cast<std::size_t>(index)];
        Between mine;
        if (thread == 0 && between) {
            mine = [&](double of_part) {
                const double here = of_part * static_cast<double>(block.size());
                between(std::clamp((static_cast<double>(done.load()) + here) / all, 0.0, 1.0));
            };
        }
        gemm(part_of(product, block), 1, kernel, mine, slice);
        done += block.size();
    });
}

void mirror(std::byte* c, const grid::Block& held, std::size_t item, const std::vector<grid::Block>& rectangles,
            int threads) {
    const std::int64_t down = held.columns.size() * static_cast<std::int64_t>(item);
    const auto at = [&](std::int64_t row, std::int64_t column) {
        return c + (row - held.rows.begin) * down + (column - held.columns.begin) * static_cast<std::int64_t>(item);
    };
    const int workers = elements_of(rectangles) < (1 << 18) ? 1 : threads;
    parallel_tasks(workers, std::ssize(rectangles), [&](std::int64_t index, int) {
        const auto [rows, columns] = rectangles[static_cast<std::size_t>(index)];
        if (rows != columns) {
            transpose(at(rows.begin, columns.begin), down, rows.size(), columns.size(), item,
                      at(columns.begin, rows.begin), down, 1);
            return;
        }
        for (std::int64_t i = rows.begin; i < rows.end; ++i) {
            for (std::int64_t j = i + 1; j < rows.end; ++j) {
                std::memcpy(at(j, i), at(i, j), item);
            }
        }
    });
}

}  // namespace tilewise::kernel
