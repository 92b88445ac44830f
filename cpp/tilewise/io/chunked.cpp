// Rounds of a few chunks on each rank: unpacked on all threads, put or packed where they belong, then exchanged.
#include "tilewise/io/chunked.hpp"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <optional>
#include <string>

#include "tilewise/base/buffer.hpp"
#include "tilewise/base/threads.hpp"
#include "tilewise/io/elements.hpp"
#include "tilewise/mpi/datatype.hpp"
#include "tilewise/mpi/together.hpp"

namespace tilewise::io {
namespace {

using mpi::check;

UnpackingFault unpacking_fault = UnpackingFault::none;

std::string text_of(grid::Range range) { return std::to_string(range.begin) + ":" + std::to_string(range.end); }

grid::Range united(grid::Range a, grid::Range b) {
    return a.size() == 0 ? b : b.size() == 0 ? a : grid::Range{std::min(a.begin, b.begin), std::max(a.end, b.end)};
}

grid::Range span_of(const std::vector<grid::Range>& ranges) {
    return ranges.empty() ? grid::Range{} : grid::Range{ranges.front().begin, ranges.back().end};
}

}  // namespace

void break_unpacking(UnpackingFault fault) { unpacking_fault = fault; }

ChunkUnpacker::ChunkUnpacker(const Region& region)
    : region_(region),
      chunks_(*region.chunks),
      item_(static_cast<std::int64_t>(size_of(region.dtype))),
      chunks_across_(chunks_.across_count(region.stored_columns())) {
    if (chunks_.paths.empty()) {
        file_ = std::make_unique<PosixFile>(region_.path, region_.name, PosixFile::Mode::read);
    }
}

grid::Block ChunkUnpacker::block_of(std::int64_t chunk) const {
    const std::int64_t row = chunk / chunks_across_ * chunks_.rows, column = chunk % chunks_across_ * chunks_.columns;
    return {{row, std::min(row + chunks_.rows, region_.stored_rows())},
            {column, std::min(column + chunks_.columns, region_.stored_columns())}};
}

const std::byte* ChunkUnpacker::unpack(std::int64_t chunk, Memory& memory, std::atomic<std::int64_t>& read,
                                       std::atomic<std::int64_t>& calls) const {
    const auto index = static_cast<std::size_t>(chunk);
    const kernel::Packing& packing = chunks_.packing;
    std::int64_t stored = unpacking_fault == UnpackingFault::forgotten ? 0 : chunks_.bytes[index];
    if (stored == 0) {
        memory.first.grow(packing.room());
        for (std::int64_t at = 0; at < packing.bytes; at += item_) {
            std::memcpy(memory.first.raw() + at, chunks_.fill.data(), static_cast<std::size_t>(item_));
        }
        return memory.first.raw();
    }
    const grid::Block block = block_of(chunk);
    const auto fail = [&](const std::string& what) -> Error {
        return region_.refusal(ErrorKind::usage, "the chunk of rows " + text_of(block.rows) + " and columns " +
                                                     text_of(block.columns) + " at byte " +
                                                     std::to_string(chunks_.offsets[index]) + " " + what);
    };
    const std::uint32_t skipped = chunks_.skipped.empty() ? 0 : chunks_.skipped[index];
    std::unique_ptr<PosixFile> own;
    if (!chunks_.paths.empty()) {
        own = std::make_unique<PosixFile>(chunks_.paths[index], region_.name, PosixFile::Mode::read);
    }
    const PosixFile& file = own ? *own : *file_;
    if (stored < 0) {
        stored = file.size() - chunks_.offsets[index];
    }
    const std::uint32_t all = (1U << packing.filters.size()) - 1;
    if ((skipped & all) == all) {
        stored = std::min(stored, packing.bytes);
    }
    if (stored > 2 * packing.bytes + 4096) {  // nothing packs so badly
        throw fail("has " + std::to_string(stored) + " packed bytes for " + std::to_string(packing.bytes));
    }
    memory.packed.grow(std::max(stored, packing.room()));
    calls += file.read(memory.packed.raw(), stored, chunks_.offsets[index]);
    read += stored;
    memory.first.grow(packing.room());
    memory.second.grow(packing.filters.size() > 1 ? packing.room() : 0);
    kernel::Unpacked found;
    try {
        found = kernel::unpack(packing, skipped, memory.packed.raw(), stored, memory.first.raw(), memory.second.raw());
    } catch (const UsageError& error) {
        throw fail(error.what());
    }
    const std::int64_t expected = chunks_.clipped ? packing.bytes / chunks_.rows * block.rows.size() : packing.bytes;
    if (found.bytes < expected) {
        throw fail("unpacks to " + std::to_string(found.bytes) + " bytes where " + std::to_string(expected) +
                   " were expected");
    }
    if (unpacking_fault == UnpackingFault::bit) {
        found.data[0] ^= std::byte{1};
    } else if (unpacking_fault == UnpackingFault::shift) {
        std::memmove(found.data + item_, found.data, static_cast<std::size_t>(found.bytes - item_));
    }
    return found.data;
}

void ChunkUnpacker::copy_row(const std::byte* numbers, const grid::Block& block, std::int64_t row, grid::Range columns,
                             std::byte* to) const {
    const std::int64_t at = chunks_.start + (row - block.rows.begin) * chunks_.down +
                            (columns.begin - block.columns.begin) * chunks_.across;
    copy_items(numbers + at * item_, chunks_.across * item_, to, item_, columns.size(), item_);
}

namespace {

class Chunked final : public OpenFile {
public:
    Chunked(Context& context, const Transfer& transfer, Direction direction, bool by_root)
        : OpenFile(context, transfer, direction),
          region_(transfer.region),
          chunks_(*region_.chunks),
          by_root_(by_root),
          item_(transfer.item()),
          across_(chunks_.across_count(transfer.columns())) {
        for (int rank = 0; rank < context.comm.size(); ++rank) {
            shares_.push_back(transfer.share_of(rank));
        }
        width_ = share(me()).width();
        mpi::together(context.comm, [&] {
            if (!reads()) {
                throw InternalError("packed chunks are not written");
            }
            unpacker_.emplace(region_);
        });
        leaving_ = exchange_for(context, transfer);
        arriving_ = exchange_for(context, transfer);
    }

