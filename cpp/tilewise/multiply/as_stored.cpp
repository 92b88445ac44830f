// Turns and swaps; nothing to do for most files.
#include "tilewise/multiply/as_stored.hpp"

#include "tilewise/kernel/codec/convert.hpp"
#include "tilewise/kernel/transpose/transpose.hpp"
#include "tilewise/mpi/together.hpp"

namespace tilewise::multiply {

std::byte* as_stored(Context& context, const io::Region& region, const grid::Block& block, std::byte* data,
                     Buffer& transposed) {
    if (!region.column_major && !region.swap_bytes) {
        return data;
    }
    const Timed timed(context.ledger, Phase::output, Step::convert, "turn");
    const std::size_t item = size_of(region.dtype);
    mpi::together(context.comm, [&] {
        if (region.column_major) {
            transposed = Buffer(static_cast<std::size_t>(block.size()) * item);
            const auto size = static_cast<std::int64_t>(item);
            kernel::transpose(data, block.columns.size() * size, block.rows.size(), block.columns.size(), item,
                              transposed.data(), block.rows.size() * size, context.threads);
            data = transposed.data();
        }
        kernel::widen(data, block.size(), region.dtype, region.swap_bytes, region.dtype);
    });
    return data;
}

}  // namespace tilewise::multiply
