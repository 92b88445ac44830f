// What a thin product hands to the code of one instruction set: part of a large matrix X, a few vectors Y, and where
// Z = X·Y goes.
#pragma once

#include <cstdint>

namespace tilewise::kernel {

/// The most vectors, the columns of Y, that are multiplied in one pass over X.
inline constexpr std::int64_t most_thin_columns = 24;

/// Z (outer × columns) = or += X (outer × depth) · Y (depth × columns). X lies in memory row by row, or its transpose
/// does; each column of Y is without gaps; strides in elements.
template <class T> struct ThinPiece {
    const T* x;
    std::int64_t x_stride;
    std::int64_t outer, depth, columns;
    const T* y;
    std::int64_t y_stride;  ///< from a column of Y to the next
    T* z;
    std::int64_t z_row, z_column;  ///< from a row of Z to the next, from a column to the next
    bool accumulate;
};

template <class T> using ThinLoop = void (*)(const ThinPiece<T>& piece);

/// The code for one width of registers.
struct ThinSet {
    ThinLoop<float> rows32, transposed32;
    ThinLoop<double> rows64, transposed64;

    template <class T> ThinLoop<T> loop(bool transposed) const {
        if constexpr (sizeof(T) == sizeof(float)) {
            return transposed ? transposed32 : rows32;
        } else {
            return transposed ? transposed64 : rows64;
        }
    }
};

}  // namespace tilewise::kernel