    void move() override {
        mpi::no_return(context_.comm, [&] { read(); });
    }

private:
    void read() {
        share_out();
        if (wanted_.empty()) {
            return;
        }
        const std::int64_t chunk_bytes = std::max<std::int64_t>(1, chunks_.rows * chunks_.columns * item_);
        const std::int64_t at_once = std::max<std::int64_t>(context_.threads, chunk_round_bytes / chunk_bytes);
        std::int64_t rounds = 0;
        for (const auto& list : lists_) {
            rounds = std::max(rounds, (static_cast<std::int64_t>(list.size()) + at_once - 1) / at_once);
        }
        memories_.resize(static_cast<std::size_t>(context_.threads));
        for (std::int64_t round = 0; round < rounds; ++round) {
            unpack_round(of_round(me(), round, at_once));
            exchange_round(round, at_once);
            report(round + 1, rounds);
        }
    }

    struct Range {
        const std::int64_t *begin, *end;
        std::int64_t size() const { return end - begin; }
    };

    Range of_round(int rank, std::int64_t round, std::int64_t at_once) const {
        const auto& list = lists_[static_cast<std::size_t>(rank)];
        const auto size = static_cast<std::int64_t>(list.size());
        return {list.data() + std::min(size, round * at_once), list.data() + std::min(size, (round + 1) * at_once)};
    }

    const grid::Share& share(int rank) const { return shares_[static_cast<std::size_t>(rank)]; }
    /// Where in this rank's share a run begins.
    std::byte* own_place(const grid::Overlap::Run& run) const {
        return transfer_.data + (run.first.row * width_ + run.first.column) * item_;
    }

    /// All ranks come to the same lists: each knows who wants most of each chunk.
    void share_out() {
        grid::Range rows, columns;
        for (const grid::Share& each : shares_) {
            if (each.size() > 0) {
                rows = united(rows, span_of(each.rows));
                columns = united(columns, span_of(each.columns));
            }
        }
        lists_.resize(shares_.size());
        if (rows.size() == 0 || columns.size() == 0) {
            return;
        }
        std::vector<std::int64_t> candidates, most;
        constexpr std::int64_t rank_bits = 24, rank_mask = (std::int64_t{1} << rank_bits) - 1;
        for (std::int64_t i = rows.begin / chunks_.rows; i * chunks_.rows < rows.end; ++i) {
            for (std::int64_t j = columns.begin / chunks_.columns; j * chunks_.columns < columns.end; ++j) {
                candidates.push_back(i * across_ + j);
                most.push_back(grid::Overlap(share(me()), unpacker_->block_of(candidates.back())).size() << rank_bits |
                               (rank_mask - me()));
            }
        }
        if (context_.comm.size() > 1) {
            constexpr std::size_t at_once = std::size_t{1} << 24;
            for (std::size_t begin = 0; begin < most.size(); begin += at_once) {
                check(MPI_Allreduce(MPI_IN_PLACE, most.data() + begin,
                                    static_cast<int>(std::min(at_once, most.size() - begin)), MPI_INT64_T, MPI_MAX,
                                    context_.comm.get()),
                      "MPI_Allreduce");
            }
        }
        std::vector<int> owners;
        for (std::size_t i = 0; i < candidates.size(); ++i) {
            if (most[i] >> rank_bits > 0) {
                wanted_.push_back(candidates[i]);
                owners.push_back(by_root_ ? 0 : static_cast<int>(rank_mask - (most[i] & rank_mask)));
            }
        }
        const std::size_t even = by_root_ ? wanted_.size() : (wanted_.size() + shares_.size() - 1) / shares_.size();
        std::size_t next = 0;
        for (std::size_t i = 0; i < wanted_.size(); ++i) {
            auto owner = static_cast<std::size_t>(owners[i]);
            if (lists_[owner].size() >= even) {
                while (lists_[next].size() >= even) {
                    ++next;
                }
                owner = next;
            }
            lists_[owner].push_back(wanted_[i]);
        }
    }

