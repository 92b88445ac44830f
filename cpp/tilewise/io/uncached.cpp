// Splits every piece into whole pages and ends, and keeps several requests in flight by using all threads.
#include "tilewise/io/uncached.hpp"

#include <algorithm>
#include <atomic>

#include "tilewise/base/threads.hpp"
#include "tilewise/mpi/together.hpp"

namespace tilewise::io {
namespace {

constexpr std::int64_t page = 4096;
constexpr std::int64_t worth_it = std::int64_t{64} << 10;  // a smaller direct request costs more than a copy
constexpr std::int64_t request = std::int64_t{8} << 20;

/// Calls buffered(part) or direct(part) for consecutive parts [begin, end) of a piece that lies at `data` and `offset`.
template <class Buffered, class Direct>
std::int64_t split(const std::byte* data, std::int64_t bytes, std::int64_t offset, Buffered buffered, Direct direct) {
    const auto address = static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(data) % page);
    const std::int64_t head = std::min(bytes, (page - offset % page) % page);
    const std::int64_t middle = (bytes - head) / page * page;
    if (address != offset % page || middle < worth_it) {
        return buffered(std::int64_t{0}, bytes);
    }
    std::int64_t calls = head > 0 ? buffered(std::int64_t{0}, head) : 0;
    for (std::int64_t begin = head; begin < head + middle; begin += request) {
        calls += direct(begin, std::min(begin + request, head + middle));
    }
    return calls + (head + middle < bytes ? buffered(head + middle, bytes) : 0);
}

class Uncached final : public Strategy {
public:
    void read(Context& context, const Transfer& transfer) const override {
        const std::int64_t bytes = move(context, transfer, PosixFile::Mode::read);
        context.ledger.count().read += bytes;
        context.ledger.count().useful += bytes;
    }

    void write(Context& context, const Transfer& transfer) const override {
        context.ledger.count().written += move(context, transfer, PosixFile::Mode::write);
    }

private:
    static std::int64_t move(Context& context, const Transfer& transfer, PosixFile::Mode mode) {
        const bool reading = mode == PosixFile::Mode::read;
        const Timed timed(context.ledger, context.ledger.phase(), Step::file,
                          (reading ? "direct pread " : "direct pwrite ") + transfer.region.name);
        const grid::Block block = transfer.block_of(context.comm.rank());
        std::atomic<std::int64_t> calls = 0;
        mpi::together(context.comm, [&] {
            if (block.size() == 0) {
                return;
            }
            const UncachedFile file(transfer.region.path, transfer.region.name, mode);
            const int threads = block.size() * transfer.item() < (1 << 20) ? 1 : context.threads;
            parallel_ranges(threads, block.rows.size(), [&](std::int64_t begin, std::int64_t end, int) {
                calls += reading ? read_rows(file, transfer, block, {begin, end})
                                 : write_rows_uncached(file, transfer, block, {begin, end});
            });
        });
        context.ledger.count().io_calls += calls;
        return block.size() * transfer.item();
    }

    static std::int64_t read_rows(const UncachedFile& file, const Transfer& transfer, const grid::Block& block,
                                  grid::Range rows) {
        std::int64_t calls = 0;
        for_row_pieces(transfer, block, rows, [&](std::byte* data, std::int64_t bytes, std::int64_t offset) {
            calls += file.read(data, bytes, offset);
        });
        return calls;
    }
};

}  // namespace

UncachedFile::UncachedFile(const std::string& path, const std::string& name, PosixFile::Mode mode)
    : buffered_(path, name, mode),
      direct_(path, name, mode, PosixFile::Cache::bypassed) {}

std::int64_t UncachedFile::read(std::byte* data, std::int64_t bytes, std::int64_t offset) const {
    const auto by = [&](const PosixFile& file) {
        return [&, data, offset](std::int64_t begin, std::int64_t end) {
            return file.read(data + begin, end - begin, offset + begin);
        };
    };
    return split(data, bytes, offset, by(buffered_), by(direct_));
}

std::int64_t UncachedFile::write(const std::byte* data, std::int64_t bytes, std::int64_t offset) const {
    const auto by = [&](const PosixFile& file) {
        return [&, data, offset](std::int64_t begin, std::int64_t end) {
            return file.write(data + begin, end - begin, offset + begin);
        };
    };
    return split(data, bytes, offset, by(buffered_), by(direct_));
}

std::int64_t write_rows_uncached(const UncachedFile& file, const Transfer& transfer, const grid::Block& block,
                                 grid::Range rows) {
    std::int64_t calls = 0;
    for_row_pieces(transfer, block, rows, [&](const std::byte* data, std::int64_t bytes, std::int64_t offset) {
        calls += file.write(data, bytes, offset);
    });
    return calls;
}

std::unique_ptr<Strategy> make_uncached() { return std::make_unique<Uncached>(); }

}  // namespace tilewise::io
