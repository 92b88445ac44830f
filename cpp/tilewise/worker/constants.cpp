// The constants as one text in the program, made by the compiler. The build takes it from there into build.json, which
// the front reads (see cmake/build_json.cmake): the program need not run for that, and its numbers stand nowhere else.
// The version is one text, too, where `what` and `strings` find it.
// Design: docs/design/front.md
#include "tilewise/worker/constants.hpp"

#include <algorithm>
#include <array>
#include <initializer_list>
#include <string_view>

#include "tilewise/dist/column_qr.hpp"
#include "tilewise/dist/gram_eigen.hpp"
#include "tilewise/dist/tall_qr.hpp"
#include "tilewise/io/chunked.hpp"
#include "tilewise/io/strategy/uncached.hpp"
#include "tilewise/kernel/factor/jacobi.hpp"
#include "tilewise/kernel/factor/two_stage.hpp"
#include "tilewise/kernel/isa/backend.hpp"
#include "tilewise/kernel/product/gemm.hpp"
#include "tilewise/kernel/sweep/sweep.hpp"
#include "tilewise/kernel/text/text.hpp"
#include "tilewise/measure/measure.hpp"
#include "tilewise/mpi/communicator.hpp"
#include "tilewise/mpi/mpi.hpp"
#include "tilewise/mpi/sum.hpp"
#include "tilewise/multiply/algorithms.hpp"
#include "tilewise/multiply/block_product.hpp"
#include "tilewise/multiply/early_output.hpp"
#include "tilewise/stencil/stencil.hpp"
#include "tilewise/svd/jacobi.hpp"
#include "tilewise/svd/panels.hpp"
#include "tilewise/svd/proof.hpp"
#include "tilewise/svd/randomized_basis.hpp"
#include "tilewise/svd/svd.hpp"
#include "tilewise/svd/tall_rows.hpp"
#include "tilewise/transpose/transpose.hpp"
#include "tilewise/worker/events.hpp"
#include "tilewise/worker/front_connection.hpp"
#include "tilewise/worker/job.hpp"

namespace tilewise::worker {
namespace {

struct Constant {
    std::string_view name;  ///< the front's room that wants it, and its own
    std::array<std::int64_t, kernel::max_radius> values{};
    std::size_t count = 1;  ///< of the values; more than one make a list

    constexpr Constant(std::string_view called, std::int64_t value) : name(called), values{value} {}
    constexpr Constant(std::string_view called, bool star, Dtype dtype) : name(called), count(kernel::max_radius) {
        for (int radius = 1; radius <= kernel::max_radius; ++radius) {
            values[static_cast<std::size_t>(radius - 1)] = kernel::best_steps(radius, star, dtype);
        }
    }
};

constexpr std::int64_t width(Dtype dtype) { return static_cast<std::int64_t>(kernel::text_width(dtype)); }

constexpr Constant constants[] = {
    {"text.float16", width(Dtype::float16)},
    {"text.float32", width(Dtype::float32)},
    {"text.float64", width(Dtype::float64)},
    {"text.complex64", width(Dtype::complex64)},
    {"text.complex128", width(Dtype::complex128)},
    {"text.integer", width(Dtype::int64)},
    {"chunks.round_bytes", io::chunk_round_bytes},
    {"multiply.panel_width", multiply::Summa::panel_width},
    {"multiply.wide_panel_width", multiply::Summa::wide_panel_width},
    {"multiply.part_bytes", multiply::EarlyOutput::part_bytes},
    {"multiply.least_rows", multiply::EarlyOutput::least_rows},
    {"multiply.row_multiple", multiply::EarlyOutput::row_multiple},
    {"multiply.layer_piece_bytes", multiply::layer_piece_bytes},
    {"multiply.swap_piece_bytes", multiply::swap_piece_bytes},
    {"multiply.direct_bytes", io::DirectReads::under_way},
    {"transpose.mapped_strip_bytes", transpose::mapped_strip_bytes},
    {"transpose.bounce_bytes", transpose::bounce_bytes},
    {"transpose.requests_in_flight", transpose::requests_in_flight},
    {"stencil.max_radius", kernel::max_radius},
    {"stencil.best_steps_star_float32", true, Dtype::float32},
    {"stencil.best_steps_star_float64", true, Dtype::float64},
    {"stencil.best_steps_box_float32", false, Dtype::float32},
    {"stencil.best_steps_box_float64", false, Dtype::float64},
    {"stencil.patch_side", stencil::patch_side},
    {"stencil.points_swept_again", stencil::points_swept_again},
    {"stencil.points_per_patch_point", stencil::points_per_patch_point},
    {"stencil.proof_band_bytes", stencil::proof_band_bytes},
    {"svd.tall_percent", svd::tall_percent},
    {"svd.chunk_factor", dist::chunk_factor},
    {"svd.least_chunk_rows", svd::least_chunk_rows},
    {"svd.rotated_rows", kernel::rotated_rows},
    {"svd.factored_columns", dist::factored_columns},
    {"svd.reduced_columns", dist::reduced_columns},
    {"svd.shared_leaf", dist::shared_leaf},
    {"svd.applied_reflectors", dist::applied_reflectors},
    {"svd.band_width", kernel::band_width},
    {"svd.slab_columns", kernel::slab_columns},
    {"svd.sweeps_in_block", kernel::sweeps_in_block},
    {"svd.sketch_oversampling", dist::sketch_oversampling},
    {"svd.gram_panel_columns", dist::gram_panel_columns},
    {"svd.lane_panel_bytes", svd::Panels::lane_panel_bytes},
    {"svd.shared_panel_bytes", svd::Panels::shared_panel_bytes},
    {"svd.lane_vector_bytes", svd::Panels::lane_vector_bytes},
    {"svd.least_panel_rows", svd::Panels::least_panel_rows},
    {"svd.piece_bytes", svd::Panels::piece_bytes},
    {"svd.most_pieces", svd::Panels::most_pieces},
    {"svd.basis_blocks", svd::basis_blocks},
    {"svd.basis_columns", svd::basis_columns},
    {"svd.least_basis_blocks", svd::least_basis_blocks},
    {"svd.warm_readings", svd::warm_readings},
    {"svd.tall_panel_factor", svd::tall_panel_factor},
    {"svd.tall_panel_bytes", svd::tall_panel_bytes},
    {"svd.tall_lane_factor", svd::TallSteps::lane_factor},
    {"svd.probes", svd::probes},
    {"norm.summed_numbers", mpi::summed_numbers},
    {"seam.job_window", job_window},
    {"seam.line_patience", line_patience},
    {"seam.line_asked_after", line_asked_after},
    {"seam.line_asked_every", line_asked_every},
};

template <class Put> constexpr void write_number(std::int64_t value, const Put& put) {
    std::int64_t unit = 1;
    while (value / unit >= 10) {
        unit *= 10;
    }
    for (; unit > 0; unit /= 10) {
        put(static_cast<char>('0' + value / unit % 10));
    }
}

template <class Put> constexpr void write_text(std::string_view text, const Put& put) {
    for (const char letter : text) {
        put(letter);
    }
}

/// All constants as members of a JSON object, each behind a comma.
template <class Put> constexpr void write_constants(const Put& put) {
    for (const Constant& constant : constants) {
        write_text(",\"", put);
        write_text(constant.name, put);
        write_text(constant.count > 1 ? "\":[" : "\":", put);
        for (std::size_t i = 0; i < constant.count; ++i) {
            write_text(i > 0 ? "," : "", put);
            write_number(constant.values[i], put);
        }
        write_text(constant.count > 1 ? "]" : "", put);
    }
}

/// FNV-1a.
constexpr std::uint32_t digest = [] {
    std::uint32_t sum = 2166136261;
    write_constants([&sum](char letter) { sum = (sum ^ static_cast<unsigned char>(letter)) * 16777619; });
    return sum;
}();

template <class Put> constexpr void write_object(const Put& put) {
    write_text("{\"digest\":", put);
    write_number(digest, put);
    write_constants(put);
    put('}');
}

constexpr std::string_view mark = "@(#)tilewise-constants ";
constexpr std::size_t length = [] {
    std::size_t letters = mark.size();
    write_object([&letters](char) { ++letters; });
    return letters;
}();

struct Text {
    char letters[length + 1] = {};

