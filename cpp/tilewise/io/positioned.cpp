// Strategy `positioned`: every rank reads and writes the rows of its own share with pread and pwrite, on all its
// threads.
//
//        file  [ r0 r0 | r1 r1 ]     no messages at all; a call for each row of a block, or few calls for
//              [ r0 r0 | r1 r1 ]     blocks as wide as the matrix, whose rows follow each other in the file
//              [ r2 r2 | r3 r3 ]
#include "tilewise/io/file.hpp"
#include "tilewise/io/runs.hpp"

namespace tilewise::io {
namespace {

class Positioned final : public Strategy {
public:
    void read(Context& context, const Transfer& transfer) const override {
        const std::int64_t before = context.ledger.count().useful;
        move(context, transfer, PosixFile::Mode::read);
        context.ledger.count().read += context.ledger.count().useful - before;
    }

    void write(Context& context, const Transfer& transfer) const override {
        move(context, transfer, PosixFile::Mode::write);
    }

private:
    static void move(Context& context, const Transfer& transfer, PosixFile::Mode mode) {
        const bool reading = mode == PosixFile::Mode::read;
        const auto open = [&] { return std::make_unique<PosixFile>(transfer.region.path, transfer.region.name, mode); };
        serve_own_share(context, transfer, reading, reading ? "pread" : "pwrite", open,
                        [&](const auto& file, const grid::Share& share, grid::Range within) {
                            std::int64_t calls = 0;
                            grid::for_runs(share, transfer.columns(), within,
                                           [&](std::int64_t first, std::int64_t count, std::int64_t local) {
                                               std::byte* data = transfer.data + local * transfer.item();
                                               const std::int64_t bytes = count * transfer.item();
                                               calls += reading ? file->read(data, bytes, transfer.at(first))
                                                                : file->write(data, bytes, transfer.at(first));
                                           });
                            return calls;
                        });
    }
};

}  // namespace

std::unique_ptr<Strategy> make_positioned(const Hints&) { return std::make_unique<Positioned>(); }

}  // namespace tilewise::io
