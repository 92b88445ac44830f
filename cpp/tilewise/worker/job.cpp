// Reads jobs: regions with byte orders and storage orders resolved, options with names looked up, and of chunks nothing
// believed that a later step would index with.
#include "tilewise/worker/job.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <tuple>

#include <nlohmann/json.hpp>

#include "tilewise/base/names.hpp"
#include "tilewise/base/work.hpp"
#include "tilewise/kernel/product/gemm.hpp"
#include "tilewise/kernel/text/number.hpp"
#include "tilewise/svd/jacobi.hpp"
#include "tilewise/worker/constants.hpp"

namespace tilewise::worker {
namespace {

using nlohmann::json;

void take(const json& value, grid::Range& to) { to = {value.at(0), value.at(1)}; }
void take(const json& value, grid::Grid& to) { to = {value.at(0), value.at(1)}; }
void take(const json& value, grid::Shape& to) { to = {value.at(0), value.at(1), value.at(2)}; }
void take(const json& value, grid::Block& to) { to = {{value.at(0), value.at(1)}, {value.at(2), value.at(3)}}; }
template <class T> void take(const json& value, T& to);
template <class T> void take(const json& value, std::vector<T>& to) {
    to.clear();
    for (const json& one : value.get_ref<const json::array_t&>()) {
        take(one, to.emplace_back());
    }
}
template <class T> void take(const json& value, std::optional<T>& to) {
    to.reset();
    if (!value.is_null()) {
        take(value, to.emplace());
    }
}

/// The members of an object in the job. Where there is no object, what is asked for is only written down.
class Fields {
public:
    explicit Fields(const json& object) : object_(&object) {}
    Fields(Asked& asked, std::string_view kind) : asked_(&asked), kind_(kind) {}

    /// Fills `to` with the member of that name, and leaves it as it is where there is no object.
    template <class T> const Fields& operator()(const char* name, T& to) const {
        if (const json* value = member(name)) {
            take(*value, to);
        }
        return *this;
    }
    /// The same of what `named` makes of a text.
    template <class T>
    const Fields& operator()(const char* name, T& to, std::type_identity_t<T> (*named)(std::string_view)) const {
        if (const json* value = member(name)) {
            to = named(value->get_ref<const std::string&>());
        }
        return *this;
    }
    /// The same of a name in a table that has the order of the values.
    template <class T, std::size_t n>
    const Fields& operator()(const char* name, T& to, const std::array<std::string_view, n>& table,
                             std::string_view what) const {
        if (const json* value = member(name)) {
            to = enum_named<T>(table, value->get_ref<const std::string&>(), what);
        }
        return *this;
    }
    /// One that must be there, and is nothing to the worker.
    const Fields& operator()(const char* name) const {
        member(name);
        return *this;
    }
    bool has(const char* name) const {
        const json* value = member(name);
        return value == nullptr || !value->is_null();
    }
    Fields operator[](const char* name) const {
        const json* value = member(name);
        if (value == nullptr) {
            return {*asked_, name};
        }
        if (value->is_null()) {
            throw UsageError("the job is not readable: its command needs the field '" + std::string(name) + "'");
        }
        return Fields(*value);
    }

private:
    const json* member(const char* name) const {
        if (object_ == nullptr) {
            (*asked_)[kind_].insert(name);
            return nullptr;
        }
        return &object_->at(name);
    }

