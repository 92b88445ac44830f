// Every kernel, compiled for the instruction set of the file that includes this one.
//
// CMakeLists.txt gives that file its flags. Nothing that another object could share may be instantiated here, or the
// linker might give its code to a processor without the set: all is in unnamed namespaces, and a test looks at the
// objects.
#pragma once

#include "tilewise/kernel/factor/reflect.hpp"
#include "tilewise/kernel/isa/backend.hpp"
#include "tilewise/kernel/product/apply_walk.hpp"
#include "tilewise/kernel/product/few_vectors_tiles.hpp"
#include "tilewise/kernel/product/gemm_block.hpp"
#include "tilewise/kernel/product/thin_walk.hpp"
#include "tilewise/kernel/sweep/sweep_plain.hpp"
#include "tilewise/kernel/sweep/sweep_wave.hpp"
#include "tilewise/kernel/text/text_quick_ways.hpp"
#include "tilewise/kernel/transpose/transpose_walk.hpp"

namespace tilewise::kernel {
namespace {

/// By registers of `width` bytes, of which a product's tile holds `rows` × `vectors`; `tiles`: what the record calls
/// these.
template <std::size_t width, std::size_t rows, std::size_t vectors>
constexpr Backend backend_of(std::string_view name, Instructions versions, std::string_view tiles) {
    return {.name = name,
            .versions = versions,
            .width = static_cast<std::int64_t>(width),
            .transpose = walk<width>,
            .sweep = {.width = width,
                      .plain32 = plain_row<float, width>,
                      .plain64 = plain_row<double, width>,
                      .wave = wave<width>},
            .thin = {Thin<float, width>::rows, Thin<float, width>::transposed, Thin<double, width>::rows,
                     Thin<double, width>::transposed},
            .gemm = {tiles, Blocks<float, width, rows, vectors>::set, Blocks<double, width, rows, vectors>::set,
                     Blocks<std::uint64_t, width, rows, vectors>::set},
            .check = {check_loops<float, width>(), check_loops<double, width>(), check_loops<std::uint64_t, width>()},
            .few32 = few_vectors<float, width, rows, vectors>,
            .few64 = few_vectors<double, width, rows, vectors>,
            .reflect = reflect<width, rows, vectors>,
            .quick_reader = reader_of<Widest>};
}

}  // namespace
}  // namespace tilewise::kernel
