// Tests of symmetric products: each element is computed once or copied, on any grid; the kernel against the plain one.
#include <algorithm>
#include <doctest/doctest.h>
#include <map>
#include <utility>
#include <vector>

#include "tilewise/grid/symmetric.hpp"
#include "tilewise/kernel/gemm_loops.hpp"
#include "tilewise/kernel/symmetric.hpp"

using namespace tilewise;
using grid::Block;
using grid::SymmetricPart;

namespace {

bool lies_in(const Block& inner, const Block& outer) {
    return inner.size() == 0 || (inner.rows.begin >= outer.rows.begin && inner.rows.end <= outer.rows.end &&
                                 inner.columns.begin >= outer.columns.begin && inner.columns.end <= outer.columns.end);
}

/// How often each element of an n × n matrix is computed, or copied from what is.
class Seen {
public:
    explicit Seen(std::int64_t n) : n_(n), count_(static_cast<std::size_t>(n * n)) {}
    void add(const Block& block) {
        for (std::int64_t i = block.rows.begin; i < block.rows.end; ++i) {
            for (std::int64_t j = block.columns.begin; j < block.columns.end; ++j) {
                ++count_[static_cast<std::size_t>(i * n_ + j)];
            }
        }
    }
    bool everything_once() const {
        return std::all_of(count_.begin(), count_.end(), [](int count) { return count == 1; });
    }

private:
    std::int64_t n_;
    std::vector<int> count_;
};

void check_parts(std::int64_t n, grid::Grid grid, grid::Remainder remainder) {
    const grid::Layout layout({n, n, 5}, grid, 1, grid::summa, remainder);
    Seen seen(n);
    std::map<std::pair<int, int>, std::vector<SymmetricPart::Swap>> sent;
    for (int rank = 0; rank < grid.size(); ++rank) {
        const SymmetricPart part = symmetric_part(layout, rank, 1 + rank % 3);
        std::int64_t work = 0;
        for (const Block& block : part.computed) {
            CHECK(lies_in(block, layout.c(rank)));
            work += block.size();
            seen.add(block);
        }
        for (const Block& block : part.mirrored) {
            if (block.rows != block.columns) {
                CHECK(lies_in(block.transposed(), layout.c(rank)));
                seen.add(block.transposed());
            }
        }
        for (const auto& swap : part.swaps) {
            CHECK(swap.partner != rank);
            CHECK(lies_in(swap.filled, layout.c(rank)));
            seen.add(swap.filled);
            sent[{rank, swap.partner}].push_back(swap);
        }
        if (n > 2000 && remainder == grid::Remainder::spread) {  // half of the block, and little too much
            const auto share = static_cast<double>(work) / static_cast<double>(layout.c(rank).size());
            CHECK(share > 0.45);
            CHECK(share < 0.55);
        }
    }
    CHECK(seen.everything_once());
    for (const auto& [pair, swaps] : sent) {
        const auto& answers = sent.at({pair.second, pair.first});
        REQUIRE(swaps.size() == answers.size());
        for (std::size_t i = 0; i < swaps.size(); ++i) {
            CHECK(swaps[i].sent.transposed() == answers[i].filled);
        }
    }
}

}  // namespace

TEST_CASE("of a symmetric matrix each element is computed once or copied, and ranks share the work") {
    for (const grid::Grid grid : {grid::Grid{1, 1}, {1, 2}, {2, 1}, {2, 2}, {1, 3}, {2, 3}, {3, 2}, {4, 4}, {6, 1}}) {
        for (const std::int64_t n : {0, 1, 3, 5, 97, 193, 500}) {
            CAPTURE(grid.rows);
            CAPTURE(grid.columns);
            CAPTURE(n);
            check_parts(n, grid, grid::Remainder::spread);
            check_parts(n, grid, grid::Remainder::last);
        }
    }
    check_parts(2501, {1, 2}, grid::Remainder::spread);
    check_parts(2501, {2, 2}, grid::Remainder::spread);
}

TEST_CASE("half of a product and its mirror image are the product") {
    for (const std::int64_t n : {1, 70, 193, 700}) {
        for (const bool transposed : {false, true}) {
            constexpr std::int64_t k = 130;
            std::vector<double> a(static_cast<std::size_t>(n * k)), c(static_cast<std::size_t>(n * n), -1), plain(c);
            for (std::size_t i = 0; i < a.size(); ++i) {
                a[i] = static_cast<double>(i * 7919 % 1000) - 500;
            }
            const auto* data = reinterpret_cast<const std::byte*>(a.data());
            const std::int64_t stride = transposed ? n : k;
            kernel::Product product{.dtype = Dtype::float64,
                                    .m = n,
                                    .n = n,
                                    .k = k,
                                    .a = {data, stride, transposed},
                                    .b = {data, stride, !transposed},
                                    .c = reinterpret_cast<std::byte*>(c.data()),
                                    .c_stride = n};
            const auto part = symmetric_part(grid::Layout({n, n, k}, {1, 1}, 1, grid::summa), 0, 2);
            double last = 0;
            kernel::gemm_parts(product, part.computed, 2, kernel::Kernel::fast, [&](double done) {
                CHECK(done >= last);
                last = done;
            });
            kernel::mirror(product.c, {{0, n}, {0, n}}, sizeof(double), part.mirrored, 2);
            product.c = reinterpret_cast<std::byte*>(plain.data());
            kernel::plain_gemm(product);
            CHECK(c == plain);  // whole numbers, which are summed without rounding
        }
    }
}
