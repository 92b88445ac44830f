// The chunks of a region as they come in over the seam: nothing is believed that a later step would index with.
#include <algorithm>
#include <array>

#include "tilewise/base/names.hpp"
#include "tilewise/worker/job.hpp"

namespace tilewise::worker {
namespace {

constexpr std::int64_t most_bytes = std::int64_t{1} << 31;  // of a chunk

}  // namespace

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

}  // namespace tilewise::worker