    const json* object_ = nullptr;
    Asked* asked_ = nullptr;
    std::string_view kind_;
};

template <class T> void take(const json& value, T& to) {
    if constexpr (requires(const Fields& from) { read(from, to); }) {
        read(Fields(value), to);
    } else {
        value.get_to(to);
    }
}

/// A name, of `constant` with a number: `constant:3.5`, `constant:nan`.
kernel::Boundary boundary_named(std::string_view given) {
    const std::string text(given);
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

Dtype known_dtype(std::string_view name) {
    const auto dtype = dtype_named(name);
    if (!dtype) {
        throw UsageError("unknown dtype '" + std::string(name) + "'");
    }
    return *dtype;
}

bool is_big_endian(std::string_view byte_order) {
    return index_of(std::array<std::string_view, 2>{"little", "big"}, byte_order, "byte order") == 1;
}

bool is_plain(std::string_view kernel) { return kernel::kernel_named(kernel) == kernel::Kernel::plain; }

std::uint64_t hexadecimal(std::string_view digits) {
    std::uint64_t value = 0;
    const char* end = digits.data() + digits.size();
    if (digits.empty() || std::from_chars(digits.data(), end, value, 16).ptr != end) {
        throw UsageError("the journal says '" + std::string(digits) + "' where a hexadecimal number should be");
    }
    return value;
}

/// The bytes that `text` is in hexadecimal digits, two each.
std::string bytes_of_hex(std::string_view text) {
    std::string bytes(text.size() / 2, '\0');
    for (std::size_t i = 0; i < bytes.size(); ++i) {
        unsigned value = 0;
        const char* const first = text.data() + 2 * i;
        if (text.size() % 2 != 0 || std::from_chars(first, first + 2, value, 16).ptr != first + 2) {
            throw UsageError("the job is not readable: '" + std::string(text) + "' are no bytes in hexadecimal digits");
        }
        bytes[i] = static_cast<char>(value);
    }
    return bytes;
}

/// As of a matrix that is stored row by row.
void read(const Fields& from, io::Tile& tile) {
    std::array<std::int64_t, 2> strides{};
    from("path", tile.path)("offset", tile.offset)("strides", strides);
    from("rows", tile.block.rows)("columns", tile.block.columns);
    const bool dense = strides == decltype(strides){};
    if (tile.offset < 0 || (!dense && std::min(strides[0], strides[1]) < 1)) {
        throw UsageError(tile.path + ": negative offset, or a stride below 1");
    }
    if (!dense) {
        tile.line = strides[0];
        tile.step = strides[1];
    }
}

void read(const Fields& from, kernel::Filter& filter) {
    from("name", filter.kind, kernel::filter_names, "filter")("item", filter.item);
    from("byte_order", filter.big_endian, is_big_endian);
}

/// The packing in numbers, and not in bytes.
void read(const Fields& from, io::Chunks& chunks) {
    std::array<std::int64_t, 2> shape{}, steps{};
    from("shape", shape)("steps", steps)("start", chunks.start)("clipped", chunks.clipped);
    from("numbers", chunks.packing.bytes)("filters", chunks.packing.filters)("paths", chunks.paths);
    from("offsets", chunks.offsets)("bytes", chunks.bytes)("skipped", chunks.skipped);
    from("fill", chunks.fill, bytes_of_hex);
    chunks.rows = shape[0];
    chunks.columns = shape[1];
    chunks.down = chunks.packing.row_bytes = steps[0];
    chunks.across = chunks.packing.samples = steps[1];
}

/// Throws UsageError where they do not fit `region`, or each other.
void require_sound(const io::Chunks& chunks, const io::Region& region) {
    const auto item = static_cast<std::int64_t>(size_of(region.dtype));
    const std::int64_t numbers = chunks.packing.bytes;
    const auto require = [&](bool holds, const char* what) {
        if (!holds) {
            throw UsageError(region.name + ": chunks with " + what);
        }
    };
    const auto within = [](std::int64_t value, std::int64_t least, std::int64_t most) {
        return value >= least && value <= most;
    };
    constexpr std::int64_t most = std::int64_t{1} << 31;  // bytes of a chunk
    require(within(numbers, 1, most / item) && within(chunks.rows, 1, most) && within(chunks.columns, 1, most) &&
                within(chunks.down, 1, most) && within(chunks.across, 1, most) && within(chunks.start, 0, most),
            "an impossible shape");
    // Each factor is below 2^31, so nothing overflows.
    const std::int64_t last_down = (chunks.rows - 1) * chunks.down, last_across = (chunks.columns - 1) * chunks.across;
    require(last_down < numbers && last_across < numbers && chunks.start + last_down + last_across < numbers,
            "numbers outside themselves");
    const std::int64_t down = (region.stored_rows() + chunks.rows - 1) / chunks.rows,
                       across = chunks.across_count(region.stored_columns());
    const auto count = std::ssize(chunks.offsets);
    require(across == 0 ? count == 0 : count % across == 0 && count / across == down, "offsets for another number");
    require(std::ssize(chunks.bytes) == count, "sizes for another number");
    require(chunks.paths.empty() || std::ssize(chunks.paths) == count, "paths for another number");
    require(chunks.skipped.empty() || std::ssize(chunks.skipped) == count, "skipped filters for another number");
    require(chunks.packing.filters.size() < 32, "too many filters");
    require(std::all_of(chunks.offsets.begin(), chunks.offsets.end(), [](std::int64_t offset) { return offset >= 0; }),
            "negative offsets");
    require(std::ssize(chunks.fill) == item, "another fill value than one number");
    for (const kernel::Filter& filter : chunks.packing.filters) {
        require(within(filter.item, 1, most) && (filter.kind != kernel::FilterKind::horizontal || filter.item == 1 ||
                                                 filter.item == 2 || filter.item == 4 || filter.item == 8),
                "a filter of impossible numbers");
    }
}

void read(const Fields& from, io::Whole& whole) {
    from("rows", whole.rows)("columns", whole.columns)("row", whole.row)("column", whole.column);
}

void read(const Fields& from, io::Region& region) {
    constexpr std::array<std::string_view, 3> encodings{"binary", "text", "chunks"};
    enum class Encoding { binary, text, chunks } encoding = Encoding::binary;
    bool big_endian = std::endian::native == std::endian::big;
    io::TextLines lines;
    std::string separator, decimal;
    std::optional<io::Chunks> chunks;
    from("path", region.path)("name", region.name)("offset", region.offset);
    from("rows", region.rows)("columns", region.columns)("steps", region.steps);
    from("dtype", region.dtype, known_dtype)("byte_order", big_endian, is_big_endian);
    from("order", region.column_major, [](std::string_view order) {
        return index_of(std::array<std::string_view, 2>{"C", "F"}, order, "storage order") == 1;
    });
    from("encoding", encoding, encodings, "encoding")("separator", separator)("decimal", decimal);
    from("line_numbers", lines.line_numbers)("pairs", lines.pairs)("missing", lines.missing);
    from("text_end", lines.end)("hash_comments", lines.hash_comments)("taken", lines.taken);
    from("tiles", region.tiles)("fill", region.fill, bytes_of_hex)("chunks", chunks)("file_bytes", region.file_bytes);
    from("transposed", region.transposed)("generator", region.generator)("seed", region.seed)("whole", region.whole);
    region.swap_bytes = big_endian != (std::endian::native == std::endian::big);
    if (region.rows < 0 || region.columns < 0 || region.offset < 0) {
        throw UsageError(region.name + ": negative size or offset");
    }
    for (io::Tile& tile : region.tiles) {  // in the coordinates of the stored matrix
        if (region.column_major) {
            tile.block = tile.block.transposed();
        }
        if (region.column_major && tile.line > 0) {
            std::swap(tile.line, tile.step);
        }
    }
    if (encoding == Encoding::text) {
        if (separator.size() != 1 || decimal.size() != 1 || lines.line_numbers < 1 || !lines.takes_own_fields()) {
            throw UsageError(region.name +
                             ": a text has one separator, one decimal mark and at least one number per "
                             "line, of whose fields some are taken in their order");
        }
        lines.separator = separator[0];
        lines.decimal = decimal[0];
        region.text = std::move(lines);
    } else if (encoding == Encoding::chunks) {
        if (!chunks) {
            throw UsageError(region.name + ": there are no chunks");
        }
        require_sound(*chunks, region.uncut());
        chunks->packing.bytes *= static_cast<std::int64_t>(size_of(region.dtype));
        chunks->packing.row_bytes *= static_cast<std::int64_t>(size_of(region.dtype));
        region.chunks = std::make_shared<const io::Chunks>(*std::move(chunks));
    }
    if (region.whole) {
        region.place_in_whole();
    }
}

void read(const Fields& from, io::Standing& piece) {
    from("start", piece.start)("block", piece.block)("sum", piece.sum, hexadecimal);
}

void read(const Fields& from, io::Saved& saved) {
    std::vector<std::string> facts;  // the bits of numbers
    from("slot", saved.slot)("version", saved.version)("facts", facts)("pieces", saved.pieces);
    for (const std::string& fact : facts) {
        saved.facts.push_back(std::bit_cast<double>(hexadecimal(fact)));
    }
}

void read(const Fields& from, io::Made& made) {
    from("path", made.path)("name", made.name)("bytes", made.bytes)("root", made.root);
}

void read(const Fields& from, io::Seen& seen) {
    from("path", seen.path)("name", seen.name)("bytes", seen.bytes)("modified", seen.modified)("inode", seen.inode);
    from("begin", seen.begin)("end", seen.end)("pages", seen.pages)("digest", seen.digest)("root", seen.root);
}

void read(const Fields& from, io::Site& site) {
    from("host", site.host)("view", site.view)("made", site.made)("seen", site.seen);
    from("memory", site.memory)("percent", site.percent)("node_ranks", site.node_ranks);
}

void read(const Fields& from, measure::Stop& stop) {
    from("least", stop.least)("most", stop.most)("warmup", stop.warmup);
    from("relative", stop.relative)("seconds", stop.seconds);
}

void read(const Fields& from, measure::Point& point) {
    from("kind", point.kind)("name", point.name)("pattern", point.pattern)("bytes", point.bytes)("pairs", point.pairs);
    from("threads", point.threads)("size", point.size)("dtype", point.dtype)("kernels", point.kernels);
    from("blocks", point.blocks)("path", point.path)("layout", point.layout)("buffer", point.buffer);
    from("cache", point.cache)("check", point.check)("shift", point.shift)("sync", point.sync);
    from("pause", point.pause)("gpus", point.gpus)("direct", point.direct);
}

void read(const Fields& from, Stack& stack) { from("extents", stack.extents)("apart", stack.apart); }

void read(const Fields& from, Job& job) {
    int version = protocol;
    std::uint32_t constants = 0;
    from("protocol", version)("id", job.id)("command", job.command)("constants", constants);
    if (version != protocol) {
        throw UsageError("the job speaks protocol " + std::to_string(version) + ", this worker " +
                         std::to_string(protocol) + "; front and worker come from different installations");
    }
    if (job.command == "quit") {
        return;
    }
    if (constants != 0 && constants != constants_digest()) {
        throw UsageError("the job was planned by other constants than this worker's", -1, 0,
                         "build.json next to the worker, or the front, is of another build: reinstall tilewise");
    }
    from("inputs", job.inputs)("output", job.output);
    from("dtype", job.dtype, known_dtype)("stack", job.stack)("bind", job.bind)("survive", job.survive);
    from("place", job.place)("trace", job.trace)("site", job.site)("progress", job.progress)("fault", job.fault);
    const Fields variant = from["variant"];
    variant("ranks", job.ranks)("threads", job.threads)("grid", job.grid);
    variant("exchange", job.exchange)("between_nodes", job.between_nodes)("decomposition");
    if (from.has("journal")) {
        const Fields journal = from["journal"];
        io::CheckpointOptions& states = job.checkpoints;
        journal("folder", job.journal.folder)("start", job.journal.start)("standing", job.journal.standing);
        journal("every", states.every)("ends", states.ends)("slots", states.slots)("saved", states.saved);
        from("sync", job.journal.flushed);
        if (!states.slots.empty()) {
            states.folder = job.journal.folder;
            states.start = job.journal.start;
            states.flushed = job.journal.flushed;
        }
    }
    if (from.has("svd")) {
        std::optional<io::Region> s;
        svd::Files parts;
        from["svd"]("u", parts.u)("s", s)("vt", parts.vt)("us", parts.us)("scaled");
        if (s) {
            parts.s = *std::move(s);
            job.parts = std::move(parts);
        }
    }
    constexpr std::array<std::string_view, 3> places{"core", "socket", "node"};
    index_of(places, job.place, "place");
}

/// Reads what only some variants say, and others leave empty.
template <class Enum, std::size_t n>
void read_where_said(const Fields& from, const char* name, Enum& to, const std::array<std::string_view, n>& names,
                     std::string_view what) {
    std::string word;
    from(name, word);
    if (!word.empty()) {
        to = enum_named<Enum>(names, word, what);
    }
}

/// Reads what the options of all operations on files have in common.
template <class Options> void read_files(const Fields& from, Options& options) {
    from["variant"]("read", options.read, io::strategy_named)("write", options.write, io::strategy_named);
    from("hints", options.hints)("sync", options.sync);
}

/// And those whose part in memory can be repeated and proved.
template <class Options> void read_repeated(const Fields& from, Options& options) {
    read_files(from, options);
    from["variant"]("remainder", options.remainder, grid::remainder_names, "remainder");
    from("verify", options.verify, verify_names, "verification");
    from("repeat", options.repeat)("warmup", options.warmup);
    options.repeat = std::max(1, options.repeat);
    options.warmup = std::max(0, options.warmup);
}

void read(const Fields& from, const Job& job, multiply::Options& options) {
    read_repeated(from, options);
    from["variant"]("algorithm", options.algorithm, multiply::algorithm_named)("copies", options.copies)(
        "kernel", options.kernel, kernel::kernel_named);
    from("overflow", options.overflow, multiply::overflow_names, "overflow mode")("symmetric", options.symmetric);
    from("tolerance", options.tolerance)("stage", options.stage)("read_back", options.read_back);
    options.exchange = multiply::exchange_named(job.exchange);
    options.grid = job.grid;
    options.journal = job.journal;
}

void read(const Fields& from, const Job& job, convert::Options& options) {
    read_files(from, options);
    from("band_bytes", options.band_bytes)("read_back", options.read_back);
    options.grid = job.grid;
    if (from.has("convert")) {
        from["convert"]("scale", options.scale);
    }
}

void read(const Fields& from, const Job&, norm::Options& options) {
    from["variant"]("read", options.read, io::strategy_named);
    from("hints", options.hints)("band_bytes", options.band_bytes);
}

void read(const Fields& from, const Job& job, transpose::Options& options) {
    kernel::TransposeTile tile{};
    std::array<std::int64_t, 2> sides{};
    const Fields variant = from["variant"];
    read_repeated(from, options);
    variant("algorithm", options.algorithm, transpose::algorithm_named)("kernel", options.plain, is_plain);
    variant("tile", sides)("streaming", tile.streaming);
    read_where_said(variant, "root_write", options.root_write, transpose::root_write_names, "root write mode");
    from("band_bytes", options.stage_bytes)("queue", options.queue);
    if (job.exchange != "none") {  // of an algorithm that has one
        options.exchange = mpi::exchange_named(job.exchange, transpose::exchange_names);
    }
    options.grid = job.grid;
    options.journal = job.journal;
    if (sides[0] > 0 && sides[1] > 0) {
        options.tile = kernel::TransposeTile{sides[0], sides[1], tile.streaming};
    }
}

void read(const Fields& from, const Job& job, StencilOptions& options) {
    std::array<std::int64_t, 2> tile{};
    const Fields variant = from["variant"], stencil = from["stencil"];
    read_repeated(from, options);
    variant("halo", options.halo, stencil::halo_named)("depth", options.depth)("tile", tile);
    variant("kernel", options.plain, is_plain)("reorder", options.reorder);
    stencil("steps", options.steps)("radius", options.weights.radius)("weights", options.weights.values);
    stencil("boundary", options.boundary, boundary_named)("planes", options.planes)("states", options.states);
    stencil("snapshot_every", options.snapshot_every)("snapshots", options.snapshots);
    stencil("until_change", options.until_change)("check_every", options.check_every);
    options.exchange = stencil::exchange_named(job.exchange);
    options.tile_rows = tile[0];
    options.tile_columns = tile[1];
    options.checkpoints = job.checkpoints;
    options.grid = job.grid;
}

void read(const Fields& from, const Job& job, svd::Options& options) {
    const Fields variant = from["variant"], svd = from["svd"];
    read_repeated(from, options);
    variant("algorithm", options.algorithm, svd::algorithm_named)("blocks", options.blocks);
    read_where_said(variant, "start", options.start, svd::start_names, "start");
    read_where_said(variant, "inner", options.inner, svd::inner_names, "inner solver");
    svd("components", options.components)("values_only", options.values_only)("max_sweeps", options.max_sweeps);
    svd("tolerance", options.tolerance)("off_squares", options.off_squares)("energy", options.energy);
    svd("power", options.power)("oversample", options.oversample)("basis", options.basis)("seed", options.seed);
    svd("keep_small", options.keep_small)("require_converged", options.require_converged);
    svd("panel_bytes", options.panel_bytes)("qr_blocks", options.qr_blocks)("share_eigen", options.share_eigen);
    options.exchange = svd::exchange_named(job.exchange);
    options.checkpoints = job.checkpoints;
}

void read(const Fields& from, const Job&, MeasureOptions& options) {
    from["measure"]("stop", options.stop)("cpus", options.cpus)("points", options.points);
}

/// Parses `text`, where only fields that may have fractions have them: the library would make any number a whole one,
/// somehow.
json parse_whole_numbers(const std::string& text) {
    constexpr std::array<std::string_view, 10> fractions{"weights", "until_change", "tolerance", "off_squares",
                                                         "energy",  "relative",     "seconds",   "scale",
                                                         "every",   "ends"};
    std::string key;
    return json::parse(text, [&](int, json::parse_event_t event, json& value) {
        if (event == json::parse_event_t::key) {
            key = value.get<std::string>();
        } else if (value.is_number_float() && std::find(fractions.begin(), fractions.end(), key) == fractions.end()) {
            throw UsageError("the job is not readable: '" + key + "' is " + value.dump() +
                             ", which is not a whole number");
        }
        return true;
    });
}

/// Calls `f`, which reads a job.
template <class F> void say_what_is_unreadable(const F& f) {
    try {
        f();
    } catch (const json::exception& error) {
        throw UsageError(std::string("the job is not readable: ") + error.what());
    }
}

}  // namespace

Job parse_job(const std::string& text) {
    Job job;
    say_what_is_unreadable([&] {
        json parsed = parse_whole_numbers(text);
        read(Fields(parsed), job);
        for (const char* whole : {"inputs", "output", "journal"}) {  // which may be large, and is in the job by now
            parsed.erase(whole);
        }
        job.text = std::make_shared<const json>(std::move(parsed));
    });
    return job;
}

template <class Options> Options options_of(const Job& job) {
    Options options;
    say_what_is_unreadable([&] { read(Fields(*job.text), job, options); });
    return options;
}

template multiply::Options options_of(const Job& job);
template transpose::Options options_of(const Job& job);
template StencilOptions options_of(const Job& job);
template svd::Options options_of(const Job& job);
template convert::Options options_of(const Job& job);
template norm::Options options_of(const Job& job);
template MeasureOptions options_of(const Job& job);

OneToOne one_to_one(const Job& job, bool transposed) {
    if (job.inputs.size() == 1 && without_numbers()) {  // and so without an output
        const io::Region& from = job.inputs[0];
        io::Region to;
        to.name = "nothing";
        to.dtype = from.dtype;
        to.rows = transposed ? from.logical_columns() : from.logical_rows();
        to.columns = transposed ? from.logical_rows() : from.logical_columns();
        return {from, to};
    }
    if (job.inputs.size() != 1 || !job.output) {
        throw UsageError(job.command + " takes one input and an output");
    }
    return {job.inputs[0], *job.output};
}

namespace {

template <class T> void ask(Asked& asked, std::string_view kind) {
    T value{};
    read(Fields(asked, kind), value);
}

template <class... Options> void ask_for_options(Asked& asked) {
    std::tuple<Options...> all;
    (read(Fields(asked, "job"), Job{}, std::get<Options>(all)), ...);
}

}  // namespace

Asked fields_of_jobs() {
    Asked asked;
    ask<Job>(asked, "job");
    ask<io::Region>(asked, "region");
    ask<io::Tile>(asked, "tile");
    ask<Stack>(asked, "stack");
    ask<io::Site>(asked, "site");
    ask<io::Made>(asked, "made");
    ask<io::Seen>(asked, "seen");
    ask<measure::Stop>(asked, "stop");
    ask<measure::Point>(asked, "point");
    ask_for_options<multiply::Options, transpose::Options, StencilOptions, svd::Options, convert::Options,
                    MeasureOptions>(asked);
    return asked;
}

}  // namespace tilewise::worker
