// Matrices in files, named by their paths, and made from nothing.
#pragma once

#include <string>

#include "tilewise/library/matrix.hpp"
#include "tilewise/mpi/mpi.hpp"

namespace tilewise::inline api {

/// The matrix in a .npy file (versions 1 to 3, either order of storage, either byte order; one dimension is a
/// column) or in a .tiles folder. Rank 0 reads the header and tells the others. Throws UsageError or IoError on
/// every rank. @note Collective.
Matrix open(MPI_Comm comm, const std::string& path);

/// The place of the numbers in a file without a header.
struct RawFile {
    std::int64_t rows = 0, columns = 0;
    Dtype dtype = Dtype::float64;
    std::int64_t offset = 0;  ///< bytes before the first number
    Order order = Order::row_major;
    bool big_endian = false;
};
/// @note Collective.
Matrix open(MPI_Comm comm, const std::string& path, const RawFile& raw);

struct NewFile {
    Order order = Order::row_major;
    bool replace = false;  ///< an older file of this name; else that is refused
};
/// A .npy file, or raw numbers in a file of any other name, for an operation to write. The numbers are written
/// beside it, into PATH.part, which gets its name when the operation has succeeded, and goes when nobody wants it
/// any more. @note Collective.
MutableMatrix create(MPI_Comm comm, const std::string& path, std::int64_t rows, std::int64_t columns, Dtype dtype,
                     const NewFile& file = {});

/// Numbers that need no file: every rank makes its own, the same matrix on any number of ranks.
enum class Generator { random, normal, identity, ramp, graded };
Matrix generated(std::int64_t rows, std::int64_t columns, Dtype dtype, Generator generator, std::uint64_t seed = 0);

}  // namespace tilewise::inline api
