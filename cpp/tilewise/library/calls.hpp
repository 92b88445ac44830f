// The operations under names that are no folder's: library/operations.cpp calls them, which may not see both.
#pragma once

#include "tilewise/library/options.hpp"
#include "tilewise/mpi/mpi.hpp"

namespace tilewise::library {

Report call_multiply(MPI_Comm comm, const Matrix& a, const Matrix& b, const MutableMatrix& c,
                     const MultiplyOptions& options);
Report call_transpose(MPI_Comm comm, const Matrix& a, const MutableMatrix& b, const TransposeOptions& options);
Report call_stencil(MPI_Comm comm, const Matrix& a, const MutableMatrix& b, const StencilOptions& options);
Svd call_svd(MPI_Comm comm, const Matrix& a, const std::optional<MutableMatrix>& u,
             const std::optional<MutableMatrix>& vt, const SvdOptions& options);

}  // namespace tilewise::library
