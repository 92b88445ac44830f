// Three loops for every type.
#include "tilewise/kernel/product/gemm_loops.hpp"

#include <algorithm>
#include <cstdint>

namespace tilewise::kernel {
namespace {

template <class T> T element(const Operand& operand, std::int64_t row, std::int64_t column) {
    const auto* data = reinterpret_cast<const T*>(operand.data);
    return operand.transposed ? data[column * operand.stride + row] : data[row * operand.stride + column];
}

}  // namespace

void plain_gemm(const Product& p) {
    const Dtype dtype = p.dtype == Dtype::int64 ? Dtype::uint64 : p.dtype;  // the same bits, and it may wrap
    with_compute_type(dtype, [&](auto tag) {
        using T = typename decltype(tag)::type;
        for (std::int64_t i = 0; i < p.m; ++i) {
            T* c_row = reinterpret_cast<T*>(p.c) + i * p.c_stride;
            if (!p.accumulate) {
                std::fill(c_row, c_row + p.n, T{});
            }
            for (std::int64_t l = 0; l < p.k; ++l) {
                const T factor = element<T>(p.a, i, l);
                for (std::int64_t j = 0; j < p.n; ++j) {
                    c_row[j] += factor * element<T>(p.b, l, j);
                }
            }
        }
    });
}

}  // namespace tilewise::kernel
