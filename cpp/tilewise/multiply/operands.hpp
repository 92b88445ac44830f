// A rank's blocks of A, B and C, and what is looked for in their numbers: integers that may overflow, rows and columns
// that Strassen's product would lose too much of, and numbers that are not finite.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "tilewise/base/dtype.hpp"
#include "tilewise/grid/layout.hpp"
#include "tilewise/kernel/codec/convert.hpp"
#include "tilewise/kernel/product/gemm.hpp"
#include "tilewise/mpi/context.hpp"
#include "tilewise/mpi/sum.hpp"

namespace tilewise::multiply {

struct Part {
    kernel::Operand operand;
    grid::Block block;

    /// The same numbers as a block of the transpose.
    Part transposed() const { return {{operand.data, operand.stride, !operand.transposed}, block.transposed()}; }
};

/// Rows of an operand, from the one at `begin` on, as columns of its transpose.
inline kernel::Operand rows_transposed(const kernel::Operand& a, Dtype dtype, std::int64_t begin) {
    const std::int64_t numbers = a.transposed ? begin : begin * a.stride;
    return {a.data + numbers * static_cast<std::int64_t>(size_of(dtype)), a.stride, !a.transposed};
}

/// Of integers that could leave the 64-bit type: refuse the product, or let it wrap modulo 2⁶⁴.
enum class Overflow { refuse, wrap };
inline constexpr std::array<std::string_view, 2> overflow_names{"refuse", "wrap"};

/// Throws UsageError on every rank if an element of A·B could leave the 64-bit type: where Σ_k of what a_ik · b_kj can
/// be at most, over all columns j of B, is beyond it for a row i of A, and likewise over all rows of A for a column of
/// B. Together `a` and `b` of all ranks are A and B once. Reads them once, and twice more only where k · max|A| ·
/// max|B| does not decide. @note Collective.
void refuse_overflow(Context& context, Dtype dtype, const grid::Shape& shape, const Part& a, const Part& b);

/// Whether k products of numbers that are at most so large stay within the type, whatever their signs.
bool fits_certainly(Dtype dtype, std::int64_t k, double largest_a, double largest_b);

/// No element is wrong by more than `growth` roundoffs times the 2-norms of A's longest row and B's longest column.
struct Halving {
    int levels = 0;
    double growth = 0;

    double bound(Dtype dtype) const;
};

/// Whether an error that is small beside the longest row and column alone may be had for time: where it is asked for,
/// or where a `tolerance` (0: none) says how small it must be.
bool may_halve(kernel::Kernel kernel, double tolerance);

/// As many levels as pay for the largest part that a rank computes in one step, with a bound within `tolerance`. Throws
/// UsageError where `strassen` is asked for and cannot be had for this type or tolerance.
Halving halving_of(const grid::Layout& layout, Dtype dtype, kernel::Kernel kernel, double tolerance);

/// Throws UsageError for numbers that are not finite or next to the limits of float64, and, where no `tolerance` was
/// given, where rows of A or columns of B differ so much in length that little would be right of the shortest.
/// @note Collective; one pass over A and B.
void refuse_unlike(Context& context, Dtype dtype, const grid::Shape& shape, const Part& a, const Part& b,
                   const Halving& halving, double tolerance);

/// Whether the largest numbers of A and B say so of all of A·B; looked up where that takes less than a look at C.
/// Together `a` and `b` of all ranks are A and B once. @note Collective.
bool is_certainly_finite(const Context& context, Dtype dtype, const grid::Shape& shape, const Part& a, const Part& b);

/// The numbers of a product that are NaN or infinite, found at no cost where there are none.
///
///     A  [ . . N . ]      C  [ N N N N ]      a number of A that is not finite makes all of its row of C so, also
///        [ . . . . ]         [ . . N . ]      where it meets zeros, and one of B makes its column so: where all of C
///                                             is finite, A and B are, without a look at them
///
/// How many there are in C, and where it has some, in A and B. A C without rows or columns tells nothing of these.
struct NotFinite {
    std::int64_t a = 0, b = 0, c = 0;

    static std::int64_t of(const Context& context, Dtype dtype, const Part& part) {
        return kernel::count_not_finite(part.operand.data, part.block.size(), dtype, context.threads);
    }

    /// Adds up what all ranks have found in their parts of C; `look` counts what each has of A and B. @note Collective.
    template <class Look> void add_up(const Context& context, const Look& look) {
        mpi::sum_over_ranks(context.comm, &c, 1);
        if (c > 0) {
            look();
            std::array<std::int64_t, 2> inputs{a, b};
            mpi::sum_over_ranks(context.comm, inputs.data(), std::ssize(inputs));
            a = inputs[0];
            b = inputs[1];
        }
    }
};

}  // namespace tilewise::multiply
