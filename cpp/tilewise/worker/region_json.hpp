// Reads and describes the seam's regions as JSON, by nlohmann's macros.
#pragma once

#include <nlohmann/json.hpp>

#include "tilewise/worker/region_fields.hpp"

namespace nlohmann {
template <class T> struct adl_serializer<std::optional<T>> {
    static void to_json(json& to, const std::optional<T>& value) { to = value ? json(*value) : json(nullptr); }
    static void from_json(const json& from, std::optional<T>& value) {
        value = from.is_null() ? std::nullopt : std::optional<T>(from.get<T>());
    }
};
}  // namespace nlohmann

namespace tilewise::worker {

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(TileFields, path, offset, rows, columns, strides)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(FilterFields, name, byte_order, item)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(ChunksFields, shape, steps, start, numbers, clipped, filters, paths, offsets, bytes,
                                   skipped, fill)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(RegionFields, path, name, offset, rows, columns, dtype, byte_order, order, encoding,
                                   separator, line_numbers, pairs, decimal, missing, text_end, hash_comments, tiles,
                                   fill, chunks, file_bytes, transposed, generator, seed, steps)

}  // namespace tilewise::worker
