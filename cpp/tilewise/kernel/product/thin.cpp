// Says which operand is the large one, packs the small one, and gives threads their rows.
//
//        few columns:   C  =  A · B              few rows:   Cᵀ =  Bᵀ · Aᵀ
//                       Z  =  X · Y                          Z  =  X  · Y
#include "tilewise/kernel/product/thin.hpp"

#include <algorithm>
#include <vector>

#include "tilewise/base/threads.hpp"
#include "tilewise/kernel/isa/backend.hpp"
#include "tilewise/kernel/lent.hpp"

namespace tilewise::kernel {
namespace {

/// Numbers of k for which vectors are packed at a time: whole runs of sums, whatever the registers' width.
constexpr std::int64_t depth_at_once = 12288;
/// Threads begin at rows of Z that are multiples of it: whole cache lines of X's transpose, and whole tiles.
constexpr std::int64_t row_unit = 64;
/// Bytes of X between two calls of `between`.
constexpr std::int64_t bytes_between = 16 << 20;
/// Each thread has at least so many bytes of X, or so many operations: less than it takes to wake one is not worth it.
constexpr double least_bytes = 2e6, least_operations = 4e6;

bool few_columns(const Product& p) { return p.n <= p.m; }

/// Both cases as one: X (outer × depth), Y, Z as above.
struct Roles {
    Operand x, y;
    std::int64_t outer, columns;
    std::int64_t z_row, z_column;
};
Roles roles_of(const Product& p) {
    if (few_columns(p)) {
        return {p.a, p.b, p.m, p.n, p.c_stride, 1};
    }
    const auto turned = [](const Operand& operand) {
        return Operand{operand.data, operand.stride, !operand.transposed};
    };
    return {turned(p.b), turned(p.a), p.n, p.m, 1, p.c_stride};
}

/// Columns of Y, numbers [begin, begin + count) of each, without gaps.
template <class T>
void pack(const Roles& roles, std::int64_t begin, std::int64_t count, std::int64_t stride, std::vector<T>& packed) {
    packed.resize(static_cast<std::size_t>(roles.columns * stride));
    const T* from = reinterpret_cast<const T*>(roles.y.data) + begin * roles.y.stride;
    constexpr std::int64_t block = 32;  // so many short rows stay in the first-level cache
    for (std::int64_t l = 0; l < count; l += block) {
        const std::int64_t end = std::min(l + block, count);
        for (std::int64_t c = 0; c < roles.columns; ++c) {
            T* to = packed.data() + c * stride;
            for (std::int64_t i = l; i < end; ++i) {
                to[i] = from[i * roles.y.stride + c];
            }
        }
    }
}

template <class T>
void rows_of_thread(const Product& p, const Roles& roles, grid::Range rows, const Between& between) {
    const ThinLoop<T> loop = backend().thin.loop<T>(roles.x.transposed);
    const bool as_it_lies = roles.y.transposed || (roles.columns == 1 && roles.y.stride == 1);
    // A line more than a multiple of a page, or the columns would fall on the same lines of the first-level cache.
    constexpr auto line = static_cast<std::int64_t>(64 / sizeof(T));
    const std::int64_t packed_stride = (std::min(p.k, depth_at_once) + line - 1) / line * line + line;
    const Lent<std::vector<T>> packed;
    const std::int64_t row_bytes = std::min(p.k, depth_at_once) * static_cast<std::int64_t>(sizeof(T));
    const std::int64_t at_once =
        between ? std::max(row_unit, bytes_between / row_bytes / row_unit * row_unit) : std::max(rows.size(), row_unit);
    for (std::int64_t begin = 0; begin < p.k; begin += depth_at_once) {
        const std::int64_t depth = std::min(depth_at_once, p.k - begin);
        if (!as_it_lies) {
            pack(roles, begin, depth, packed_stride, *packed);
        }
        for (std::int64_t row = rows.begin; row < rows.end; row += at_once) {
            const std::int64_t outer = std::min(at_once, rows.end - row);
            const T* x = reinterpret_cast<const T*>(roles.x.data);
            loop({.x = x + (roles.x.transposed ? begin * roles.x.stride + row : row * roles.x.stride + begin),
                  .x_stride = roles.x.stride,
                  .outer = outer,
                  .depth = depth,
                  .columns = roles.columns,
                  .y = as_it_lies ? reinterpret_cast<const T*>(roles.y.data) + begin : (*packed).data(),
                  .y_stride = as_it_lies ? roles.y.stride : packed_stride,
                  .z = reinterpret_cast<T*>(p.c) + row * roles.z_row,
                  .z_row = roles.z_row,
                  .z_column = roles.z_column,
                  .accumulate = begin > 0 || p.accumulate});
            if (between) {
                const auto done = static_cast<double>(begin) * static_cast<double>(rows.size()) +
                                  static_cast<double>(depth) * static_cast<double>(row + outer - rows.begin);
                between(done / (static_cast<double>(p.k) * static_cast<double>(rows.size())));
            }
        }
    }
}

}  // namespace

bool thin_gemm_suits(const Product& p) {
    // Measured on Zen 5, beside its BLAS: columns of Y up to which one pass over X is faster than packing X. Rows that
    // begin anywhere in a cache line are loaded at half speed, and BLAS is slow at few columns in double precision.
    const std::int64_t few = std::min(p.m, p.n), many = std::max(p.m, p.n);
    const bool rows = !roles_of(p).x.transposed;
    const std::int64_t most = !rows ? most_thin_columns : few_columns(p) && p.dtype == Dtype::float64 ? 20 : 8;
    // Shorter rows end before sums of them in registers have begun to pay, and packing Y takes its share of X's pass.
    constexpr std::int64_t least_depth = 32, least_ratio = 8;
    return (p.dtype == Dtype::float32 || p.dtype == Dtype::float64) && p.k >= least_depth && few <= most &&
           (few == 1 || many >= least_ratio * few);
}

std::int64_t thin_gemm_parts(const Product& p) { return std::max(p.m, p.n) / row_unit; }

void thin_gemm(const Product& p, int threads, const Between& between) {
    const Roles roles = roles_of(p);
    const double numbers = static_cast<double>(roles.outer) * static_cast<double>(p.k);
    const double shares = std::max(numbers * static_cast<double>(size_of(p.dtype)) / least_bytes,
                                   2 * numbers * static_cast<double>(roles.columns) / least_operations);
    const auto worth = static_cast<int>(std::clamp(shares, 1.0, static_cast<double>(threads)));
    const std::int64_t units = (roles.outer + row_unit - 1) / row_unit;
    parallel_ranges(worth, units, [&](std::int64_t begin, std::int64_t end, int thread) {
        const grid::Range rows{begin * row_unit, std::min(end * row_unit, roles.outer)};
        const Between mine = thread == 0 ? between : Between{};
        p.dtype == Dtype::float32 ? rows_of_thread<float>(p, roles, rows, mine)
                                  : rows_of_thread<double>(p, roles, rows, mine);
    });
}

}  // namespace tilewise::kernel
