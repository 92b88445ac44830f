// The rows, how a processor says what it is, and the model's arithmetic, rounded to whole tiles.
//
// Tiles of our own over OpenBLAS on one thread of a Zen 5, 1024² and 2048²: 1.19 and 1.15 in double precision with
// AVX-512, 1.02 in single; with AVX2 1.03 and 1.01 in double precision and 0.98 in single. Of a Zen 4, 256² to 2048²:
// 1.01 to 1.05 and 1.05 to 1.08 with AVX-512; with AVX2 1.00 to 1.09 and 0.97 to 1.00, for every depth from 192 to 512.
// Where nothing was measured, BLAS is the choice. For Arm's cores OpenBLAS has kernels by hand, and SVE where there is
// any.
#include "tilewise/kernel/product/gemm_blocking.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#if defined(__x86_64__)
#include <cpuid.h>
#elif defined(__aarch64__) && defined(__linux__)
#include <sys/auxv.h>
#endif

namespace tilewise::kernel {
namespace {

using Kind = ProcessorId::Kind;
constexpr int any = 0xffff;
constexpr std::int64_t never = std::numeric_limits<std::int64_t>::max();
constexpr OwnTiles large{.least_single = 3072, .doubles = true}, most{.least_single = 256, .doubles = true},
    neither{.least_single = never, .doubles = false};
constexpr std::string_view
    measured = "measured, AVX-512 and AVX2",
    blas_is_faster =
        "measured: BLAS is ahead by up to a fifth, as the first-level cache is small for the tiles' panels",
    not_known = "not measured", by_hand = "BLAS's kernels are written for these cores; the tiles were only emulated";

// clang-format off
constexpr std::array rows{
    //        name                        kind         family, models       KiB of caches      tiles    because
    Processor{"Zen 5",                   Kind::amd,    0x1a, 0,     any,   {1024, 4096},  large,   measured},
    Processor{"Zen 4",                   Kind::amd,    0x19, 0x10,  0x1f,  {1024, 4096},  most,    measured},
    Processor{"Zen 4",                   Kind::amd,    0x19, 0x60,  0xaf,  {1024, 4096},  most,    measured},
    Processor{"Zen 3",                   Kind::amd,    0x19, 0,     any,   {512, 4096},   neither, blas_is_faster},
    Processor{"Zen, Zen 2",              Kind::amd,    0x17, 0,     any,   {512, 4096},   neither, not_known},
    Processor{"other AMD",               Kind::amd,    any,  0,     any,   {512, 2048},   neither, not_known},
    Processor{"Granite Rapids",          Kind::intel,  6,    0xad,  0xae,  {2048, 4096},  neither, not_known},
    Processor{"Emerald Rapids",          Kind::intel,  6,    0xcf,  0xcf,  {2048, 4096},  neither, not_known},
    Processor{"Sapphire Rapids",         Kind::intel,  6,    0x8f,  0x8f,  {2048, 1920},  neither, not_known},
    Processor{"Ice Lake-SP",             Kind::intel,  6,    0x6a,  0x6c,  {1280, 1536},  neither, not_known},
    Processor{"Skylake-SP, Cascade Lake", Kind::intel,  6,    0x55,  0x55,  {1024, 1408},  neither, not_known},
    Processor{"other Intel",             Kind::intel,  any,  0,     any,   {256, 2048},   neither, not_known},
    Processor{"Neoverse N1",             Kind::arm,    0x41, 0xd0c, 0xd0c, {1024, 1024},  neither, by_hand},
    Processor{"Neoverse V1",             Kind::arm,    0x41, 0xd40, 0xd40, {1024, 1024},  neither, by_hand},
    Processor{"Neoverse N2",             Kind::arm,    0x41, 0xd49, 0xd49, {1024, 1024},  neither, by_hand},
    Processor{"Neoverse V2",             Kind::arm,    0x41, 0xd4f, 0xd4f, {2048, 1024},  neither, by_hand},
    Processor{"other Arm",               Kind::arm,    any,  0,     any,   {512, 1024},   neither, by_hand},
    Processor{"unknown",                 Kind::other,  any,  0,     any,   {256, 1024},   neither, not_known}};
// clang-format on

ProcessorId this_processor() {
#if defined(__x86_64__)
    unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
    if (__get_cpuid(0, &eax, &ebx, &ecx, &edx) == 0) {
        return {};
    }
    const Kind kind = ebx == signature_AMD_ebx ? Kind::amd : ebx == signature_INTEL_ebx ? Kind::intel : Kind::other;
    if (__get_cpuid(1, &eax, &ebx, &ecx, &edx) == 0) {
        return {};
    }
    const unsigned family = (eax >> 8 & 0xf) + ((eax >> 8 & 0xf) == 0xf ? eax >> 20 & 0xff : 0);
    const unsigned model = (eax >> 4 & 0xf) + (eax >> 12 & 0xf0);
    return {kind, static_cast<int>(family), static_cast<int>(model)};
#elif defined(__aarch64__) && defined(__linux__)
    constexpr unsigned long readable = 1UL << 11;  // HWCAP_CPUID: programs may read what names the core
    if ((getauxval(AT_HWCAP) & readable) != 0) {
        std::uint64_t midr = 0;
        asm("mrs %0, MIDR_EL1" : "=r"(midr));
        return {Kind::arm, static_cast<int>(midr >> 24 & 0xff), static_cast<int>(midr >> 4 & 0xfff)};
    }
    return {Kind::arm, 0, 0};
#elif defined(__aarch64__)
    return {Kind::arm, 0, 0};
#else
    return {};
#endif
}

}  // namespace

std::span<const Processor> processors() { return rows; }

const Processor& processor_of(const ProcessorId& id) {
    return *std::ranges::find_if(rows, [&](const Processor& row) {
        return row.kind == Kind::other || (row.kind == id.kind && (row.family == any || row.family == id.family) &&
                                           row.first_model <= id.model && id.model <= row.last_model);
    });
}

const Processor& processor() {
    static const Processor& row = processor_of(this_processor());
    return row;
}

Blocking blocking_for(const Caches& caches, std::int64_t rows, std::int64_t columns, std::int64_t size) {
    constexpr std::int64_t weight = 4, depth_unit = 32, KiB = 1024;
    // Fewer columns of B would have A packed too often: packing a number costs as much as 20 multiply-adds.
    constexpr std::int64_t least_columns = 1024;
    const auto half = static_cast<double>(caches.second * KiB / 2 / size);
    const double ideal = std::sqrt(half / static_cast<double>(weight));
    const auto whole = [](double value, std::int64_t unit) {
        return std::max<std::int64_t>(1, std::llround(value / static_cast<double>(unit))) * unit;
    };
    Blocking blocking{};
    blocking.rows = whole(ideal, rows);
    blocking.depth = whole(half / static_cast<double>(blocking.rows), depth_unit);
    const std::int64_t wanted = std::max(least_columns, caches.third * KiB / (blocking.depth * size));
    blocking.columns = (wanted + columns - 1) / columns * columns;
    return blocking;
}

}  // namespace tilewise::kernel
