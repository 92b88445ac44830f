// Times the product kernel alone: reads `TYPE M N K KERNEL THREADS` from standard input line by line, and answers each
// with the seconds of one product of matrices that lie in memory. Ends at the end of input.
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <iostream>
#include <string>
#include <type_traits>

#include "tilewise/base/buffer.hpp"
#include "tilewise/base/dtype.hpp"
#include "tilewise/kernel/product/gemm.hpp"

namespace {

using namespace tilewise;

template <class T> void fill(Buffer& buffer, std::size_t count) {
    if (buffer.bytes() < count * sizeof(T)) {
        buffer = Buffer(count * sizeof(T));
    }
    auto* numbers = reinterpret_cast<T*>(buffer.data());
    std::uint64_t state = 1;
    for (std::size_t i = 0; i < count; ++i) {
        state = state * 6364136223846793005U + 1442695040888963407U;
        numbers[i] = std::is_integral_v<T> ? static_cast<T>(state >> 40U)
                                           : static_cast<T>(static_cast<double>(state >> 40U) * 0x1p-24);
    }
}

}  // namespace

int main() {
    std::string type, kernel, last;
    std::int64_t m = 0, n = 0, k = 0;
    int threads = 0;
    Buffer a, b, c;
    while (std::cin >> type >> m >> n >> k >> kernel >> threads) {
        const Dtype dtype = type == "float32" ? Dtype::float32 : type == "int64" ? Dtype::int64 : Dtype::float64;
        if (const std::string shape = type + std::to_string(m) + "x" + std::to_string(n) + "x" + std::to_string(k);
            shape != last) {
            const auto filled = [&](Buffer& buffer, std::int64_t count) {
                const auto size = static_cast<std::size_t>(count);
                dtype == Dtype::float32 ? fill<float>(buffer, size)
                : dtype == Dtype::int64 ? fill<std::int64_t>(buffer, size)
                                        : fill<double>(buffer, size);
            };
            filled(a, m * k);
            filled(b, k * n);
            filled(c, m * n);
            last = shape;
        }
        const kernel::Product product{.dtype = dtype,
                                      .m = m,
                                      .n = n,
                                      .k = k,
                                      .a = {.data = a.data(), .stride = k},
                                      .b = {.data = b.data(), .stride = n},
                                      .c = c.data(),
                                      .c_stride = n};
        const kernel::Kernel chosen = kernel::kernel_named(kernel);
        const int levels = chosen == kernel::Kernel::strassen ? kernel::strassen_levels(dtype, m, n, k) : 0;
        const auto start = std::chrono::steady_clock::now();
        levels > 0 ? kernel::strassen(product, threads, levels) : kernel::gemm(product, threads, chosen);
        const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
        std::cout << seconds.count() << ' ' << kernel::gemm_kernel_name(chosen, dtype);
        if (levels > 0) {
            std::cout << ", Strassen's product, levels " << levels;
        }
        std::cout << std::endl;
    }
}
