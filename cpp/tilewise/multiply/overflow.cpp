// Exact bounds in 128 bits: of every row of A against the largest numbers in each row of B, and the mirror image.
#include "tilewise/multiply/overflow.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <sstream>
#include <vector>

#include "tilewise/kernel/codec/convert.hpp"
#include "tilewise/mpi/sum.hpp"
#include "tilewise/mpi/together.hpp"

namespace tilewise::multiply {
namespace {

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

}  // namespace tilewise::multiply
