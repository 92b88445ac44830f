// Splits every piece into whole pages and ends; keeps all slots busy: whenever some requests have come back, as many
// new ones are handed over.
#include "tilewise/io/strategy/uncached.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <linux/aio_abi.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "tilewise/base/error.hpp"
#include "tilewise/base/memory.hpp"

namespace tilewise::io {

namespace {

constexpr std::int64_t call_bytes = std::int64_t{8} << 20;

/// Calls buffered(part) or direct(part) for consecutive parts [begin, end) of a piece that lies at `data` and `offset`.
template <class Buffered, class Direct>
std::int64_t split(const std::byte* data, std::int64_t bytes, std::int64_t offset, std::int64_t least,
                   Buffered buffered, Direct direct) {
    const auto address = static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(data) % page);
    const std::int64_t head = std::min(bytes, (page - offset % page) % page);
    const std::int64_t middle = (bytes - head) / page * page;
    if (address != offset % page || middle < least) {
        return buffered(std::int64_t{0}, bytes);
    }
    std::int64_t calls = head > 0 ? buffered(std::int64_t{0}, head) : 0;
    for (std::int64_t begin = head; begin < head + middle; begin += call_bytes) {
        calls += direct(begin, std::min(begin + call_bytes, head + middle));
    }
    return calls + (head + middle < bytes ? buffered(head + middle, bytes) : 0);
}

}  // namespace

UncachedFile::UncachedFile(const std::string& path, const std::string& name, PosixFile::Mode mode, std::int64_t least)
    : buffered_(path, name, mode),
      direct_(path, name, mode, PosixFile::Cache::bypassed),
      least_(least) {}

std::int64_t UncachedFile::read(std::byte* data, std::int64_t bytes, std::int64_t offset) const {
    const auto by = [&](const PosixFile& file) {
        return [&, data, offset](std::int64_t begin, std::int64_t end) {
            return file.read(data + begin, end - begin, offset + begin);
        };
    };
    return split(data, bytes, offset, least_, by(buffered_), by(direct_));
}

std::int64_t UncachedFile::write(const std::byte* data, std::int64_t bytes, std::int64_t offset) const {
    const auto by = [&](const PosixFile& file) {
        return [&, data, offset](std::int64_t begin, std::int64_t end) {
            return file.write(data + begin, end - begin, offset + begin);
        };
    };
    return split(data, bytes, offset, least_, by(buffered_), by(direct_));
}

void UncachedFile::close() {
    direct_.close();
    buffered_.close();
}

namespace {

constexpr int most_requests = 128;
constexpr std::int64_t longest = std::int64_t{128} << 10;  // bytes of a request: longer pieces are cut

std::int64_t down(std::int64_t bytes, std::int64_t unit) { return bytes / unit * unit; }
std::int64_t up(std::int64_t bytes, std::int64_t unit) { return down(bytes + unit - 1, unit); }

/// What lies in no slot yet, cut to requests.
class Requests {
public:
    explicit Requests(std::span<const Piece> pieces) : pieces_(pieces) {}

    bool left() const { return next_ < pieces_.size(); }
    Piece take() {
        const Piece& piece = pieces_[next_];
        const std::int64_t bytes = std::min(longest, piece.bytes - at_);
        const Piece found{piece.offset + at_, bytes, piece.data + at_};
        at_ += bytes;
        if (at_ >= piece.bytes) {
            at_ = 0;
            ++next_;
        }
        return found;
    }

private:
    std::span<const Piece> pieces_;
    std::size_t next_ = 0;
    std::int64_t at_ = 0;
};

}  // namespace

/// Slots of one length, and what is in them.
struct DirectReads::Batch {
    DirectReads& reads;
    std::int64_t slot_bytes;
    std::vector<int> free;
    std::vector<Piece> pieces;     // by slot
    std::vector<iocb> requests;    // by slot
    std::vector<iocb*> handed;     // to the system, next
    std::vector<Piece> once_more;  // through the page cache
    std::int64_t calls = 0;
    int busy = 0;

    Batch(DirectReads& owner, std::int64_t longest_piece)
        : reads(owner),
          slot_bytes(up(std::min(longest, longest_piece), page) + 2 * page) {
        const auto count = static_cast<int>(std::clamp<std::int64_t>(under_way / slot_bytes, 1, most_requests));
        pieces.resize(static_cast<std::size_t>(count));
        requests.resize(static_cast<std::size_t>(count));
        for (int slot = count; slot-- > 0;) {
            free.push_back(slot);
        }
    }

