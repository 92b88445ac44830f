// The table of backends: instruction sets, and the kernels that are written for each; the best one here is used.
//
//     name       a word for TILEWISE_KERNELS, which forces it: in tests, and where a processor says more than it can
//     versions   which of the versions of plain loops (see versions.hpp) are called
//     transpose, sweep, thin, gemm, …   kernels of its own; where one is missing, what all share does its work
//
// Each kernel has a plain reference beside it, which the tests hold all rows of this table against.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

#include "tilewise/kernel/product/gemm_set.hpp"
#include "tilewise/kernel/product/thin_strip.hpp"
#include "tilewise/kernel/sweep/sweep_strip.hpp"
#include "tilewise/kernel/transpose/transpose_strip.hpp"

namespace tilewise::kernel {

enum class Instructions { baseline, avx2, avx512 };

struct Backend {
    std::string_view name;
    bool (*supported)();  ///< by this processor
    Instructions versions;
    void (*transpose)(std::size_t item, const TransposeStrip& strip);
    const SweepSet* sweep;
    const ThinSet* thin;
    const GemmSet* gemm;
};

/// Every row, the best first. The last is supported everywhere.
std::span<const Backend> backends();

/// The one in use: as TILEWISE_KERNELS says, else the first that is supported; the same for the life of the process.
/// Throws UsageError where that names none, or one that this processor lacks.
const Backend& backend();

/// The row of that name. Throws UsageError as `backend` does.
const Backend& backend_named(std::string_view name);

}  // namespace tilewise::kernel
