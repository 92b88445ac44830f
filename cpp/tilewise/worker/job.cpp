// Reads jobs with nlohmann's macros, and describes them, so that one test can hold both sides of the seam together.
// What the job says of its journal, as the operations want it, and what was found there: as facts, and as warnings
// where it is not what was written.
#include "tilewise/worker/job.hpp"

#include <algorithm>
#include <bit>
#include <charconv>

#include <nlohmann/json.hpp>

#include "tilewise/base/names.hpp"
#include "tilewise/kernel/isa/backend.hpp"
#include "tilewise/kernel/product/gemm.hpp"
#include "tilewise/kernel/text/number.hpp"
#include "tilewise/measure/measure.hpp"
#include "tilewise/mpi/communicator.hpp"
#include "tilewise/mpi/mpi.hpp"
#include "tilewise/stencil/evolution.hpp"
#include "tilewise/svd/jacobi.hpp"
#include "tilewise/svd/svd.hpp"
#include "tilewise/worker/constants.hpp"
#include "tilewise/worker/run.hpp"

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
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Point, kind, name, pattern, bytes, pairs, threads, size, dtype, kernels, blocks,
                                   path, layout, buffer, cache, check, shift, sync, pause, gpus, direct)
}  // namespace tilewise::measure

namespace tilewise::io {
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Made, path, name, bytes, root)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Seen, path, name, bytes, modified, inode, begin, end, pages, digest, root)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Site, host, view, made, seen, memory, percent, node_ranks)
}  // namespace tilewise::io

namespace tilewise::worker {

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(TileFields, path, offset, rows, columns, strides)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(FilterFields, name, byte_order, item)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(ChunksFields, shape, steps, start, numbers, clipped, filters, paths, offsets, bytes,
                                   skipped, fill)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(RegionFields, path, name, offset, rows, columns, dtype, byte_order, order, encoding,
                                   separator, line_numbers, pairs, decimal, missing, text_end, hash_comments, tiles,
                                   fill, chunks, file_bytes, transposed, generator, seed, steps)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(VariantFields, algorithm, exchange, between_nodes, read, write, grid, copies, ranks,
                                   threads, kernel, remainder, root_write, tile, streaming, decomposition, depth, halo,
                                   reorder, blocks, start, inner)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(StencilFields, steps, radius, weights, boundary, planes, snapshot_every, snapshots,
                                   states, until_change, check_every)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(SvdFields, components, values_only, max_sweeps, tolerance, off_squares, energy,
                                   power, oversample, basis, seed, keep_small, require_converged, panel_bytes,
                                   qr_blocks, share_eigen, scaled, u, s, vt, us)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(StackFields, extents, apart)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(ConvertFields, row, column, scale)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(MeasureFields, stop, cpus, points)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(StandingFields, start, block, sum)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(SavedFields, slot, version, facts, pieces)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(JournalFields, folder, start, standing, every, ends, slots, saved)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Job, protocol, constants, id, command, inputs, output, variant, stencil, svd, stack,
                                   convert, measure, journal, dtype, verify, overflow, symmetric, repeat, warmup, sync,
                                   bind, read_back, survive, queue, band_bytes, stage, tolerance, place, hints, trace,
                                   site, progress, fault)

