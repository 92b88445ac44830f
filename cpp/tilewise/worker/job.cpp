// Reads jobs with nlohmann's macros, and describes them, so that one test can hold both sides of the seam together.
#include "tilewise/worker/job.hpp"

#include <algorithm>
#include <bit>

#include "tilewise/kernel/gemm.hpp"
#include "tilewise/measure/buffer.hpp"
#include "tilewise/measure/measure.hpp"
#include "tilewise/stencil/exchange.hpp"
#include "tilewise/svd/exchange.hpp"
#include "tilewise/transpose/exchange.hpp"
#include "tilewise/worker/build.hpp"

namespace nlohmann {
template <class T> struct adl_serializer<std::optional<T>> {
    static void to_json(json& to, const std::optional<T>& value) { to = value ? json(*value) : json(nullptr); }
    static void from_json(const json& from, std::optional<T>& value) {
        value = from.is_null() ? std::nullopt : std::optional<T>(from.get<T>());
    }
};
}  // namespace nlohmann

namespace tilewise::measure {
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Stop, least, most, warmup, relative, seconds)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Point, kind, name, pattern, bytes, pairs, threads, size, dtype, blocks, path, layout,
                                   buffer, cache, check, shift, sync, gpus)
}  // namespace tilewise::measure

namespace tilewise::worker {

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(TileFields, path, offset, rows, columns)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(RegionFields, path, name, offset, rows, columns, dtype, byte_order, order, encoding,
                                   separator, line_numbers, pairs, tiles, file_bytes, transposed, generator, seed)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(VariantFields, algorithm, exchange, read, write, grid, copies, ranks, threads,
                                   kernel, remainder, root_write, tile, streaming, decomposition, depth, halo, blocks,
                                   start, inner)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(StencilFields, steps, radius, weights, boundary, planes, snapshot_every, snapshots,
                                   until_change, check_every)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(SvdFields, components, values_only, max_sweeps, tolerance, energy, power, oversample,
                                   basis, seed, keep_small, require_converged, panel_bytes, qr_blocks, scaled, u, s, vt,
                                   us)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(MeasureFields, stop, cpus, points)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Job, protocol, id, command, inputs, output, variant, stencil, svd, measure, dtype,
                                   verify, overflow, repeat, warmup, sync, bind, read_back, band_bytes, place, hints,
                                   trace, calibrate, progress, fault)

namespace {

// In the order of kernel::Boundary.
constexpr std::array<std::string_view, 4> boundary_names{"zero", "fixed", "periodic", "reflect"};

/// Sweeps of a pass by type and by form of weights, for the radii 1 to 4.
nlohmann::json best_steps() {
    nlohmann::json found;
    for (const Dtype dtype : {Dtype::float32, Dtype::float64}) {
        for (const bool star : {true, false}) {
            for (int radius = 1; radius <= 4; ++radius) {
                found[std::string(name_of(dtype))][star ? "star" : "box"].push_back(
                    kernel::best_steps(radius, star, dtype));
            }
        }
    }
    return found;
}

template <class T> std::vector<std::string> field_names() {
    std::vector<std::string> names;
    const nlohmann::json fields = T{};
    for (const auto& [name, value] : fields.items()) {
        names.push_back(name);
    }
    return names;
}

template <class Table> std::vector<std::string> names_of(const Table& table) {
    std::vector<std::string> names;
    for (const auto& entry : table) {
        names.emplace_back(entry.name);
    }
    return names;
}

Verify verify_of(const Job& job) {
    return job.verify == "fast" ? Verify::fast : job.verify == "serial" ? Verify::serial : Verify::off;
}

/// Parses `text`, where only fields that may have fractions have them: the library would make any number a whole one, somehow.
nlohmann::json parse_whole_numbers(const std::string& text) {
    constexpr std::array<std::string_view, 6> fractions{"weights", "until_change", "tolerance",
                                                        "energy",  "relative",     "seconds"};
    std::string key;
    return nlohmann::json::parse(text, [&](int, nlohmann::json::parse_event_t event, nlohmann::json& value) {
        if (event == nlohmann::json::parse_event_t::key) {
            key = value.get<std::string>();
        } else if (value.is_number_float() && std::find(fractions.begin(), fractions.end(), key) == fractions.end()) {
            throw UsageError("the job is not readable: '" + key + "' is " + value.dump() + ", and no whole number");
        }
        return true;
    });
}

}  // namespace