    /// Unpacks chunks, puts what is this rank's into its share, and packs for the others, chunk after chunk.
    void unpack_round(Range round) {
        const Timed unpacking = timed(Step::convert, "unpack");
        const std::size_t ranks = shares_.size();
        outgoing_.assign(ranks + 1, 0);
        places_.assign(static_cast<std::size_t>(round.size()) * ranks, 0);
        std::int64_t own = 0, place = 0;
        for (std::size_t rank = 0; rank < ranks; ++rank) {
            outgoing_[rank] = place;
            for (std::int64_t i = 0; i < round.size(); ++i) {
                const std::int64_t count = grid::Overlap(shares_[rank], unpacker_->block_of(round.begin[i])).size();
                if (static_cast<int>(rank) == me()) {
                    own += count;
                } else {
                    places_[static_cast<std::size_t>(i) * ranks + rank] = place;
                    place += count;
                }
            }
        }
        outgoing_[ranks] = place;
        if (place > 0) {
            sent_.grow(place * item_);
        }
        std::atomic<std::int64_t> read = 0, calls = 0;
        parallel_tasks(context_.threads, round.size(), [&](std::int64_t task, int thread) {
            const std::int64_t chunk = round.begin[task];
            const grid::Block block = unpacker_->block_of(chunk);
            const std::byte* numbers =
                unpacker_->unpack(chunk, memories_[static_cast<std::size_t>(thread)], read, calls);
            for (std::size_t rank = 0; rank < ranks; ++rank) {
                std::byte* packed = sent_.raw() + places_[static_cast<std::size_t>(task) * ranks + rank] * item_;
                grid::Overlap(shares_[rank], block).for_runs([&](const grid::Overlap::Run& run) {
                    const auto [row, column] = run.in_matrix;
                    const bool mine = static_cast<int>(rank) == me();
                    unpacker_->copy_row(numbers, block, row, {column, column + run.count},
                                        mine ? own_place(run) : packed + run.at * item_);
                });
            }
        });
        count().read += read;
        count().io_calls += calls;
        count().useful += (own + place) * item_;
    }

    void exchange_round(std::int64_t round, std::int64_t at_once) {
        const int ranks = context_.comm.size();
        const Timed exchanging(context_.ledger, context_.ledger.phase(), Step::move, "exchange chunks");
        mpi::MessageSet messages;
        for (int i = 1; i < ranks; ++i) {
            const int rank = (me() + i) % ranks;
            const std::int64_t begin = outgoing_[static_cast<std::size_t>(rank)],
                               count = outgoing_[static_cast<std::size_t>(rank) + 1] - begin;
            if (count > 0) {
                messages.out.push_back({rank, 0, 1, count, sent_.raw() + begin * item_});
            }
        }
        leaving_->start(messages);
        for (int i = 1; i < ranks; ++i) {  // one after the other, so that there is memory for one
            const int rank = (me() + ranks - i) % ranks;
            const Range its = of_round(rank, round, at_once);
            std::int64_t count = 0;
            for (const std::int64_t* chunk = its.begin; chunk < its.end; ++chunk) {
                count += grid::Overlap(share(me()), unpacker_->block_of(*chunk)).size();
            }
            if (count == 0) {
                continue;
            }
            received_.grow(count * item_);
            arriving_->start(mpi::MessageSet{{}, {{rank, 0, 1, count, received_.raw()}}});
            arriving_->complete();
            const std::byte* from = received_.raw();
            for (const std::int64_t* chunk = its.begin; chunk < its.end; ++chunk) {
                const grid::Overlap overlap(share(me()), unpacker_->block_of(*chunk));
                overlap.for_runs([&](const grid::Overlap::Run& run) {
                    std::memcpy(own_place(run), from + run.at * item_, static_cast<std::size_t>(run.count * item_));
                });
                from += overlap.size() * item_;
            }
        }
        leaving_->complete();
    }

    const Region& region_;
    const Chunks& chunks_;
    bool by_root_;
    std::optional<ChunkUnpacker> unpacker_;
    std::int64_t item_, across_;
    std::vector<grid::Share> shares_;
    std::int64_t width_ = 0;                        ///< of this rank's share
    std::vector<std::int64_t> wanted_;              ///< chunks that somebody wants
    std::vector<std::vector<std::int64_t>> lists_;  ///< of them, those that each rank unpacks
    std::vector<std::int64_t> outgoing_, places_;   ///< where in `sent_`, in numbers: of ranks; of chunks and ranks
    std::vector<ChunkUnpacker::Memory> memories_;   ///< of each thread
    Array<std::byte> sent_, received_;
    std::unique_ptr<mpi::Exchange> leaving_, arriving_;
};

}  // namespace

Strategy make_chunked(bool by_root) { return strategy_of<Chunked>(by_root); }

}  // namespace tilewise::io
