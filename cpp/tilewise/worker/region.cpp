// The regions of a job as the library has them: byte orders and storage orders resolved, tiles as they are stored.
#include <algorithm>
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
