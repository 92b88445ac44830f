// Exact bounds of integers in 128 bits: of every row of A against the largest numbers in each row of B, and the mirror
// image. Levels of Strassen's product from shapes and tolerance, and lengths of rows and columns from a pass over the
// operands.
//
// Strassen adds rows of A that have nothing to do with each other, and columns of B: what rounding leaves in an element
// is in proportion to the longest of them, whatever that element's own row and column are. An element of rows and
// columns as long as the longest loses nothing by that; one of shorter ones loses as many times as they are shorter.
#include "tilewise/multiply/operands.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <sstream>
#include <vector>

#include "tilewise/base/error.hpp"
#include "tilewise/base/work.hpp"
#include "tilewise/kernel/codec/convert.hpp"
#include "tilewise/kernel/product/apply.hpp"
#include "tilewise/kernel/product/gemm.hpp"
#include "tilewise/mpi/sum.hpp"
#include "tilewise/mpi/together.hpp"
#include "tilewise/multiply/proof.hpp"

namespace tilewise::multiply {
namespace {

/// How many times the product of two lengths may differ: three digits of what the bound promises.
constexpr double most_unlike = 1024;
/// Lengths whose squares, and those of sums of eight, are far from the limits of float64.
constexpr double shortest = 1e-140, longest = 1e140;

struct Lengths {
    double least = std::numeric_limits<double>::infinity(), most = 0;
    bool finite = true;

