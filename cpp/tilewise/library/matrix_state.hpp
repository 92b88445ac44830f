// What is behind a Matrix: a region, and where it stands for memory, who has what of it.
#pragma once

#include <functional>
#include <span>
#include <string>

#include "tilewise/io/in_memory.hpp"
#include "tilewise/library/matrix.hpp"
#include "tilewise/mpi/context.hpp"

namespace tilewise::inline api {

struct Distribution::Cut {
    std::int64_t rows = 0, columns = 0;
    int ranks = 1;
    std::function<std::vector<grid::Share>(int rank)> shares_of;
    std::uint64_t fingerprint = 0;  ///< differs where anything about it does
};

struct Matrix::State {
    io::Region region;
    std::optional<io::InMemory> memory;  ///< its pieces as they were given, until `require` has looked at them
    std::vector<std::int64_t> leading;
    std::uint64_t fingerprint = 0;
    std::string final_path;  ///< of a new file, until it has its name
    bool removes_part = false;

    State() = default;
    State(const State&) = delete;
    State& operator=(const State&) = delete;
    ~State();
};

struct MatrixAccess {
    static Matrix make(std::shared_ptr<Matrix::State> state);
    static MutableMatrix make_mutable(std::shared_ptr<Matrix::State> state);
};

}  // namespace tilewise::inline api

namespace tilewise::library {

/// The region as an operation takes it; called `name` in messages unless it has a path.
io::Region region_of(const Matrix& matrix, const std::string& name);

/// Throws UsageError on every rank unless all ranks mean the same matrices, for this communicator, and the pieces of
/// memory can be what they are said to be. @note Collective.
void require_sound(Context& context, const std::vector<const Matrix*>& matrices);

/// Gives new files their names. @note Collective.
void name_files(Context& context, const std::vector<const MutableMatrix*>& results);

/// Throws UsageError unless the blocks cover the matrix once; n·log n for n blocks.
void require_cover(std::int64_t rows, std::int64_t columns, const std::vector<grid::Block>& blocks,
                   const std::string& name);

}  // namespace tilewise::library
