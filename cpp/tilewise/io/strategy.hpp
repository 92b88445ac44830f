// The ways to move blocks between ranks and a file: one file each, one table that lists them.
#pragma once

#include <array>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "tilewise/io/region.hpp"
#include "tilewise/mpi/context.hpp"

namespace tilewise::io {

/// The block of each rank, in the stored coordinates of the region; blocks may be empty.
using BlockOf = std::function<grid::Block(int rank)>;

/// One matrix between its file and the ranks: `data` is this rank's block in the file's own type, row after row, without gaps.
struct Transfer {
    const Region& region;
    BlockOf block_of;
    std::byte* data = nullptr;

    std::int64_t item() const { return static_cast<std::int64_t>(size_of(region.dtype)); }
    std::int64_t rows() const { return region.stored_rows(); }
    std::int64_t columns() const { return region.stored_columns(); }
    /// Byte in the file of stored element (row, column).
    std::int64_t at(std::int64_t row, std::int64_t column) const {
        return region.offset + (row * columns() + column) * item();
    }
};

/// Calls move(data, bytes, offset) for the pieces of rows [rows.begin, rows.end) of a block that are contiguous both in memory and in the
/// file: each row, or all of them at once where the block is as wide as the matrix.
template <class Move> void for_row_pieces(const Transfer& transfer, const grid::Block& block, grid::Range rows,
                                          Move move) {
    const std::int64_t row_bytes = block.columns.size() * transfer.item();
    const std::int64_t rows_a_piece = block.columns.size() == transfer.columns() ? rows.size() : 1;
    for (std::int64_t row = rows.begin; row < rows.end; row += rows_a_piece) {
        move(transfer.data + row * row_bytes, row_bytes * rows_a_piece,
             transfer.at(block.rows.begin + row, block.columns.begin));
    }
}

using Hints = std::map<std::string, std::string>;

/// Both calls are collective over `context.comm`, throw the same Error on every rank (or abort the job where ranks already wait), count
/// into the ledger, and leave the ledger's phase as they find it.
class Strategy {
public:
    Strategy() = default;
    Strategy(const Strategy&) = delete;
    Strategy& operator=(const Strategy&) = delete;
    virtual ~Strategy() = default;

    virtual void read(Context& context, const Transfer& transfer) const = 0;
    virtual void write(Context& context, const Transfer& transfer) const = 0;
};

std::unique_ptr<Strategy> make_positioned();
std::unique_ptr<Strategy> make_mapped();
std::unique_ptr<Strategy> make_uncached();
std::unique_ptr<Strategy> make_root();
std::unique_ptr<Strategy> make_root_collective();
std::unique_ptr<Strategy> make_collective(const Hints& hints);

struct StrategyEntry {
    std::string_view name;
    std::unique_ptr<Strategy> (*make)(const Hints& hints);
};

inline constexpr std::array strategies{
    StrategyEntry{"root", [](const Hints&) { return make_root(); }},
    StrategyEntry{"root_collective", [](const Hints&) { return make_root_collective(); }},
    StrategyEntry{"collective", make_collective},
    StrategyEntry{"positioned", [](const Hints&) { return make_positioned(); }},
    StrategyEntry{"mapped", [](const Hints&) { return make_mapped(); }},
    StrategyEntry{"uncached", [](const Hints&) { return make_uncached(); }},
};

/// Throws UsageError for an unknown name, listing the known ones.
std::unique_ptr<Strategy> strategy_named(std::string_view name, const Hints& hints);

}  // namespace tilewise::io
