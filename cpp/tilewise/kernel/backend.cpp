// The rows, and the only place that asks what instructions the processor has.
#include "tilewise/kernel/backend.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <string>

#include "tilewise/base/error.hpp"

namespace tilewise::kernel {
namespace {

bool always() { return true; }

#if defined(__x86_64__)
bool has_avx2() {
    __builtin_cpu_init();
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi2") && __builtin_cpu_supports("fma");
}
bool has_avx512() {
    return has_avx2() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") &&
           __builtin_cpu_supports("avx512vl");
}
#endif

const std::array rows{
#if defined(__x86_64__)
    Backend{"avx512", has_avx512, Instructions::avx512, transpose_strip_64, &sweep_set_64, &thin_set_64, &gemm_set_64},
    Backend{"avx2", has_avx2, Instructions::avx2, transpose_strip_32, &sweep_set_32, &thin_set_32, &gemm_set_32},
#elif defined(__aarch64__)
    Backend{"neon", always, Instructions::baseline, transpose_strip_16, &sweep_set_16, &thin_set_16, &gemm_set_16},
#endif
    Backend{"baseline", always, Instructions::baseline, transpose_strip_16, &sweep_set_16, &thin_set_16, &gemm_set_16}};

const Backend& chosen() {
    const char* forced = std::getenv("TILEWISE_KERNELS");
    return forced != nullptr && *forced != '\0'
               ? backend_named(forced)
               : *std::ranges::find_if(rows, [](auto& row) { return row.supported(); });
}

}  // namespace

std::span<const Backend> backends() { return rows; }

const Backend& backend() {
    static const Backend& used = chosen();
    return used;
}

const Backend& backend_named(std::string_view name) {
    std::string able;
    for (const Backend& row : rows) {
        if (row.supported()) {
            if (row.name == name) {
                return row;
            }
            able += (able.empty() ? "" : ", ") + std::string(row.name);
        }
    }
    throw UsageError("TILEWISE_KERNELS is '" + std::string(name) + "'; this processor has " + able);
}

}  // namespace tilewise::kernel
