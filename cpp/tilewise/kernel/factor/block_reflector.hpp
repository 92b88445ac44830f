// Many reflectors at once, applied to rows of a matrix: C ← (I − V·T·Vᵀ)·C, by a kernel that knows where V is zero.
//
//            V, h×k                      C, some columns of h rows
//          [ 1       ]
//          [ v 1     ]   reach: a         [ c c c c c c ]     W = Vᵀ·C,  C ← C − V·(T·W),  a strip of columns at a
//          [ v v 1   ]   column ends      [ c c c c c c ]     time, which stays in the first-level cache. Neither C
//          [   v v 1 ]   so many rows     [ c c c c c c ]     nor V is packed: rows of C are vectors, and numbers of V
//          [     v v ]   below its 1      [ c c c c c c ]     are broadcast.
//          [       v ]
#pragma once

#include <cstdint>

#include "tilewise/base/buffer.hpp"

namespace tilewise::kernel {

/// Columns of C that are computed together; a slab has a multiple of them.
inline constexpr std::int64_t slab_unit = 24;
/// Rows that a slab has beyond those of C, which are read and written as they are.
inline constexpr std::int64_t slab_margin = 8;
/// Reflectors in one block at most.
inline constexpr std::int64_t most_reflectors = 128;

/// V (rows×count) lies row by row, `stride` numbers apart; column c is zero but in rows [c, c + reach).
struct ReflectorShape {
    std::int64_t rows, count, reach, stride;
};

/// The kernel: C ← (I − V·T·Vᵀ)·C for `columns` columns of C. `memory` has 2·stride·columns numbers.
using ApplyReflectors = void (*)(const ReflectorShape& shape, const double* v, const double* t, double* c,
                                 std::int64_t c_step, std::int64_t columns, double* memory);

/// V row by row and T, as the kernel takes them; memory is kept from one block to the next.
class BlockReflector {
public:
    /// Makes place for V (rows×count, all zero), whose column c is zero but in rows [c, c + reach).
    void shape(std::int64_t rows, std::int64_t count, std::int64_t reach);
    /// Element (row, column) of V; `column` < count.
    double& v(std::int64_t row, std::int64_t column) const { return v_[row * stride_ + column]; }
    /// V's rows are so far apart.
    std::int64_t stride() const { return stride_; }
    /// T, upper triangle, column by column.
    void set_t(const double* t, std::int64_t stride);
    /// T from V and the reflectors' factors τ: H₀·H₁·… = I − V·T·Vᵀ. `t`: count×count, column by column.
    void make_t(const double* tau, double* t) const;

    /// The first `rows` rows of C, `stride` apart, of which `slab_margin` more have to be there.
    void apply(double* c, std::int64_t stride, std::int64_t width);

private:
    std::int64_t rows_ = 0, count_ = 0, reach_ = 0, stride_ = 0;
    Array<double> v_, t_, w_;
};

}  // namespace tilewise::kernel
