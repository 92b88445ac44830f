// The only place that asks what instructions the processor has.
#include "tilewise/kernel/isa/backend.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <string>

#include "tilewise/base/error.hpp"

namespace tilewise::kernel {

extern const Backend baseline;
#if defined(__x86_64__)
extern const Backend avx2, avx512;
#elif defined(__aarch64__)
extern const Backend neon;
#endif

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

const std::array known{
#if defined(__x86_64__)
    KnownBackend{avx512, has_avx512}, KnownBackend{avx2, has_avx2},
#elif defined(__aarch64__)
    KnownBackend{neon, always},
#endif
    KnownBackend{baseline, always}};

const Backend& chosen() {
    const char* forced = std::getenv("TILEWISE_KERNELS");
    return forced != nullptr && *forced != '\0'
               ? backend_named(forced)
               : std::ranges::find_if(known, [](auto& one) { return one.supported(); })->set;
}

}  // namespace

std::span<const KnownBackend> backends() { return known; }

const Backend& backend() {
    static const Backend& used = chosen();
    return used;
}

const Backend& backend_named(std::string_view name) {
    std::string able;
    for (const auto& [set, supported] : known) {
        if (supported()) {
            if (set.name == name) {
                return set;
            }
            able += (able.empty() ? "" : ", ") + std::string(set.name);
        }
    }
    throw UsageError("TILEWISE_KERNELS is '" + std::string(name) + "'; this processor has " + able);
}

}  // namespace tilewise::kernel
