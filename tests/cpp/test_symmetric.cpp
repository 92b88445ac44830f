// Tests of symmetric products: each element is computed once or copied, on any grid; the kernel against the plain one.
#include <algorithm>
#include <complex>
#include <doctest/doctest.h>
#include <map>
#include <utility>
#include <vector>

#include "tilewise/grid/layout.hpp"
#include "tilewise/kernel/product/gemm.hpp"

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
            work += block.rows == block.columns ? block.size() / 2 : block.size();
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

namespace {

/// Whole numbers, which are summed without rounding. What is below the diagonal of a square may stay as it was.
template <class T> void check_half(Dtype dtype, std::int64_t n, std::int64_t k, bool transposed,
                                   kernel::Kernel kernel) {
    std::vector<T> a(static_cast<std::size_t>(n * k)), c(static_cast<std::size_t>(n * n), T(-1)), plain(c);
    for (std::size_t i = 0; i < a.size(); ++i) {
        a[i] = static_cast<T>(static_cast<float>(i * 7919 % 100) - 50);
    }
    const auto* data = reinterpret_cast<const std::byte*>(a.data());
    const std::int64_t stride = transposed ? n : k;
    kernel::Product product{.dtype = dtype,
                            .m = n,
                            .n = n,
                            .k = k,
                            .a = {data, stride, transposed},
                            .b = {data, stride, !transposed},
                            .c = reinterpret_cast<std::byte*>(c.data()),
                            .c_stride = n};
    const auto part = symmetric_part(grid::Layout({n, n, k}, {1, 1}, 1, grid::summa), 0, 2);
    const Block all{{0, n}, {0, n}};
    double last = 0;
    const auto between = [&](double done) {
        CHECK(done >= last);
        last = done;
    };
    for (const bool accumulate : {false, true}) {
        product.accumulate = accumulate;
        last = 0;
        product.c = reinterpret_cast<std::byte*>(c.data());
        kernel::gemm_parts(product, all, part.computed, 2, kernel, between, 96);
        product.c = reinterpret_cast<std::byte*>(plain.data());
        kernel::plain_gemm(product);
    }
    kernel::mirror(reinterpret_cast<std::byte*>(c.data()), all, sizeof(T), part.mirrored, 2);
    CHECK(c == plain);
}

}  // namespace

TEST_CASE("half of a product and its mirror image are the product") {
#ifdef TILEWISE_SANITIZED
    const std::vector<std::int64_t> sizes{1, 70, 193, 301};  // plain products take their squares
#else
    const std::vector<std::int64_t> sizes{1, 70, 193, 301, 700};
#endif
    for (const std::int64_t n : sizes) {
        for (const bool transposed : {false, true}) {
            for (const auto kernel : {kernel::Kernel::fast, kernel::Kernel::blas, kernel::Kernel::plain}) {
                check_half<double>(Dtype::float64, n, 230, transposed, kernel);
                check_half<float>(Dtype::float32, n, 130, transposed, kernel);
            }
            check_half<std::complex<double>>(Dtype::complex128, n, 70, transposed, kernel::Kernel::fast);
            check_half<std::int64_t>(Dtype::int64, n, 20, transposed, kernel::Kernel::fast);
        }
    }
}

TEST_CASE("tiles below the diagonal are left out") {
    const std::int64_t n = 700, k = 64;
    const std::vector<double> a(static_cast<std::size_t>(n * k), 1);
    std::vector<double> c(static_cast<std::size_t>(n * n), -1);
    const auto* data = reinterpret_cast<const std::byte*>(a.data());
    const kernel::Product product{.dtype = Dtype::float64,
                                  .m = n,
                                  .n = n,
                                  .k = k,
                                  .a = {data, k, false},
                                  .b = {data, k, true},
                                  .c = reinterpret_cast<std::byte*>(c.data()),
                                  .c_stride = n};
    const auto [upper, lower] = std::pair{grid::Range{0, 350}, grid::Range{350, 700}};
    kernel::gemm_parts(product, {{0, n}, {0, n}}, {{upper, upper}, {lower, lower}}, 1);
    std::int64_t computed = 0;
    for (std::int64_t i = 0; i < 350; ++i) {
        for (std::int64_t j = 0; j < 350; ++j) {
            const bool written = c[static_cast<std::size_t>(i * n + j)] >= 0;
            CHECK((written || j < i));
            computed += written ? 1 : 0;
        }
    }
    CHECK(computed < 350 * 350 * 6 / 10);
}
