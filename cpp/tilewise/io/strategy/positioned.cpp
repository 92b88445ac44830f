// Strategy `positioned`: every rank reads and writes the rows of its own share with pread and pwrite, on all its
// threads.
//
//        file  [ r0 r0 | r1 r1 ]     no messages at all; a call for each row of a block, or few calls for
//              [ r0 r0 | r1 r1 ]     blocks as wide as the matrix, whose rows follow each other in the file
//              [ r2 r2 | r3 r3 ]
#include "tilewise/io/strategy/own_share.hpp"

namespace tilewise::io {
namespace {

class Positioned final : public OwnShare<PosixFile> {
public:
    Positioned(Context& context, const Transfer& transfer, Direction direction)
        : OwnShare(context, transfer, direction, direction == Direction::read ? "pread" : "pwrite",
                   [&transfer, direction] { return open_whole(transfer, direction); }) {}

private:
    std::int64_t serve(grid::Range within) override {
        std::int64_t calls = 0;
        grid::for_runs(share_, transfer_.columns(), within,
                       [&](std::int64_t first, std::int64_t count, std::int64_t local) {
                           std::byte* data = transfer_.data + local * transfer_.item();
                           const std::int64_t bytes = count * transfer_.item(), offset = transfer_.at(first);
                           calls += reads() ? file_->read(data, bytes, offset) : file_->write(data, bytes, offset);
                       });
        return calls;
    }
};

}  // namespace

Strategy make_positioned(const Hints&) { return strategy_of<Positioned>(); }

}  // namespace tilewise::io
