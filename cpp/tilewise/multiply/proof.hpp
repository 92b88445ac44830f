// Proves that C = A·B without computing it again: Freivalds' check, and the plain product on one rank for those who
// want to see it.
//
// Design: docs/design/products.md
#pragma once

#include <cstdint>
#include <memory>

#include "tilewise/base/outcome.hpp"
#include "tilewise/grid/layout.hpp"
#include "tilewise/io/region.hpp"
#include "tilewise/kernel/product/gemm.hpp"
#include "tilewise/mpi/context.hpp"
#include "tilewise/multiply/operands.hpp"

namespace tilewise::multiply {

/// A·(B·x) against C·x for two random vectors x, whose factor of column j is weighted by 1/‖B_j‖, row by row:
///
///     |residual_i| ≤ tolerance · Σ_k |a_ik|·‖(B·X)_k‖ + underflow        X = diag(x), (B·X)_k its row k
///
/// Exact for integers. A wrong element (i, j) is found where it is wrong by more than 4·tolerance·√n·‖A_i‖·‖B_j‖, and
/// the least numbers of the type. Rows of A and columns of B with numbers that are not finite are left out, and rows of
/// C with infinities where the product may have left the type's range: `share` is what remains. Costs one pass over A
/// and C, and two over B.
///
/// R. Freivalds, "Probabilistic machines can use less running time", 1977.
class RandomCheck {
public:
    RandomCheck() = default;
    RandomCheck(const RandomCheck&) = delete;
    RandomCheck& operator=(const RandomCheck&) = delete;
    virtual ~RandomCheck() = default;

    /// Before the first part of C: together `b` of all ranks are B once. @note Collective.
    void prepare(Context& context, const Part& b) {
        measure(context, b);
        weigh(context, columns());
    }
    /// Takes a part of C into account; its memory may be used for something else afterwards. Returns how many of its
    /// numbers are NaN or infinite, for which it is not read again where none is. Not collective.
    virtual std::int64_t see(Context& context, const Part& c) = 0;
    /// When all ranks have shown all of C: together `a` and `b` of all ranks are A and B once. @note Collective.
    Verification conclude(Context& context, const Part& a, const Part& b) {
        apply_b(context, b);
        join(context);
        apply_a(context, a);
        return judge(context);
    }

    /// The same where no rank has its share of A or B in memory at once: part after part, in this order, with `see`
    /// of what is in some columns once these are weighed. Those with a part are not collective, the others are.
    virtual void measure(Context& context, const Part& b) = 0;
    /// All of these columns of B were measured.
    virtual void weigh(Context& context, const grid::Range& columns) = 0;
    virtual grid::Range columns() const = 0;
    virtual void apply_b(Context& context, const Part& b) = 0;
    virtual void join(Context& context) = 0;
    virtual void apply_a(Context& context, const Part& a) = 0;
    virtual Verification judge(Context& context) = 0;
};

/// For the types that are computed in. `of_longest` above 0: a product that may be wrong by so many roundoffs of the
/// longest row times the longest column, as Strassen's; all of x is then weighted by the longest column:
///
///     |residual_i| ≤ tolerance · √n · max ‖A_i‖ + underflow            every |x_j| between ½ and 1 over max ‖B_j‖
std::unique_ptr<RandomCheck> make_random_check(Dtype dtype, const grid::Shape& shape, kernel::Kernel kernel,
                                               double of_longest = 0);

/// Rank 0 alone reads A, B and the written C back, multiplies with three plain loops and compares element by element:
/// |difference_ij| ≤ tolerance · ‖A_i‖ · ‖B_j‖ + underflow, with `of_longest` as above those of the longest row and
/// column. Needs all of A and B in rank 0's memory and 2·m·n·k plain operations. @note Collective.
Verification check_serially(Context& context, Dtype dtype, const io::Region& a, const io::Region& b,
                            const io::Region& c, double of_longest = 0);

/// How often the unit roundoff an element may be off by, relative to Σ|a||b|: the fast kernels sum k in slices, the
/// plain one in one go.
double error_growth(const grid::Shape& shape, kernel::Kernel kernel, Dtype dtype);

/// What an element may lose besides where products fall below the smallest normal number.
double underflow(std::int64_t k, Dtype dtype);

/// Half the distance from 1 to the next number of the type that is computed in, and its largest number.
double roundoff(Dtype dtype);
double largest_number(Dtype dtype);

}  // namespace tilewise::multiply