    std::byte* slot(int index) const { return reads.slots_.data() + index * slot_bytes; }

    void fill(const Piece& piece) {
        const int index = free.back();
        free.pop_back();
        const std::int64_t begin = down(piece.offset, reads.sector_);
        iocb& request = requests[static_cast<std::size_t>(index)];
        request = {};
        request.aio_data = static_cast<std::uint64_t>(index);
        request.aio_lio_opcode = IOCB_CMD_PREAD;
        request.aio_fildes = static_cast<std::uint32_t>(reads.direct_.descriptor());
        request.aio_buf = reinterpret_cast<std::uint64_t>(slot(index));
        request.aio_nbytes = static_cast<std::uint64_t>(up(piece.offset + piece.bytes, reads.sector_) - begin);
        request.aio_offset = begin;
        pieces[static_cast<std::size_t>(index)] = piece;
        handed.push_back(&request);
    }

    /// Gives a slot back whose piece was not read here.
    void give_up(std::uint64_t index) {
        once_more.push_back(pieces[index]);
        free.push_back(static_cast<int>(index));
    }

    void submit() {
        std::size_t taken = 0;
        while (taken < handed.size()) {
            const long got = uninterrupted([&] {
                return syscall(SYS_io_submit, reads.queue_, static_cast<long>(handed.size() - taken),
                               handed.data() + taken);
            });
            ++calls;
            if (got <= 0) {  // the first is refused
                give_up(handed[taken++]->aio_data);
                continue;
            }
            busy += static_cast<int>(got);
            taken += static_cast<std::size_t>(got);
        }
        handed.clear();
    }

    /// Waits for half of what is under way, so that the device never runs out of work.
    void collect() {
        std::array<io_event, most_requests> events;
        const long got = uninterrupted([&] {
            return syscall(SYS_io_getevents, reads.queue_, static_cast<long>((busy + 1) / 2),
                           static_cast<long>(events.size()), events.data(), nullptr);
        });
        ++calls;
        if (got < 0) {  // of a queue that is there, and memory that is ours, this cannot be
            throw system_error("waiting for direct reads failed", errno);
        }
        busy -= static_cast<int>(got);
        for (const io_event& event : std::span(events).first(static_cast<std::size_t>(got))) {
            const Piece& piece = pieces[event.data];
            const std::int64_t skipped = piece.offset - requests[event.data].aio_offset;
            if (event.res == -EINVAL) {
                reads.sector_ = page;  // larger sectors than most devices have
            }
            if (event.res < skipped + piece.bytes) {  // an error, or the end of the file
                give_up(event.data);
                continue;
            }
            std::memcpy(piece.data, slot(static_cast<int>(event.data)) + skipped,
                        static_cast<std::size_t>(piece.bytes));
            free.push_back(static_cast<int>(event.data));
        }
    }
};

DirectReads::DirectReads(const std::string& path, const std::string& name)
    : cached_(path, name, PosixFile::Mode::read),
      direct_(path, name, PosixFile::Mode::read, PosixFile::Cache::bypassed) {
    if (syscall(SYS_io_setup, most_requests, &queue_) != 0) {
        queue_ = 0;
    }
}

DirectReads::~DirectReads() {
    if (queue_ != 0) {
        syscall(SYS_io_destroy, queue_);  // waits for what is under way
    }
}

std::int64_t DirectReads::read(std::span<const Piece> pieces, const std::atomic<bool>& given_up) {
    if (pieces.empty()) {
        return 0;
    }
    if (slots_.bytes() == 0) {
        slots_ = Buffer(static_cast<std::size_t>(under_way));
    }
    const auto by_length = [](const Piece& a, const Piece& b) { return a.bytes < b.bytes; };
    Batch batch(*this, std::max_element(pieces.begin(), pieces.end(), by_length)->bytes);
    Requests requests(pieces);
    while (batch.busy > 0 || (requests.left() && !given_up)) {
        while (!batch.free.empty() && requests.left() && !given_up) {
            batch.fill(requests.take());
        }
        batch.submit();
        if (batch.busy > 0) {
            batch.collect();
        }
    }
    std::int64_t calls = batch.calls;
    const auto by_offset = [](const Piece& a, const Piece& b) { return a.offset < b.offset; };
    std::sort(batch.once_more.begin(), batch.once_more.end(), by_offset);
    for (const Piece& piece : batch.once_more) {
        if (given_up) {
            break;
        }
        calls += cached_.read(piece.data, piece.bytes, piece.offset);
    }
    return calls;
}

}  // namespace tilewise::io
