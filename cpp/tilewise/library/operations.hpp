// The four operations, over all ranks of the caller's communicator: from matrices anywhere to matrices anywhere.
//
// All of them are collective over `comm`, which they duplicate and leave unchanged. They read all
// of their input before they write, so that a result may lie where an input lay, except with `verify`. They throw an
// Error of the same kind on every rank, and the results are then not to be used; where a rank fails while others
// already wait for it, the job is aborted. They leave the process as they found it: signals, affinity, threads of
// the BLAS. Threads beside the ranks are started and ended within the call; MPI is called by the calling thread
// alone.
#pragma once

#include "tilewise/base/error.hpp"
#include "tilewise/library/options.hpp"
#include "tilewise/mpi/mpi.hpp"

// An inline namespace: within the library `tilewise::multiply` is the operation's folder.
namespace tilewise::inline api {

/// C = A·B, computed in the type of C: a 64-bit integer, float or complex one, no narrower than those of A and B.
/// @note Collective.
Report multiply(MPI_Comm comm, const Matrix& a, const Matrix& b, const MutableMatrix& c,
                const MultiplyOptions& options = {});

/// B = the transpose of A, number by number, of the same type. @note Collective.
Report transpose(MPI_Comm comm, const Matrix& a, const MutableMatrix& b, const TransposeOptions& options = {});

/// B = A after `steps` sweeps, computed in float32 where both are float16 or float32, else in float64. @note
/// Collective.
Report stencil(MPI_Comm comm, const Matrix& a, const MutableMatrix& b, const StencilOptions& options);

/// A = U·diag(values)·Vᵀ. U has as many rows as A, Vᵀ as many columns; both are float32 or float64, of a complex A
/// complex (and Vᵀ is Vᴴ), and have K columns or rows. Without them values alone are found. Where the sweeps do not
/// converge, that is thrown as an Error of kind `verification`. @note Collective.
Svd svd(MPI_Comm comm, const Matrix& a, const std::optional<MutableMatrix>& u, const std::optional<MutableMatrix>& vt,
        const SvdOptions& options = {});

}  // namespace tilewise::inline api
