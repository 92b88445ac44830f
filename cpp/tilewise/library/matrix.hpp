// Operands and results of operations: a matrix in the memory of the ranks, in any distribution, or in a file.
#pragma once

#include <complex>
#include <cstdint>
#include <memory>
#include <type_traits>
#include <vector>

#include "tilewise/base/dtype.hpp"

namespace tilewise::inline api {

/// Row by row, as C++ has it, or column by column, as Fortran does.
enum class Order { row_major, column_major };

/// rows × columns ranks, numbered row by row, or column by column as BLACS does with "Column".
struct ProcessGrid {
    int rows = 0, columns = 0;
    Order order = Order::row_major;
};

/// Blocks of row_block × column_block numbers are distributed over the grid in turn, in both directions; block (0, 0)
/// goes to the rank at (row_source, column_source). These are MB, NB, RSRC and CSRC of ScaLAPACK's descriptors.
struct BlockCyclic {
    ProcessGrid grid = {};
    std::int64_t row_block = 64, column_block = 64;
    int row_source = 0, column_source = 0;
};

/// Rows and columns [begin, end) of a matrix, which `rank` has in one piece of memory.
struct OwnedBlock {
    int rank = 0;
    std::int64_t row_begin = 0, row_end = 0, column_begin = 0, column_end = 0;
};

/// Which rank has which numbers of a rows × columns matrix; the same value on every rank. Ranks may have nothing.
/// All functions that make one throw UsageError for what is no distribution; none is collective.
class Distribution {
public:
    /// Cut into as many bands as there are ranks, whose sizes differ by at most one, larger ones first.
    static Distribution by_rows(std::int64_t rows, std::int64_t columns, int ranks);
    static Distribution by_columns(std::int64_t rows, std::int64_t columns, int ranks);
    /// The same in both directions: one block for each place of the grid.
    static Distribution by_blocks(std::int64_t rows, std::int64_t columns, const ProcessGrid& grid);
    static Distribution block_cyclic(std::int64_t rows, std::int64_t columns, const BlockCyclic& blocks);
    /// As ScaLAPACK's array descriptor DESC of nine numbers says, on a grid of ranks numbered as in its BLACS
    /// context. DESC[8] is a leading dimension for view().
    static Distribution scalapack(const int* descriptor, const ProcessGrid& grid);
    /// All on one of the ranks.
    static Distribution on_rank(std::int64_t rows, std::int64_t columns, int ranks, int rank);
    /// Blocks that cover the matrix once, in any number on any rank.
    static Distribution of_blocks(std::int64_t rows, std::int64_t columns, int ranks, std::vector<OwnedBlock> blocks);

    std::int64_t rows() const;
    std::int64_t columns() const;
    int ranks() const;
    /// Pieces of memory that `rank` needs: one, but for of_blocks. Then the size of one of them.
    std::int64_t pieces(int rank) const;
    std::int64_t local_rows(int rank, std::int64_t piece = 0) const;
    std::int64_t local_columns(int rank, std::int64_t piece = 0) const;

    struct Cut;  ///< not for users
    const Cut& cut() const { return *cut_; }

private:
    explicit Distribution(std::shared_ptr<const Cut> cut) : cut_(std::move(cut)) {}
    std::shared_ptr<const Cut> cut_;
};

/// A matrix that can be read. Copies are the same matrix.
class Matrix {
public:
    std::int64_t rows() const;
    std::int64_t columns() const;
    Dtype dtype() const;

    struct State;  ///< not for users
    State& state() const { return *state_; }
    bool is_transposed() const { return transposed_; }

protected:
    Matrix() = default;
    std::shared_ptr<State> state_;
    bool transposed_ = false;

    friend struct MatrixAccess;  ///< makes them
    friend Matrix transposed(const Matrix& matrix);
};

/// One that can be written, too.
class MutableMatrix : public Matrix {
    MutableMatrix() = default;
    friend struct MatrixAccess;  ///< makes them
};

/// Where a piece of a distribution begins in this rank's memory, and how many numbers lie from one of its rows to
/// the next, or with column_major from one of its columns to the next; 0: none between them.
template <class T> struct Piece {
    T* data = nullptr;
    std::int64_t leading_dimension = 0;
};

/// The ranks' own memory as a matrix of `dtype`: it is neither copied nor freed, and must live as long as it is
/// used. `pieces` are those of the calling rank. Order of storage and type are the same on all ranks. Not
/// collective; what is wrong with it the operation says.
MutableMatrix view(const Distribution& distribution, Dtype dtype, const std::vector<Piece<void>>& pieces,
                   Order order = Order::row_major);
Matrix view(const Distribution& distribution, Dtype dtype, const std::vector<Piece<const void>>& pieces,
            Order order = Order::row_major);

template <class T> constexpr Dtype dtype_of();

/// The same for distributions with one piece on each rank, its type taken from the pointer.
template <class T>
std::conditional_t<std::is_const_v<T>, Matrix, MutableMatrix> view(const Distribution& distribution, T* data,
                                                                   Order order = Order::row_major,
                                                                   std::int64_t leading_dimension = 0) {
    using Any = std::conditional_t<std::is_const_v<T>, const void, void>;
    return view(distribution, dtype_of<std::remove_const_t<T>>(), std::vector{Piece<Any>{data, leading_dimension}},
                order);
}

/// The same numbers, read as their transpose.
Matrix transposed(const Matrix& matrix);

template <class T> constexpr Dtype dtype_of() {
    if constexpr (std::is_integral_v<T>) {
        constexpr Dtype is_signed[] = {Dtype::int8, Dtype::int16, Dtype::int32, Dtype::int64};
        constexpr Dtype is_unsigned[] = {Dtype::uint8, Dtype::uint16, Dtype::uint32, Dtype::uint64};
        constexpr int power = sizeof(T) == 1 ? 0 : sizeof(T) == 2 ? 1 : sizeof(T) == 4 ? 2 : 3;
        return std::is_signed_v<T> ? is_signed[power] : is_unsigned[power];
    } else if constexpr (std::is_same_v<T, float>) {
        return Dtype::float32;
    } else if constexpr (std::is_same_v<T, double>) {
        return Dtype::float64;
    } else if constexpr (std::is_same_v<T, std::complex<float>>) {
        return Dtype::complex64;
    } else {
        static_assert(std::is_same_v<T, std::complex<double>>, "matrices hold integers, floats and complex numbers");
        return Dtype::complex128;
    }
}

}  // namespace tilewise::inline api