Job parse_job(const std::string& text) {
    try {
        const auto parsed = parse_whole_numbers(text);
        if (const int version = parsed.at("protocol").get<int>(); version != protocol) {
            throw UsageError("the job speaks protocol " + std::to_string(version) + ", this worker " +
                             std::to_string(protocol) + "; front and worker are of different installations");
        }
        if (parsed.at("command") == "quit") {
            Job job;
            job.command = "quit";
            return job;
        }
        return parsed.get<Job>();
    } catch (const nlohmann::json::exception& error) {
        throw UsageError(std::string("the job is not readable: ") + error.what());
    }
}

Dtype dtype_of(const std::string& name) {
    const auto dtype = dtype_named(name);
    if (!dtype) {
        throw UsageError("unknown dtype '" + name + "'");
    }
    return *dtype;
}

io::Region region_of(const RegionFields& f) {
    constexpr bool big_endian_machine = std::endian::native == std::endian::big;
    io::Region region{.path = f.path,
                      .name = f.name,
                      .offset = f.offset,
                      .rows = f.rows,
                      .columns = f.columns,
                      .dtype = dtype_of(f.dtype),
                      .swap_bytes = (f.byte_order == "big") != big_endian_machine,
                      .column_major = f.order == "F",
                      .file_bytes = f.file_bytes,
                      .transposed = f.transposed,
                      .generator = f.generator,
                      .seed = f.seed,
                      .tiles = {},
                      .text = {}};
    if (f.rows < 0 || f.columns < 0 || f.offset < 0) {
        throw UsageError(f.name + ": negative size or offset");
    }
    for (const TileFields& tile : f.tiles) {
        region.tiles.push_back(
            {tile.path, tile.offset, {{tile.rows[0], tile.rows[1]}, {tile.columns[0], tile.columns[1]}}});
    }
    if (f.encoding == "text") {
        if (f.separator.size() != 1 || f.line_numbers < 1) {
            throw UsageError(f.name + ": a text has one separator, and numbers on its lines");
        }
        region.text = io::TextLines{f.separator[0], f.line_numbers, f.pairs};
    } else if (f.encoding != "binary") {
        throw UsageError(f.name + ": unknown encoding '" + f.encoding + "'");
    }
    return region;
}

multiply::Options options_of(const Job& job) {
    const VariantFields& v = job.variant;
    return {.algorithm = v.algorithm,
            .exchange = v.exchange,
            .read = v.read,
            .write = v.write,
            .hints = job.hints,
            .grid = {v.grid[0], v.grid[1]},
            .copies = v.copies,
            .remainder = v.remainder == "last" ? grid::Remainder::last : grid::Remainder::spread,
            .kernel = kernel::kernel_named(v.kernel),
            .verify = verify_of(job),
            .overflow = job.overflow == "wrap" ? multiply::Overflow::wrap : multiply::Overflow::refuse,
            .repeat = std::max(1, job.repeat),
            .warmup = std::max(0, job.warmup),
            .sync = job.sync,
            .read_back = job.read_back,
            .tamper = job.fault == "element"};
}

transpose::Options transpose_options_of(const Job& job) {
    const VariantFields& v = job.variant;
    transpose::Options options{.algorithm = v.algorithm,
                               .exchange = v.exchange,
                               .read = v.read,
                               .write = v.write,
                               .hints = job.hints,
                               .grid = {v.grid[0], v.grid[1]},
                               .remainder = v.remainder == "last" ? grid::Remainder::last : grid::Remainder::spread,
                               .plain = v.kernel == "plain",
                               .tile = {},
                               .root_write = v.root_write == "view"    ? transpose::RootWrite::view
                                             : v.root_write == "whole" ? transpose::RootWrite::whole
                                                                       : transpose::RootWrite::rows,
                               .stage_bytes = job.band_bytes,
                               .verify = verify_of(job),
                               .repeat = std::max(1, job.repeat),
                               .warmup = std::max(0, job.warmup),
                               .sync = job.sync,
                               .tamper = job.fault == "element"};
    if (v.tile[0] > 0 && v.tile[1] > 0) {
        options.tile = kernel::TransposeTile{v.tile[0], v.tile[1], v.streaming};
    }
    return options;
}

