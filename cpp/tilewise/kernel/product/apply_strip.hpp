// What a check hands to the code of one instruction set: lines of a block, and where their sums go.
#pragma once

#include <cstdint>
#include <type_traits>

namespace tilewise::kernel {

/// Reals are summed in double precision, whole numbers modulo 2⁶⁴.
template <class R> using SummedIn = std::conditional_t<std::is_integral_v<R>, R, double>;

/// Lines of reals, or of whole numbers, `stride` apart.
template <class R> struct CheckLines {
    const R* data;
    std::int64_t stride, count;

    const R* operator[](std::int64_t line) const { return data + line * stride; }
};

/// Numbers of a line that count: those between have no weight, and may be anything.
struct CheckRun {
    std::int64_t begin, end;
};

/// Lines [begin, end) that are rows: image[p][i] += Σ line_i·probe[p], and with their weights the sums of sizes.
template <class R> struct CheckRows {
    using Number = SummedIn<R>;
    CheckLines<R> lines;
    std::int64_t begin, end;
    const Number* probe[4];
    const double* weights;
    Number* image[4];
    std::int64_t step;  ///< from one of an image to the next
    double *sums, *squares;
    const CheckRun* runs;
    std::int64_t run_count;
};

/// Lines that are columns, [begin, end) of whose numbers are taken: image[p] += Σ line_j·probe[p][j].
template <class R> struct CheckColumns {
    using Number = SummedIn<R>;
    CheckLines<R> lines;
    std::int64_t begin, end;
    const Number* probe[2];  ///< of complex numbers pairs
    const double* weights;
    Number* image[2];        ///< pairs, too
    double *sums, *squares;  ///< of each real
};

/// Sizes of reals: of lines [begin, end) that are columns, or at [begin, end) of all lines, which are rows.
template <class R> struct CheckSizes {
    CheckLines<R> lines;
    std::int64_t begin, end;
    double *largest, *squares;  ///< of each column of reals
};

/// The loops for one type: of real numbers, and of pairs that are complex ones.
template <class R> struct CheckLoops {
    void (*rows)(const CheckRows<R>& rows);  ///< with two probes
    void (*columns)(const CheckColumns<R>& columns);
    void (*complex_rows)(const CheckRows<R>& rows) = nullptr;  ///< with four
    void (*complex_columns)(const CheckColumns<R>& columns) = nullptr;
    void (*sizes_of_lines)(const CheckSizes<R>& sizes) = nullptr;
    void (*sizes_across)(const CheckSizes<R>& sizes) = nullptr;
};

struct CheckSet {
    CheckLoops<float> float32;
    CheckLoops<double> float64;
    CheckLoops<std::uint64_t> integers;  ///< signed or not; sizes and complex ones have no loops

    template <class R> const CheckLoops<R>& loops() const {
        if constexpr (std::is_same_v<R, float>) {
            return float32;
        } else if constexpr (std::is_same_v<R, double>) {
            return float64;
        } else {
            return integers;
        }
    }
};

}  // namespace tilewise::kernel
