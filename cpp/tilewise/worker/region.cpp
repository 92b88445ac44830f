// The regions of a job as the library has them: byte orders and storage orders resolved, tiles as they are stored, and
// of chunks nothing believed that a later step would index with.
#include <algorithm>
#include <array>
#include <bit>
#include <charconv>

#include "tilewise/base/names.hpp"
#include "tilewise/base/work.hpp"
#include "tilewise/worker/job.hpp"

namespace tilewise::worker {
namespace {

/// The tile in the coordinates of the stored matrix.
io::Tile tile_of(const TileFields& fields, bool column_major) {
    const grid::Range rows{fields.rows[0], fields.rows[1]}, columns{fields.columns[0], fields.columns[1]};
    const bool dense = fields.strides == decltype(fields.strides){};
    if (fields.offset < 0 || (!dense && std::min(fields.strides[0], fields.strides[1]) < 1)) {
        throw UsageError(fields.path + ": negative offset, or a stride below 1");
    }
    io::Tile tile{.path = fields.path, .offset = fields.offset, .block = {rows, columns}};
    if (column_major) {
        tile.block = {columns, rows};
    }
    if (!dense) {
        tile.line = fields.strides[column_major ? 1 : 0];
        tile.step = fields.strides[column_major ? 0 : 1];
    }
    return tile;
}

constexpr std::int64_t most_bytes = std::int64_t{1} << 31;  // of a chunk

}  // namespace

std::string bytes_of_hex(const std::string& text) {
    std::string bytes(text.size() / 2, '\0');
    for (std::size_t i = 0; i < bytes.size(); ++i) {
        unsigned value = 0;
        const char* const first = text.data() + 2 * i;
        if (text.size() % 2 != 0 || std::from_chars(first, first + 2, value, 16).ptr != first + 2) {
            throw UsageError("the job is not readable: '" + text + "' are no bytes in hexadecimal digits");
        }
        bytes[i] = static_cast<char>(value);
    }
    return bytes;
}

io::Chunks chunks_of(const ChunksFields& f, const io::Region& region) {
    const auto item = static_cast<std::int64_t>(size_of(region.dtype));
    const auto require = [&](bool holds, const char* what) {
        if (!holds) {
            throw UsageError(region.name + ": chunks with " + what);
        }
    };
    const auto within = [](std::int64_t value, std::int64_t least, std::int64_t most) {
        return value >= least && value <= most;
    };
    constexpr std::int64_t most = most_bytes;
    require(within(f.numbers, 1, most / item) && within(f.shape[0], 1, most) && within(f.shape[1], 1, most) &&
                within(f.steps[0], 1, most) && within(f.steps[1], 1, most) && within(f.start, 0, most),
            "an impossible shape");
    // Each factor is below 2^31, so nothing overflows.
    require((f.shape[0] - 1) * f.steps[0] < f.numbers && (f.shape[1] - 1) * f.steps[1] < f.numbers &&
                f.start + (f.shape[0] - 1) * f.steps[0] + (f.shape[1] - 1) * f.steps[1] < f.numbers,
            "numbers outside themselves");
    const std::int64_t down = (region.stored_rows() + f.shape[0] - 1) / f.shape[0],
                       across = (region.stored_columns() + f.shape[1] - 1) / f.shape[1];
    const auto count = static_cast<std::int64_t>(f.offsets.size());
    require(across == 0 ? count == 0 : count % across == 0 && count / across == down, "offsets for another number");
    require(f.bytes.size() == f.offsets.size(), "sizes for another number");
    require(f.paths.empty() || f.paths.size() == f.offsets.size(), "paths for another number");
    require(f.skipped.empty() || f.skipped.size() == f.offsets.size(), "skipped filters for another number");
    require(f.filters.size() < 32, "too many filters");
    require(std::all_of(f.offsets.begin(), f.offsets.end(), [](std::int64_t offset) { return offset >= 0; }),
            "negative offsets");
    io::Chunks chunks{.rows = f.shape[0],
                      .columns = f.shape[1],
                      .start = f.start,
                      .down = f.steps[0],
                      .across = f.steps[1],
                      .clipped = f.clipped,
                      .packing = {{}, f.numbers * item, f.steps[0] * item, f.steps[1]},
                      .paths = f.paths,
                      .offsets = f.offsets,
                      .bytes = f.bytes,
                      .skipped = f.skipped,
                      .fill = bytes_of_hex(f.fill)};
    require(static_cast<std::int64_t>(chunks.fill.size()) == item, "another fill value than one number");
    constexpr std::array<std::string_view, 2> byte_orders{"little", "big"};
    for (const FilterFields& filter : f.filters) {
        const auto kind = enum_named<kernel::FilterKind>(kernel::filter_names, filter.name, "filter");
        require(within(filter.item, 1, most) && (kind != kernel::FilterKind::horizontal || filter.item == 1 ||
                                                 filter.item == 2 || filter.item == 4 || filter.item == 8),
                "a filter of impossible numbers");
        const bool big = index_of(byte_orders, filter.byte_order, "byte order") == 1;
        chunks.packing.filters.push_back({kind, filter.item, big});
    }
    return chunks;
}

io::Region region_of(const RegionFields& f) {
    constexpr std::array<std::string_view, 2> byte_orders{"little", "big"}, storage_orders{"C", "F"};
    constexpr bool big_endian_machine = std::endian::native == std::endian::big;
    io::Region region{.path = f.path,
                      .name = f.name,
                      .offset = f.offset,
                      .rows = f.rows,
                      .columns = f.columns,
                      .dtype = dtype_of(f.dtype),
                      .swap_bytes = (index_of(byte_orders, f.byte_order, "byte order") == 1) != big_endian_machine,
                      .column_major = index_of(storage_orders, f.order, "storage order") == 1,
                      .file_bytes = f.file_bytes,
                      .transposed = f.transposed,
                      .generator = f.generator,
                      .seed = f.seed,
                      .tiles = {},
                      .fill = {},
                      .text = {},
                      .chunks = {}};
    if (f.rows < 0 || f.columns < 0 || f.offset < 0) {
        throw UsageError(f.name + ": negative size or offset");
    }
    for (const TileFields& tile : f.tiles) {
        region.tiles.push_back(tile_of(tile, region.column_major));
    }
    region.fill = bytes_of_hex(f.fill);
    if (f.encoding == "text") {
        if (f.separator.size() != 1 || f.decimal.size() != 1 || f.line_numbers < 1) {
            throw UsageError(f.name + ": a text has one separator, one decimal mark and at least one number per line");
        }
        region.text = io::TextLines{f.separator[0], f.line_numbers, f.pairs,        f.decimal[0],
                                    f.missing,      f.text_end,     f.hash_comments};
    } else if (f.encoding == "chunks") {
        if (!f.chunks) {
            throw UsageError(f.name + ": there are no chunks");
        }
        region.chunks = std::make_shared<const io::Chunks>(chunks_of(*f.chunks, region));
    } else if (f.encoding != "binary") {
        throw UsageError(f.name + ": unknown encoding '" + f.encoding + "'");
    }
    return region;
}

OneToOne one_to_one(const Job& job) {
    if (job.inputs.size() == 1 && without_numbers()) {  // and so without an output
        const io::Region from = region_of(job.inputs[0]);
        const bool turned = job.command == "transpose";
        io::Region to;
        to.name = "nothing";
        to.dtype = from.dtype;
        to.rows = turned ? from.logical_columns() : from.logical_rows();
        to.columns = turned ? from.logical_rows() : from.logical_columns();
        return {from, to};
    }
    if (job.inputs.size() != 1 || !job.output) {
        throw UsageError(job.command + " takes one input and an output");
    }
    return {region_of(job.inputs[0]), region_of(*job.output)};
}

}  // namespace tilewise::worker
