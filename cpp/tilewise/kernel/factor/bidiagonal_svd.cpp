// Halves of halves, down to what LAPACK does in one go, and back up.
#include "tilewise/kernel/factor/bidiagonal_svd.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>
#include <vector>

#include "tilewise/base/array.hpp"
#include "tilewise/base/threads.hpp"
#include "tilewise/kernel/factor/bidiagonal_merge.hpp"
#include "tilewise/kernel/factor/lapack_number.hpp"

namespace tilewise::kernel {
namespace {

constexpr std::int64_t leaf_size = 256, lapack_leaf_size = 25;

void solve_leaf(const BidiagonalPart& part, std::int64_t sqre) {
    const int n = lapack_int(part.n), square = lapack_int(sqre), ld = lapack_int(part.stride), small = lapack_leaf_size;
    std::vector<int> integers(static_cast<std::size_t>(8 * part.n));
    const std::int64_t m = part.n + sqre;
    const Array<double> work(3 * m * m + 4 * m + 64);
    int info = 0;
    tell<double>(effort::bdsdc(n));
    TILEWISE_BLAS(dlasd0_)
    (&n, &square, part.d, part.e, part.u, &ld, part.vt, &ld, &small, integers.data(), work.data(), &info);
    check_lapack(info, "lasd0");
}

/// A node of the tree: rows [begin, begin + n), and whether there is a column more than rows.
struct Node {
    std::int64_t begin, n, sqre;
};

/// Sorts values and vectors, the largest value first.
void sort_descending(std::int64_t n, double* d, double* u, double* vt, int threads) {
    std::vector<std::int64_t> order(static_cast<std::size_t>(n));
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](auto i, auto j) { return d[i] > d[j]; });
    const std::vector<double> values(d, d + n);
    for (std::int64_t i = 0; i < n; ++i) {
        d[i] = values[static_cast<std::size_t>(order[static_cast<std::size_t>(i)])];
    }
    const auto rows = [&](double* matrix, std::int64_t step, std::int64_t begin, std::int64_t end) {
        std::vector<double> row(static_cast<std::size_t>(n));
        for (std::int64_t i = begin; i < end; ++i) {
            double* at = matrix + i * (step == 1 ? n : 1);
            for (std::size_t j = 0; j < row.size(); ++j) {
                row[j] = at[order[j] * step];
            }
            for (std::size_t j = 0; j < row.size(); ++j) {
                at[static_cast<std::int64_t>(j) * step] = row[j];
            }
        }
    };
    parallel_ranges(threads, n, [&](std::int64_t begin, std::int64_t end, int) { rows(vt, 1, begin, end); });
    // Columns of U go round in cycles, some rows at a time.
    parallel_ranges(threads, n, [&](std::int64_t begin, std::int64_t end, int) {
        std::vector<std::int64_t> next = order;
        std::vector<double> aside(static_cast<std::size_t>(end - begin));
        const auto column = [&](std::int64_t j) { return u + j * n + begin; };
        for (std::int64_t first = 0; first < n; ++first) {
            if (next[static_cast<std::size_t>(first)] == first) {
                continue;
            }
            std::copy_n(column(first), end - begin, aside.data());
            for (std::int64_t to = first;;) {
                const std::int64_t from = std::exchange(next[static_cast<std::size_t>(to)], to);
                std::copy_n(from == first ? aside.data() : column(from), end - begin, column(to));
                if (from == first) {
                    break;
                }
                to = from;
            }
        }
    });
}

}  // namespace

void bidiagonal_svd(std::int64_t n, double* d, double* e, double* u, double* vt, int threads) {
    const BlasThreads blas(1);
    if (u == nullptr) {
        const int size = lapack_int(n), one = 1;
        int info = 0;
        const Array<double> work(8 * n);
        std::vector<int> integers(static_cast<std::size_t>(8 * n));
        tell<double>(effort::sterf(size));
        TILEWISE_BLAS(dbdsdc_)
        ("U", "N", &size, d, e, nullptr, &one, nullptr, &one, nullptr, nullptr, work.data(), integers.data(), &info);
        check_lapack(info, "bdsdc");
        return;
    }
    double largest = 0;
    for (std::int64_t i = 0; i < n; ++i) {
        largest = std::max({largest, std::abs(d[i]), i + 1 < n ? std::abs(e[i]) : 0.0});
    }
    for (std::int64_t i = 0; i < n; ++i) {
        u[i * (n + 1)] = vt[i * (n + 1)] = 1;  // LAPACK's small problems multiply with what is there
    }
    if (largest == 0) {
        return;
    }
    // A power of two, so that nothing is rounded; all further tolerances are relative to 1. No d is 0, as in bdsdc:
    // parts that are zero have no scale.
    constexpr double least = std::numeric_limits<double>::epsilon() / 2;
    const int scale = std::ilogb(largest);
    for (std::int64_t i = 0; i < n; ++i) {
        d[i] = std::ldexp(d[i], -scale);
        d[i] = std::abs(d[i]) < least ? std::copysign(least, d[i]) : d[i];
        e[i] = i + 1 < n ? std::ldexp(e[i], -scale) : 0;
    }
    std::vector<std::vector<Node>> levels{{{0, n, 0}}};
    while (levels.back().front().n > leaf_size) {
        std::vector<Node> next;
        for (const Node& node : levels.back()) {
            const std::int64_t left = node.n / 2;
            next.push_back({node.begin, left, 1});
            next.push_back({node.begin + left + 1, node.n - left - 1, node.sqre});
        }
        levels.push_back(std::move(next));
    }
    const auto part = [&](const Node& node) {
        const std::int64_t at = node.begin * (n + 1);
        return BidiagonalPart{node.n, d + node.begin, e + node.begin, u + at, vt + at, n};
    };
    parallel_tasks(threads, std::ssize(levels.back()), [&](std::int64_t task, int) {
        const Node& node = levels.back()[static_cast<std::size_t>(task)];
        solve_leaf(part(node), node.sqre);
    });
    levels.pop_back();
    Array<double> q;
    for (; !levels.empty(); levels.pop_back()) {
        for (const Node& node : levels.back()) {
            merge_halves(part(node), node.n / 2, node.sqre, q.grow(node.n * node.n), threads);
        }
    }
    q = {};
    sort_descending(n, d, u, vt, threads);
    for (std::int64_t i = 0; i < n; ++i) {
        d[i] = std::ldexp(d[i], scale);
    }
}

}  // namespace tilewise::kernel