namespace {

/// In the order of kernel::Boundary::Kind, but for the last.
constexpr std::array<std::string_view, 7> boundary_names{"fixed",   "periodic", "reflect", "mirror",
                                                         "nearest", "constant", "zero"};

/// A name, of `constant` with a number: `constant:3.5`, `constant:nan`.
kernel::Boundary boundary_named(const std::string& text) {
    const std::size_t colon = text.find(':');
    const std::size_t index = index_of(boundary_names, text.substr(0, colon), "boundary");
    if (index == boundary_names.size() - 1 && colon == std::string::npos) {
        return kernel::Boundary::zero;
    }
    kernel::Boundary boundary(static_cast<kernel::Boundary::Kind>(index));
    if ((boundary == kernel::Boundary::constant) != (colon != std::string::npos)) {
        throw UsageError("boundary '" + text + "': constant takes a number after a colon, and nothing else does");
    }
    if (boundary == kernel::Boundary::constant) {
        const char* end = text.data() + text.size();
        const kernel::Scan scan = kernel::scan(text.data() + colon + 1, end, boundary.value);
        if (scan.fault != kernel::Fault::none || scan.end != end) {
            throw UsageError("boundary '" + text + "': a number must follow the colon");
        }
    }
    return boundary;
}

/// The table of backends; of the one in use `used` is true.
nlohmann::json backends() {
    const kernel::Backend* used = nullptr;
    try {
        used = &kernel::backend();
    } catch (const UsageError&) {  // jobs say it
    }
    nlohmann::json rows = nlohmann::json::array();
    for (const auto& [set, supported] : kernel::backends()) {
        rows.push_back({{"name", set.name}, {"supported", supported()}, {"used", &set == used}});
    }
    return rows;
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

/// Fills what the options of all operations on files have in common.
template <class Options> void fill_files(Options& options, const VariantFields& v, const Job& job) {
    options.read = io::strategy_named(v.read);
    options.write = io::strategy_named(v.write);
    options.hints = job.hints;
    options.sync = job.sync;
}

/// And those whose part in memory can be repeated and proved.
template <class Options> void fill(Options& options, const Job& job) {
    const VariantFields& v = job.variant;
    fill_files(options, v, job);
    options.remainder = enum_named<grid::Remainder>(grid::remainder_names, v.remainder, "remainder");
    options.verify = enum_named<Verify>(verify_names, job.verify, "verification");
    options.repeat = std::max(1, job.repeat);
    options.warmup = std::max(0, job.warmup);
}

/// What only some variants say, and others leave empty.
template <class Enum, class Names>
Enum named_or(Enum standard, const Names& names, const std::string& name, std::string_view what) {
    return name.empty() ? standard : enum_named<Enum>(names, name, what);
}

/// Parses `text`, where only fields that may have fractions have them: the library would make any number a whole one,
/// somehow.
nlohmann::json parse_whole_numbers(const std::string& text) {
    constexpr std::array<std::string_view, 10> fractions{"weights", "until_change", "tolerance", "off_squares",
                                                         "energy",  "relative",     "seconds",   "scale",
                                                         "every",   "ends"};
    std::string key;
    return nlohmann::json::parse(text, [&](int, nlohmann::json::parse_event_t event, nlohmann::json& value) {
        if (event == nlohmann::json::parse_event_t::key) {
            key = value.get<std::string>();
        } else if (value.is_number_float() && std::find(fractions.begin(), fractions.end(), key) == fractions.end()) {
            throw UsageError("the job is not readable: '" + key + "' is " + value.dump() +
                             ", which is not a whole number");
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
                             std::to_string(protocol) + "; front and worker come from different installations");
        }
        if (parsed.at("command") == "quit") {
            Job job;
            job.command = "quit";
            return job;
        }
        Job job = parsed.get<Job>();
        if (job.constants != 0 && job.constants != constants_digest()) {
            throw UsageError("the job was planned by other constants than this worker's", -1, 0,
                             "build.json next to the worker, or the front, is of another build: reinstall tilewise");
        }
        constexpr std::array<std::string_view, 3> places{"core", "socket", "node"};
        index_of(places, job.place, "place");
        return job;
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

multiply::Options options_of(const Job& job) {
    const VariantFields& v = job.variant;
    multiply::Options options;
    fill(options, job);
    options.algorithm = multiply::algorithm_named(v.algorithm);
    options.exchange = multiply::exchange_named(v.exchange);
    options.grid = {v.grid[0], v.grid[1]};
    options.copies = v.copies;
    options.kernel = kernel::kernel_named(v.kernel);
    options.overflow = enum_named<multiply::Overflow>(multiply::overflow_names, job.overflow, "overflow mode");
    options.symmetric = job.symmetric;
    options.tolerance = job.tolerance;
    options.stage = {.m = job.stage[0], .n = job.stage[1], .k = job.stage[2]};
    options.read_back = job.read_back;
    options.journal = journal_of(job);
    return options;
}

convert::Options convert_options_of(const Job& job) {
    convert::Options options;
    fill_files(options, job.variant, job);
    options.grid = {job.variant.grid[0], job.variant.grid[1]};
    options.band_bytes = job.band_bytes;
    options.read_back = job.read_back;
    if (job.convert) {
        options.first_row = job.convert->row;
        options.first_column = job.convert->column;
        options.scale = job.convert->scale;
    }
    return options;
}

norm::Options norm_options_of(const Job& job) {
    return {.read = io::strategy_named(job.variant.read), .hints = job.hints, .band_bytes = job.band_bytes};
}

transpose::Options transpose_options_of(const Job& job) {
    using transpose::RootWrite;
    const VariantFields& v = job.variant;
    transpose::Options options;
    fill(options, job);
    options.algorithm = transpose::algorithm_named(v.algorithm);
    if (v.exchange != "none") {  // of an algorithm that has one
        options.exchange = mpi::exchange_named(v.exchange, transpose::exchange_names);
    }
    options.grid = {v.grid[0], v.grid[1]};
    options.plain = kernel::kernel_named(v.kernel) == kernel::Kernel::plain;
    options.root_write = named_or(RootWrite::rows, transpose::root_write_names, v.root_write, "root write mode");
    options.stage_bytes = job.band_bytes;
    options.queue = job.queue;
    options.journal = journal_of(job);
    if (v.tile[0] > 0 && v.tile[1] > 0) {
        options.tile = kernel::TransposeTile{v.tile[0], v.tile[1], v.streaming};
    }
    return options;
}

stencil::Options stencil_options_of(const Job& job) {
    if (!job.stencil) {
        throw UsageError("a stencil job needs its weights");
    }
    const VariantFields& v = job.variant;
    const StencilFields& s = *job.stencil;
    stencil::Options options;
    fill(options, job);
    options.steps = s.steps;
    options.weights = {.radius = s.radius, .values = s.weights};
    options.boundary = boundary_named(s.boundary);
    options.planes = s.planes;
    options.snapshot_every = s.snapshot_every;
    options.until_change = s.until_change;
    options.check_every = s.check_every;
    options.exchange = stencil::exchange_named(v.exchange);
    options.halo = stencil::halo_named(v.halo);
    options.depth = v.depth;
    options.tile_rows = v.tile[0];
    options.tile_columns = v.tile[1];
    for (const RegionFields& state : s.states) {
        options.states.push_back(region_of(state));
    }
    options.checkpoints = checkpoints_of(job);
    options.grid = {v.grid[0], v.grid[1]};
    options.plain = kernel::kernel_named(v.kernel) == kernel::Kernel::plain;
    return options;
}

svd::Options svd_options_of(const Job& job) {
    if (!job.svd) {
        throw UsageError("an svd job needs the field 'svd'");
    }
    const VariantFields& v = job.variant;
    const SvdFields& s = *job.svd;
    svd::Options options;
    fill(options, job);
    options.algorithm = svd::algorithm_named(v.algorithm);
    options.exchange = svd::exchange_named(v.exchange);
    options.blocks = v.blocks;
    options.qr_blocks = s.qr_blocks;
    options.share_eigen = s.share_eigen;
    options.start = named_or(svd::StartKind::eigen, svd::start_names, v.start, "start");
    options.inner = named_or(kernel::Inner::blocks, svd::inner_names, v.inner, "inner solver");
    options.components = s.components;
    options.values_only = s.values_only;
    options.max_sweeps = s.max_sweeps;
    options.tolerance = s.tolerance;
    options.off_squares = s.off_squares;
    options.energy = s.energy;
    options.power = s.power;
    options.oversample = s.oversample;
    options.basis = s.basis;
    options.seed = s.seed;
    options.keep_small = s.keep_small;
    options.require_converged = s.require_converged;
    options.panel_bytes = s.panel_bytes;
    options.checkpoints = checkpoints_of(job);
    return options;
}

svd::Files svd_files_of(const Job& job) {
    if (!job.svd || !job.svd->s) {
        throw UsageError("an svd job needs the output of the singular values");
    }
    const auto region = [](const std::optional<RegionFields>& fields) {
        return fields ? std::optional(region_of(*fields)) : std::nullopt;
    };
    return {.u = region(job.svd->u), .s = region_of(*job.svd->s), .vt = region(job.svd->vt), .us = region(job.svd->us)};
}

static nlohmann::json description() {
    const auto blas = kernel::blas_facts();
    return {{"protocol", protocol},
            {"job", field_names<Job>()},
            {"region", field_names<RegionFields>()},
            {"tile", field_names<TileFields>()},
            {"variant", field_names<VariantFields>()},
            {"stencil", field_names<StencilFields>()},
            {"svd", field_names<SvdFields>()},
            {"stack", field_names<StackFields>()},
            {"convert", field_names<ConvertFields>()},
            {"measure", field_names<MeasureFields>()},
            {"site", field_names<io::Site>()},
            {"made", field_names<io::Made>()},
            {"seen", field_names<io::Seen>()},
            {"stop", field_names<measure::Stop>()},
            {"point", field_names<measure::Point>()},
            {"kinds", names_of(measure::kinds)},
            {"algorithms",
             {{"multiply", names_of(multiply::algorithms)},
              {"transpose", names_of(transpose::algorithms)},
              {"stencil", {"sweeps"}},
              {"svd", names_of(svd::algorithms)}}},
            {"exchanges",
             {{"multiply", multiply::exchange_names},
              {"transpose", transpose::exchange_names},
              {"stencil", stencil::exchange_names},
              {"svd", svd::exchange_names}}},
            {"halos", stencil::halo_names},
            {"boundaries", boundary_names},
            {"constants", nlohmann::json::parse(constants_text())},
            {"io", names_of(io::strategies)},
            {"dtypes", names_of(dtypes)},
            {"version", build_version()},
            {"compiler", build_compiler()},
            {"mpi_library", mpi::library_version()},  // may be asked before MPI is started
            {"mpi_file", mpi::library_file()},
            {"blas", blas.library},
            {"blas_kernel", blas.kernel},
            {"backends", backends()},
            {"survives", mpi::can_survive()}};
}

std::string describe() { return description().dump(2); }

namespace {

std::uint64_t hexadecimal(const std::string& digits) {
    std::uint64_t value = 0;
    const char* end = digits.data() + digits.size();
    if (digits.empty() || std::from_chars(digits.data(), end, value, 16).ptr != end) {
        throw UsageError("the journal says '" + digits + "' where a hexadecimal number should be");
    }
    return value;
}

std::vector<io::Standing> pieces_of(const std::vector<StandingFields>& fields) {
    std::vector<io::Standing> pieces;
    for (const StandingFields& piece : fields) {
        const auto& [top, bottom, left, right] = piece.block;
        pieces.push_back({piece.start, {{top, bottom}, {left, right}}, hexadecimal(piece.sum)});
    }
    return pieces;
}

}  // namespace

io::JournalOptions journal_of(const Job& job) {
    if (!job.journal) {
        return {};
    }
    return {.folder = job.journal->folder,
            .start = job.journal->start,
            .flushed = job.sync,
            .standing = pieces_of(job.journal->standing)};
}

io::CheckpointOptions checkpoints_of(const Job& job) {
    if (!job.journal || job.journal->slots.empty()) {
        return {};
    }
    io::CheckpointOptions options{.folder = job.journal->folder,
                                  .start = job.journal->start,
                                  .flushed = job.sync,
                                  .every = job.journal->every,
                                  .ends = job.journal->ends,
                                  .slots = {},
                                  .saved = {}};
    for (const RegionFields& slot : job.journal->slots) {
        options.slots.push_back(region_of(slot));
    }
    for (const SavedFields& saved : job.journal->saved) {
        io::Saved& state = options.saved.emplace_back(
            io::Saved{.slot = saved.slot, .version = saved.version, .facts = {}, .pieces = pieces_of(saved.pieces)});
        for (const std::string& fact : saved.facts) {
            state.facts.push_back(std::bit_cast<double>(hexadecimal(fact)));
        }
    }
    return options;
}

void add_resumed(Outcome& outcome, const std::optional<io::Resumed>& resumed) {
    if (!resumed || resumed->started == 0) {
        return;
    }
    outcome.result.add(
        "resumed",
        {{"starts", resumed->started + 1}, {"kept_pieces", resumed->kept}, {"spoilt_pieces", resumed->spoilt}});
    if (resumed->spoilt > 0) {
        outcome.warnings.push_back(std::to_string(resumed->spoilt) + (resumed->spoilt == 1 ? " piece" : " pieces") +
                                   " of the result did not hold what the journal says, and went through the job again");
    }
}

void add_resumed(Outcome& outcome, const std::optional<io::Restored>& restored) {
    if (!restored || restored->started == 0) {
        return;
    }
    outcome.result.add("resumed", {{"starts", restored->started + 1},
                                   {"sweeps", restored->version.value_or(0)},
                                   {"spoilt_checkpoints", restored->spoilt}});
    if (restored->spoilt > 0) {
        outcome.warnings.push_back(
            (restored->spoilt == 1 ? std::string("a checkpoint") : std::string("two checkpoints")) +
            " did not hold what the journal says; the job went on from " +
            (restored->version ? "sweep " + std::to_string(*restored->version) : std::string("the beginning")));
    }
}

}  // namespace tilewise::worker