stencil::Options stencil_options_of(const Job& job) {
    if (!job.stencil) {
        throw UsageError("a job for stencil says what to sweep with");
    }
    const VariantFields& v = job.variant;
    const StencilFields& s = *job.stencil;
    const auto boundary = std::find(boundary_names.begin(), boundary_names.end(), s.boundary);
    if (boundary == boundary_names.end()) {
        throw UsageError("unknown boundary '" + s.boundary + "'");
    }
    return {.steps = s.steps,
            .weights = {s.radius, s.weights},
            .boundary = static_cast<kernel::Boundary>(boundary - boundary_names.begin()),
            .planes = s.planes,
            .snapshot_every = s.snapshot_every,
            .until_change = s.until_change,
            .check_every = s.check_every,
            .exchange = v.exchange,
            .halo = v.halo,
            .depth = v.depth,
            .read = v.read,
            .write = v.write,
            .hints = job.hints,
            .grid = {v.grid[0], v.grid[1]},
            .remainder = v.remainder == "last" ? grid::Remainder::last : grid::Remainder::spread,
            .plain = v.kernel == "plain",
            .verify = verify_of(job),
            .repeat = std::max(1, job.repeat),
            .warmup = std::max(0, job.warmup),
            .sync = job.sync,
            .tamper = job.fault == "element"};
}

svd::Options svd_options_of(const Job& job) {
    if (!job.svd) {
        throw UsageError("a job for svd says what is wanted of the decomposition");
    }
    const VariantFields& v = job.variant;
    const SvdFields& s = *job.svd;
    return {.algorithm = v.algorithm,
            .exchange = v.exchange,
            .read = v.read,
            .write = v.write,
            .hints = job.hints,
            .blocks = v.blocks,
            .qr_blocks = s.qr_blocks,
            .remainder = v.remainder == "last" ? grid::Remainder::last : grid::Remainder::spread,
            .start = v.start,
            .inner = v.inner,
            .components = s.components,
            .values_only = s.values_only,
            .max_sweeps = s.max_sweeps,
            .tolerance = s.tolerance,
            .energy = s.energy,
            .power = s.power,
            .oversample = s.oversample,
            .basis = s.basis,
            .seed = s.seed,
            .keep_small = s.keep_small,
            .require_converged = s.require_converged,
            .panel_bytes = s.panel_bytes,
            .verify = verify_of(job),
            .repeat = std::max(1, job.repeat),
            .warmup = std::max(0, job.warmup),
            .sync = job.sync,
            .tamper = job.fault == "element"};
}

svd::Files svd_files_of(const Job& job) {
    if (!job.svd || !job.svd->s) {
        throw UsageError("a job for svd says where the singular values go");
    }
    const auto region = [](const std::optional<RegionFields>& fields) {
        return fields ? std::optional(region_of(*fields)) : std::nullopt;
    };
    return {.u = region(job.svd->u), .s = region_of(*job.svd->s), .vt = region(job.svd->vt), .us = region(job.svd->us)};
}

OneToOne one_to_one(const Job& job) {
    if (job.inputs.size() != 1 || !job.output) {
        throw UsageError(job.command + " takes one input and an output");
    }
    return {region_of(job.inputs[0]), region_of(*job.output)};
}

nlohmann::json describe() {
    const auto blas = kernel::blas_facts();
    const auto cuda = measure::cuda_facts();
    return {{"protocol", protocol},
            {"job", field_names<Job>()},
            {"region", field_names<RegionFields>()},
            {"tile", field_names<TileFields>()},
            {"variant", field_names<VariantFields>()},
            {"stencil", field_names<StencilFields>()},
            {"svd", field_names<SvdFields>()},
            {"measure", field_names<MeasureFields>()},
            {"stop", field_names<measure::Stop>()},
            {"point", field_names<measure::Point>()},
            {"kinds", names_of(measure::kinds)},
            {"algorithms",
             {{"multiply", names_of(multiply::algorithms)},
              {"transpose", names_of(transpose::algorithms)},
              {"stencil", {"sweeps"}},
              {"svd", svd::algorithm_names}}},
            {"exchanges",
             {{"multiply", multiply::exchange_names},
              {"transpose", transpose::exchange_names},
              {"stencil", stencil::exchange_names},
              {"svd", svd::exchange_names}}},
            {"halos", stencil::halo_names},
            {"boundaries", boundary_names},
            {"best_steps", best_steps()},
            {"io", names_of(io::strategies)},
            {"dtypes", names_of(dtypes)},
            {"version", build_version()},
            {"compiler", build_compiler()},
            {"blas", blas.library},
            {"blas_kernel", blas.kernel},
            {"cuda", cuda.version},
            {"gpus", cuda.gpus},
            {"gpu_trouble", cuda.trouble}};
}

}  // namespace tilewise::worker
