// Integer products are exact or refused: the bound that decides.
#pragma once

#include <array>
#include <string_view>

#include "tilewise/base/dtype.hpp"
#include "tilewise/mpi/context.hpp"
#include "tilewise/multiply/part.hpp"

namespace tilewise::multiply {

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

}  // namespace tilewise::multiply
