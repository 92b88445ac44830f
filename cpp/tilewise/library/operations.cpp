// The doors of the library.
#include "tilewise/library/operations.hpp"

#include "tilewise/library/calls.hpp"

namespace tilewise::inline api {

Report multiply(MPI_Comm comm, const Matrix& a, const Matrix& b, const MutableMatrix& c,
                const MultiplyOptions& options) {
    return library::call_multiply(comm, a, b, c, options);
}

Report transpose(MPI_Comm comm, const Matrix& a, const MutableMatrix& b, const TransposeOptions& options) {
    return library::call_transpose(comm, a, b, options);
}

Report stencil(MPI_Comm comm, const Matrix& a, const MutableMatrix& b, const StencilOptions& options) {
    return library::call_stencil(comm, a, b, options);
}

Svd svd(MPI_Comm comm, const Matrix& a, const std::optional<MutableMatrix>& u, const std::optional<MutableMatrix>& vt,
        const SvdOptions& options) {
    return library::call_svd(comm, a, u, vt, options);
}

}  // namespace tilewise::inline api
