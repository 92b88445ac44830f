// Strategy `positioned`: every rank reads and writes the rows of its own block with pread and pwrite, on all its threads.
//
//        file  [ r0 r0 | r1 r1 ]     no messages at all; a call for each row of a block, or few calls for
//              [ r0 r0 | r1 r1 ]     blocks as wide as the matrix, whose rows follow each other in the file
//              [ r2 r2 | r3 r3 ]
#include <atomic>

#include "tilewise/base/threads.hpp"
#include "tilewise/io/file.hpp"
#include "tilewise/io/strategy.hpp"
#include "tilewise/mpi/together.hpp"

namespace tilewise::io {
namespace {

class Positioned final : public Strategy {
public:
    void read(Context& context, const Transfer& transfer) const override {
        move(context, transfer, PosixFile::Mode::read);
        const std::int64_t bytes = transfer.block_of(context.comm.rank()).size() * transfer.item();
        context.ledger.count().read += bytes;
        context.ledger.count().useful += bytes;
    }

    void write(Context& context, const Transfer& transfer) const override {
        move(context, transfer, PosixFile::Mode::write);
        context.ledger.count().written += transfer.block_of(context.comm.rank()).size() * transfer.item();
    }

private:
    static void move(Context& context, const Transfer& transfer, PosixFile::Mode mode) {
        const Timed timed(context.ledger, context.ledger.phase(), Step::file,
                          (mode == PosixFile::Mode::read ? "pread " : "pwrite ") + transfer.region.name);
        std::atomic<std::int64_t> calls = 0;
        mpi::together(context.comm, [&] {
            const grid::Block block = transfer.block_of(context.comm.rank());
            if (block.size() > 0) {
                const PosixFile file(transfer.region.path, transfer.region.name, mode);
                const int threads = block.size() * transfer.item() < (1 << 20) ? 1 : context.threads;
                parallel_ranges(threads, block.rows.size(), [&](std::int64_t begin, std::int64_t end, int) {
                    calls += move_rows(file, transfer, block, {begin, end}, mode);
                });
            }
        });
        context.ledger.count().io_calls += calls;
    }

    static std::int64_t move_rows(const PosixFile& file, const Transfer& transfer, const grid::Block& block,
                                  grid::Range rows, PosixFile::Mode mode) {
        std::int64_t calls = 0;
        for_row_pieces(transfer, block, rows, [&](std::byte* data, std::int64_t bytes, std::int64_t offset) {
            calls += mode == PosixFile::Mode::read ? file.read(data, bytes, offset) : file.write(data, bytes, offset);
        });
        return calls;
    }
};

}  // namespace

std::unique_ptr<Strategy> make_positioned() { return std::make_unique<Positioned>(); }

}  // namespace tilewise::io
