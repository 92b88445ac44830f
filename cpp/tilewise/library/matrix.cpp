// Views of memory as regions, and the looks at them that an operation takes before it begins.
#include "tilewise/library/matrix.hpp"

#include <array>
#include <cstdio>

#include "tilewise/base/random.hpp"
#include "tilewise/io/file.hpp"
#include "tilewise/library/matrix_state.hpp"
#include "tilewise/mpi/together.hpp"

namespace tilewise::inline api {
namespace {

template <class T> std::shared_ptr<Matrix::State> state_of_view(const Distribution& distribution, Dtype dtype,
                                                                const std::vector<Piece<T>>& pieces, Order order) {
    auto state = std::make_shared<Matrix::State>();
    state->region.rows = distribution.rows();
    state->region.columns = distribution.columns();
    state->region.dtype = dtype;
    state->region.column_major = order == Order::column_major;
    state->memory = io::InMemory{distribution.ranks(), distribution.cut().shares_of, {}};
    for (const auto& [data, leading_dimension] : pieces) {
        // What an operation only reads is not written to.
        state->memory->mine.push_back({static_cast<std::byte*>(const_cast<void*>(static_cast<const void*>(data)))});
        state->leading.push_back(leading_dimension);
    }
    state->fingerprint = mix(distribution.cut().fingerprint ^
                             mix(static_cast<std::uint64_t>(dtype) * 2 + (order == Order::column_major ? 1 : 0)));
    return state;
}

}  // namespace

Matrix::State::~State() {
    if (removes_part && !final_path.empty()) {  // nobody has written it
        std::remove(region.path.c_str());
    }
}

Matrix MatrixAccess::make(std::shared_ptr<Matrix::State> state) {
    Matrix matrix;
    matrix.state_ = std::move(state);
    return matrix;
}

MutableMatrix MatrixAccess::make_mutable(std::shared_ptr<Matrix::State> state) {
    MutableMatrix matrix;
    matrix.state_ = std::move(state);
    return matrix;
}

std::int64_t Matrix::rows() const { return transposed_ ? state_->region.columns : state_->region.rows; }
std::int64_t Matrix::columns() const { return transposed_ ? state_->region.rows : state_->region.columns; }
Dtype Matrix::dtype() const { return state_->region.dtype; }

MutableMatrix view(const Distribution& distribution, Dtype dtype, const std::vector<Piece<void>>& pieces, Order order) {
    return MatrixAccess::make_mutable(state_of_view(distribution, dtype, pieces, order));
}

Matrix view(const Distribution& distribution, Dtype dtype, const std::vector<Piece<const void>>& pieces, Order order) {
    return MatrixAccess::make(state_of_view(distribution, dtype, pieces, order));
}

Matrix transposed(const Matrix& matrix) {
    Matrix result = matrix;
    result.transposed_ = !matrix.transposed_;
    return result;
}

}  // namespace tilewise::inline api

namespace tilewise::library {
namespace {

/// Finds the strides of this rank's pieces, or says what is wrong with them.
void measure_pieces(Matrix::State& state, int rank) {
    io::InMemory& memory = *state.memory;
    const std::vector<grid::Share> shares = memory.shares_of(rank);
    if (shares.empty() && memory.mine.size() == 1) {  // a rank that has nothing may say so with a null pointer
        memory.mine.clear();
    }
    if (shares.size() != memory.mine.size()) {
        throw UsageError("a view of " + std::to_string(memory.mine.size()) + " pieces was given where the rank has " +
                         std::to_string(shares.size()));
    }
    for (std::size_t index = 0; index < shares.size(); ++index) {
        io::LocalShare& local = memory.mine[index];
        const bool down = state.region.column_major;
        const std::int64_t least = down ? shares[index].height() : shares[index].width();
        const std::int64_t leading = state.leading[index] == 0 ? least : state.leading[index];
        if (shares[index].size() == 0) {
            continue;
        }
        if (local.data == nullptr) {
            throw UsageError("a view has no memory for " + std::to_string(shares[index].height()) + "x" +
                             std::to_string(shares[index].width()) + " numbers that the rank has");
        }
        if (leading < least) {
            throw UsageError("the leading dimension of a view is " + std::to_string(leading) + ", and " +
                             std::to_string(least) + " numbers form one row");
        }
        local.row_stride = down ? 1 : leading;
        local.column_stride = down ? leading : 1;
    }
}

}  // namespace

io::Region region_of(const Matrix& matrix, const std::string& name) {
    const Matrix::State& state = matrix.state();
    io::Region region = state.region;
    region.transposed = matrix.is_transposed();
    region.memory = state.memory ? &*state.memory : nullptr;
    if (region.name.empty()) {
        region.name = name;
    }
    return region;
}

void require_sound(Context& context, const std::vector<const Matrix*>& matrices) {
    // Every rank's sum is in it twice, as it is and upside down, so that one reduction finds the least and the
    // largest.
    std::array<std::uint64_t, 2> sums{};
    for (const Matrix* matrix : matrices) {
        sums[0] = mix(sums[0] ^ mix(matrix->state().fingerprint + (matrix->is_transposed() ? 1 : 0)));
    }
    sums[1] = ~sums[0];
    mpi::check(MPI_Allreduce(MPI_IN_PLACE, sums.data(), 2, MPI_UINT64_T, MPI_MIN, context.comm.get()), "MPI_Allreduce");
    mpi::together(context.comm, [&] {
        if (sums[0] != ~sums[1]) {
            throw UsageError(
                "the ranks name different matrices: shape, type, distribution and order must be the "
                "same on all of them");
        }
        for (const Matrix* matrix : matrices) {
            Matrix::State& state = matrix->state();
            if (state.memory && state.memory->ranks != context.comm.size()) {
                throw UsageError("a matrix is distributed over " + std::to_string(state.memory->ranks) +
                                 " ranks, and the communicator has " + std::to_string(context.comm.size()));
            }
            if (state.memory) {
                measure_pieces(state, context.comm.rank());
            }
        }
    });
}

void name_files(Context& context, const std::vector<const MutableMatrix*>& results) {
    mpi::together(context.comm, [&] {
        for (const MutableMatrix* result : results) {
            Matrix::State& state = result->state();
            if (state.final_path.empty()) {
                continue;
            }
            if (context.comm.rank() == 0 && std::rename(state.region.path.c_str(), state.final_path.c_str()) != 0) {
                throw system_error(state.region.name + ": could not be given its name", errno);
            }
        }
    });
    for (const MutableMatrix* result : results) {
        Matrix::State& state = result->state();
        if (!state.final_path.empty()) {
            state.region.path = state.final_path;
            state.final_path.clear();
        }
    }
}

}  // namespace tilewise::library
