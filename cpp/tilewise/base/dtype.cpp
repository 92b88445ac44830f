// Looks dtypes up by the names that the seam and the command line use.
#include "tilewise/base/dtype.hpp"

#include "tilewise/base/error.hpp"

namespace tilewise {

std::optional<Dtype> dtype_named(std::string_view name) {
    for (const auto& entry : dtypes) {
        if (entry.name == name) {
            return entry.dtype;
        }
    }
    return std::nullopt;
}

void refuse_compute_type(Dtype dtype) {
    throw UsageError("cannot compute in " + std::string(name_of(dtype)) +
                     "; expected one of int64, uint64, float32, float64, complex64, complex128");
}

}  // namespace tilewise