    constexpr Text() {
        std::size_t at = 0;
        const auto put = [this, &at](char letter) { letters[at++] = letter; };
        write_text(mark, put);
        write_object(put);
    }
};

// In the program even where no code needs it as a whole.
[[gnu::used]] constexpr Text marked;

// Read when the program runs, and not copied into the code that uses it.
const volatile char version_text[] = "@(#)tilewise-worker " TILEWISE_VERSION;
constexpr std::size_t version_mark = sizeof "@(#)tilewise-worker " - 1;

/// The table of backends; of the one in use `used` is true.
std::vector<Json> backends() {
    const kernel::Backend* used = nullptr;
    try {
        used = &kernel::backend();
    } catch (const UsageError&) {  // jobs say it
    }
    std::vector<Json> rows;
    for (const auto& [set, supported] : kernel::backends()) {
        rows.push_back(Json{{"name", set.name}, {"supported", supported()}, {"used", &set == used}});
    }
    return rows;
}

template <class Table> std::vector<std::string> names_of(const Table& table) {
    std::vector<std::string> names;
    for (const auto& entry : table) {
        names.emplace_back(entry.name);
    }
    return names;
}

}  // namespace

std::string constants_text() { return {marked.letters + mark.size(), length - mark.size()}; }

std::uint32_t constants_digest() { return digest; }

std::string build_version() {
    std::string version;
    for (std::size_t i = version_mark; version_text[i] != '\0'; ++i) {
        version += version_text[i];
    }
    return version;
}

std::string build_compiler() { return TILEWISE_COMPILER; }

std::string describe() {
    Json said = Json::object();
    for (const auto& [kind, fields] : fields_of_jobs()) {
        said.add(kind, fields);
    }
    said.add("protocol", protocol);
    said.add("kinds", names_of(measure::kinds));
    said.add("algorithms", {{"multiply", names_of(multiply::algorithms)},
                            {"transpose", names_of(transpose::algorithms)},
                            {"stencil", std::array{"sweeps"}},
                            {"svd", names_of(svd::algorithms)}});
    said.add("exchanges", {{"multiply", multiply::exchange_names},
                           {"transpose", transpose::exchange_names},
                           {"stencil", stencil::exchange_names},
                           {"svd", svd::exchange_names}});
    said.add("halos", stencil::halo_names);
    said.add("boundaries", boundary_names);
    said.add("constants", Json::written(constants_text()));
    said.add("io", names_of(io::strategies));
    said.add("dtypes", names_of(dtypes));
    said.add("version", build_version());
    said.add("compiler", build_compiler());
    said.add("mpi_library", mpi::library_version());  // may be asked before MPI is started
    said.add("mpi_file", mpi::library_file());
    const auto blas = kernel::blas_facts();
    said.add("blas", blas.library);
    said.add("blas_kernel", blas.kernel);
    said.add("backends", backends());
    said.add("survives", mpi::can_survive());
    return said.text();
}

}  // namespace tilewise::worker
