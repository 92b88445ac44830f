// The instruction sets, and the kernels that each has of its own; the best set here is used.
//
// A set is one file beside this one, which compiles every kernel for it (see kernels.hpp) and fills one Backend; a line
// in backend.cpp, which asks the processor for it; and its flags in CMakeLists.txt. Each kernel has a plain reference
// beside it, which the tests hold all sets against.
//
// Design: docs/design/products.md
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

#include "tilewise/kernel/factor/block_reflector.hpp"
#include "tilewise/kernel/product/apply_strip.hpp"
#include "tilewise/kernel/product/few_vectors.hpp"
#include "tilewise/kernel/product/gemm_set.hpp"
#include "tilewise/kernel/product/thin_strip.hpp"
#include "tilewise/kernel/sweep/sweep_strip.hpp"
#include "tilewise/kernel/text/text_quick.hpp"
#include "tilewise/kernel/transpose/transpose.hpp"

namespace tilewise::kernel {

enum class Instructions { baseline, avx2, avx512 };

/// The kernels of one set. `name` is a word for TILEWISE_KERNELS, which forces it: in tests, and where a processor says
/// more than it can.
struct Backend {
    std::string_view name;
    Instructions versions;  ///< which of the versions of plain loops (see versions.hpp) are called
    std::int64_t width;     ///< bytes of a register
    void (*transpose)(std::size_t item, const TransposeStrip& strip);
    SweepSet sweep;
    ThinSet thin;
    GemmSet gemm;
    CheckSet check;
    FewVectors<float> few32;
    FewVectors<double> few64;
    ApplyReflectors reflect;
    QuickReader (*quick_reader)(Dtype dtype);  ///< null for what is no plain decimal
};

struct KnownBackend {
    const Backend& set;
    bool (*supported)();  ///< by this processor
};

/// Every set that is compiled, the best first. The last is supported everywhere.
std::span<const KnownBackend> backends();

/// The one in use: as TILEWISE_KERNELS says, else the first that is supported; the same for the life of the process.
/// Throws UsageError where that names none, or one that this processor lacks.
const Backend& backend();

/// The set of that name. Throws UsageError as `backend` does.
const Backend& backend_named(std::string_view name);

}  // namespace tilewise::kernel
