// Tells the simulator of the work, and has the set in use do it.
#include "tilewise/kernel/product/few_vectors.hpp"

#include "tilewise/kernel/factor/lapack.hpp"
#include "tilewise/kernel/isa/backend.hpp"

namespace tilewise::kernel {

template <class T>
void multiply_few(std::int64_t m, std::int64_t k, std::int64_t vectors, const Strided<T>& a, const T* b, T* c) {
    tell<T>(effort::gemm(static_cast<double>(m), static_cast<double>(vectors), static_cast<double>(k)));
    if constexpr (sizeof(T) == sizeof(float)) {
        backend().few32(m, k, vectors, a, b, c);
    } else {
        backend().few64(m, k, vectors, a, b, c);
    }
}

template void multiply_few(std::int64_t, std::int64_t, std::int64_t, const Strided<float>&, const float*, float*);
template void multiply_few(std::int64_t, std::int64_t, std::int64_t, const Strided<double>&, const double*, double*);

}  // namespace tilewise::kernel