    double ratio() const { return most > 0 ? most / least : 1; }
};

/// Of the columns of all parts together.
Lengths lengths_of(Context& context, Dtype dtype, std::int64_t columns, const Part& part) {
    kernel::ColumnSizes sizes(columns);
    const grid::Range rows = part.block.rows, mine = part.block.columns;
    const auto measure = [&](auto zero) {
        kernel::measure_columns<decltype(zero)>(part.operand, rows.size(), mine.size(), sizes, mine.begin,
                                                context.threads);
    };
    dtype == Dtype::float32 ? measure(float{}) : measure(double{});
    mpi::join_over_ranks(context.comm, sizes.largest.data(), std::ssize(sizes.largest), MPI_MAX);
    mpi::sum_over_ranks(context.comm, sizes.squares.data(), std::ssize(sizes.squares));
    Lengths lengths;
    for (std::size_t j = 0; j < sizes.squares.size(); ++j) {
        lengths.finite = lengths.finite && !std::isnan(sizes.squares[j]) && !std::isinf(sizes.largest[j]);
        // Squares of the smallest numbers are lost, and those of the largest infinite.
        const double length = std::max(std::sqrt(sizes.squares[j]), sizes.largest[j]);
        lengths.least = std::min(lengths.least, length);
        lengths.most = std::max(lengths.most, length);
    }
    return lengths;
}

/// Of the real and imaginary parts of a rank's block; infinity where one is not finite.
double largest_part(const Part& block, Dtype dtype) {
    return with_compute_type(dtype, [&](auto tag) -> double {
        using T = typename decltype(tag)::type;
        if constexpr (std::is_integral_v<T>) {
            return 0;
        } else {
            using Real = decltype(std::abs(T{}));
            const auto* parts = reinterpret_cast<const Real*>(block.operand.data);
            const std::int64_t count =
                without_numbers() ? 0 : block.block.size() * static_cast<std::int64_t>(sizeof(T) / sizeof(Real));
            Real largest = 0;
            bool finite = true;
            for (std::int64_t i = 0; i < count; ++i) {
                const Real size = std::abs(parts[i]);
                finite = finite && size <= std::numeric_limits<Real>::max();
                largest = std::max(largest, size);
            }
            return finite ? static_cast<double>(largest) : std::numeric_limits<double>::infinity();
        }
    });
}

/// "1e-12", "1.5"
std::string said(double number) {
    std::ostringstream text;
    text.precision(2);
    text << number;
    return text.str();
}

__extension__ using Wide = unsigned __int128;
constexpr Wide widest = ~Wide{0};

Wide add(Wide x, Wide y) { return x > widest - y ? widest : x + y; }

/// Of some integers, the largest and how far below zero the smallest is; of their sum, how far it may go both ways.
template <class N> struct Ends {
    std::vector<N> up, down;

    explicit Ends(std::int64_t length) : up(static_cast<std::size_t>(length)), down(static_cast<std::size_t>(length)) {}
};

/// Calls `visit(outer, inner, magnitude, negative)` for the numbers of a block, as they lie in memory.
template <class Visit> void walk(const Part& part, Dtype dtype, const Visit& visit) {
    const auto* data = reinterpret_cast<const std::uint64_t*>(part.operand.data);
    const bool transposed = part.operand.transposed;
    const grid::Block lies = transposed ? part.block.transposed() : part.block;
    for (std::int64_t i = 0; i < lies.rows.size(); ++i) {
        for (std::int64_t j = 0; j < lies.columns.size(); ++j) {
            const std::uint64_t bits = data[i * part.operand.stride + j];
            const bool negative = dtype == Dtype::int64 && (bits >> 63) != 0;
            const auto row = static_cast<std::size_t>(lies.rows.begin + i),
                       column = static_cast<std::size_t>(lies.columns.begin + j);
            visit(transposed ? column : row, transposed ? row : column, negative ? ~bits + 1 : bits, negative);
        }
    }
}

/// Of every inner index, over all ranks.
Ends<std::uint64_t> ends_of(const mpi::Communicator& comm, const Part& part, Dtype dtype, std::int64_t inner) {
    Ends<std::uint64_t> ends(inner);
    walk(part, dtype, [&](std::size_t /*outer*/, std::size_t index, std::uint64_t magnitude, bool negative) {
        std::uint64_t& end = (negative ? ends.down : ends.up)[index];
        end = std::max(end, magnitude);
    });
    for (auto* side : {&ends.up, &ends.down}) {
        mpi::join_over_ranks(comm, side->data(), std::ssize(*side), MPI_MAX);
    }
    return ends;
}

/// The largest sum over all ranks, of which each has its share. MPI adds 64 bits: in limbs of 48, so many ranks fit.
Wide largest_sum(const mpi::Communicator& comm, const std::vector<Wide>& sums) {
    constexpr std::uint64_t limb = (std::uint64_t{1} << 48) - 1;
    constexpr std::size_t at_once = 1 << 16;
    std::vector<std::uint64_t> limbs;
    Wide largest = 0;
    for (std::size_t begin = 0; begin < sums.size(); begin += at_once) {
        limbs.clear();
        for (std::size_t at = begin; at < std::min(sums.size(), begin + at_once); ++at) {
            for (const int shift : {0, 48, 96}) {
                limbs.push_back(static_cast<std::uint64_t>(sums[at] >> shift) & limb);
            }
        }
        mpi::sum_over_ranks(comm, limbs.data(), std::ssize(limbs));
        for (std::size_t at = 0; at < limbs.size(); at += 3) {
            const Wide low = (Wide{limbs[at + 1]} << 48) + limbs[at];
            const Wide high = limbs[at + 2];
            largest = std::max(largest, high >> 32 != 0 ? widest : add(high << 96, low));
        }
    }
    return largest;
}

/// How far up and down an element may go: of the sums over the inner index, for each outer one, the largest.
std::array<Wide, 2> reach(const mpi::Communicator& comm, const Part& part, Dtype dtype, std::int64_t outer,
                          const Ends<std::uint64_t>& others) {
    Ends<Wide> sums(outer);
    walk(part, dtype, [&](std::size_t at, std::size_t index, std::uint64_t magnitude, bool negative) {
        const Wide up = Wide{magnitude} * (negative ? others.down : others.up)[index];
        const Wide down = Wide{magnitude} * (negative ? others.up : others.down)[index];
        sums.up[at] = add(sums.up[at], up);
        sums.down[at] = add(sums.down[at], down);
    });
    return {largest_sum(comm, sums.up), largest_sum(comm, sums.down)};
}

}  // namespace

double Halving::bound(Dtype dtype) const { return growth * roundoff(dtype); }

bool may_halve(kernel::Kernel kernel, double tolerance) {
    return kernel == kernel::Kernel::strassen || (kernel == kernel::Kernel::fast && tolerance > 0);
}

Halving halving_of(const grid::Layout& layout, Dtype dtype, kernel::Kernel kernel, double tolerance) {
    const bool asked = kernel == kernel::Kernel::strassen;
    if (!may_halve(kernel, tolerance)) {
        return {};
    }
    if (dtype != Dtype::float32 && dtype != Dtype::float64) {
        if (asked) {
            throw UsageError("--kernel strassen multiplies float32 and float64, not " + std::string(name_of(dtype)), -1,
                             0, "--kernel fast");
        }
        return {};
    }
    std::int64_t m = 0, n = 0, k = 0, steps = 0;
    for (int rank = 0; rank < layout.size(); ++rank) {
        m = std::max(m, layout.c(rank).rows.size());
        n = std::max(n, layout.c(rank).columns.size());
    }
    for (const int rank : {0, layout.size() - 1}) {
        const auto all = layout.steps(rank);
        for (const grid::Step& step : all) {
            k = std::max(k, step.k.size());
        }
        steps = std::max(steps, std::ssize(all));
    }
    Halving halving{.levels = kernel::strassen_levels(dtype, m, n, k)};
    const auto bounded = [&] {
        halving.growth = kernel::strassen_growth(halving.levels, layout.shape().k, (steps + 1) * layout.copies());
        return tolerance <= 0 || halving.bound(dtype) <= tolerance;
    };
    while (halving.levels > 0 && !bounded()) {
        if (halving.levels == 1 && asked) {
            throw UsageError("the error of one level of Strassen's product is bounded by " +
                                 said(halving.bound(dtype)) + ", which is above --tolerance " + said(tolerance),
                             -1, 0, "--tolerance " + said(halving.bound(dtype) * 1.1) + ", or --kernel fast");
        }
        --halving.levels;
    }
    return halving.levels > 0 ? halving : Halving{};
}

void refuse_unlike(Context& context, Dtype dtype, const grid::Shape& shape, const Part& a, const Part& b,
                   const Halving& halving, double tolerance) {
    const Lengths of_a = lengths_of(context, dtype, shape.m, a.transposed()),
                  of_b = lengths_of(context, dtype, shape.n, b);
    mpi::together(context.comm, [&] {
        const auto extreme = [](double length) { return length > longest || (length > 0 && length < shortest); };
        if (!of_a.finite || !of_b.finite || extreme(of_a.most) || extreme(of_b.most)) {
            throw UsageError(
                "Strassen's product takes finite numbers that are neither huge nor tiny: it adds rows and "
                "columns, and " +
                    std::string(!of_a.finite || extreme(of_a.most) ? "A" : "B") + " has others",
                -1, 0, "--kernel fast without --tolerance");
        }
        if (tolerance <= 0 && of_a.ratio() * of_b.ratio() > most_unlike) {
            throw UsageError("rows of A differ by a factor of " + said(of_a.ratio()) +
                                 " in length and columns of B by one of " + said(of_b.ratio()) +
                                 ": next to the shortest, the errors of Strassen's product would be large",
                             -1, 0,
                             "--kernel fast, or --tolerance " + said(halving.bound(dtype) * 1.1) +
                                 " if an error of that times the longest is small enough");
        }
    });
}

bool fits_certainly(Dtype dtype, std::int64_t k, double largest_a, double largest_b) {
    const double limit = dtype == Dtype::int64 ? 0x1p63 : 0x1p64;
    return static_cast<double>(k) * largest_a * largest_b < 0.99 * limit;
}

void refuse_overflow(Context& context, Dtype dtype, const grid::Shape& shape, const Part& a, const Part& b) {
    const mpi::Communicator& comm = context.comm;
    std::array<double, 2> largest{kernel::largest_magnitude(a.operand.data, a.block.size(), dtype),
                                  kernel::largest_magnitude(b.operand.data, b.block.size(), dtype)};
    mpi::join_over_ranks(comm, largest.data(), std::ssize(largest), MPI_MAX);
    if (fits_certainly(dtype, shape.k, largest[0], largest[1])) {
        return;
    }
    const Part columns = b.transposed();
    const auto by_row = reach(comm, a, dtype, shape.m, ends_of(comm, columns, dtype, shape.k)),
               by_column = reach(comm, columns, dtype, shape.n, ends_of(comm, a, dtype, shape.k));
    const Wide up = std::min(by_row[0], by_column[0]), down = std::min(by_row[1], by_column[1]);
    const Wide most = dtype == Dtype::int64 ? (Wide{1} << 63) - 1 : (Wide{1} << 64) - 1;
    mpi::together(comm, [&] {
        if (up > most || down > Wide{1} << 63) {
            std::ostringstream text;
            text << "the product could overflow " << name_of(dtype) << ": sums over k = " << shape.k << " may reach "
                 << (up > most ? "" : "-") << static_cast<double>(up > most ? up : down) << ", the type holds "
                 << (dtype == Dtype::int64 ? "-2^63 to 2^63 - 1" : "0 to 2^64 - 1");
            throw UsageError(text.str(), -1, 0, "--overflow wrap, or floating-point inputs");
        }
    });
}

bool is_certainly_finite(const Context& context, Dtype dtype, const grid::Shape& shape, const Part& a, const Part& b) {
    if (is_integer(dtype) || 4 * shape.k * (shape.m + shape.n) > shape.m * shape.n) {
        return is_integer(dtype);
    }
    std::array<double, 2> largest{largest_part(a, dtype), largest_part(b, dtype)};
    mpi::join_over_ranks(context.comm, largest.data(), std::ssize(largest), MPI_MAX);
    return 4 * static_cast<double>(shape.k) * largest[0] * largest[1] < largest_number(dtype);
}

}  // namespace tilewise::multiply
