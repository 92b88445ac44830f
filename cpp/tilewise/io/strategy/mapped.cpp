// Maps regions, copies blocks out of and into them, and turns the bus error of a shrunken file or a full disk into
// words.
#include "tilewise/io/strategy/mapped.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>
#include <utility>

#include "tilewise/base/error.hpp"
#include "tilewise/base/memory.hpp"
#include "tilewise/base/threads.hpp"
#include "tilewise/io/strategy/own_share.hpp"

namespace tilewise::io {
namespace {

// A bus error's handler may only read what was prepared before: the mappings that there are, and their files' names.
struct Watched {
    std::atomic<const std::byte*> begin = nullptr;
    std::size_t length = 0;
    bool writing = false;
    std::array<char, 512> name{};
};
std::array<Watched, 64> watched;
void (*say_lost)(const char* name, bool writing) = nullptr;

void on_bus_error(int, siginfo_t* facts, void*) {
    const auto* where = static_cast<const std::byte*>(facts->si_addr);
    for (const Watched& mapping : watched) {
        const std::byte* begin = mapping.begin;
        if (begin != nullptr && where >= begin && where < begin + mapping.length) {
            say_lost(mapping.name.data(), mapping.writing);
            _exit(1);
        }
    }
    std::signal(SIGBUS, SIG_DFL);  // none of ours: whoever looks at how this process ended shall see it
    std::raise(SIGBUS);
}

/// Only a program that has something to say catches the signal: it belongs to the whole process.
void expect_bus_errors(const void* begin, std::size_t length, const std::string& name, bool writing) {
    if (say_lost == nullptr) {
        return;
    }
    for (Watched& mapping : watched) {
        if (mapping.begin != nullptr) {
            continue;
        }
        std::size_t at = 0;
        for (const char letter : name) {  // what the handler says goes into a JSON string, unescaped
            if (at + 1 < mapping.name.size()) {
                mapping.name[at++] =
                    letter == '"' || letter == '\\' || static_cast<unsigned char>(letter) < 0x20 ? '?' : letter;
            }
        }
        mapping.name[at] = '\0';
        mapping.length = length;
        mapping.writing = writing;
        mapping.begin = static_cast<const std::byte*>(begin);
        break;
    }
    struct sigaction action{};
    action.sa_sigaction = on_bus_error;
    action.sa_flags = SA_SIGINFO;
    sigaction(SIGBUS, &action, nullptr);
}

void expect_no_more(const void* begin) {
    for (Watched& mapping : watched) {
        if (mapping.begin == begin) {
            mapping.begin = nullptr;
        }
    }
}

class Mapped final : public OwnShare<Mapping> {
public:
    Mapped(Context& context, const Transfer& transfer, Direction direction)
        : OwnShare(context, transfer, direction, direction == Direction::read ? "copy from map" : "copy to map",
                   [&transfer, direction] { return std::make_unique<Mapping>(transfer.region, direction); }) {
        context.ledger.count().io_calls += 1;
    }

private:
    std::int64_t serve(grid::Range within) override {
        grid::for_runs(share_, transfer_.columns(), within,
                       [&](std::int64_t first, std::int64_t count, std::int64_t local) {
                           std::byte* mine = transfer_.data + local * transfer_.item();
                           std::byte* its = file_->data() + first * transfer_.item();
                           std::memcpy(reads() ? mine : its, reads() ? its : mine,
                                       static_cast<std::size_t>(count * transfer_.item()));
                       });
        return 0;
    }
};

}  // namespace

Mapping::Mapping(const Region& region, Direction direction) : name_(region.name) {
    const bool writing = direction == Direction::write;
    descriptor_ = writing ? open_made(region.path, O_RDWR | O_NONBLOCK)
                          : uninterrupted([&] { return open(region.path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK); });
    if (descriptor_ < 0) {
        throw system_error(name_ + ": could not be opened", errno);
    }
    const std::int64_t first = region.text ? 0 : region.offset, begin = first / page * page;
    length_ = static_cast<std::size_t>(first - begin + (region.text ? region.file_bytes : region.bytes()));
    start_ = mmap(nullptr, length_, writing ? PROT_READ | PROT_WRITE : PROT_READ, MAP_SHARED, descriptor_, begin);
    const int reason = errno;
    if (!writing || start_ == MAP_FAILED) {
        ::close(std::exchange(descriptor_, -1));
    }
    if (start_ == MAP_FAILED) {
        start_ = nullptr;
        throw system_error(name_ + ": could not be mapped", reason);
    }
    expect_bus_errors(start_, length_, name_, writing);
    data_ = static_cast<std::byte*>(start_) + (first - begin);
}

Mapping::Mapping(Mapping&& other) noexcept { *this = std::move(other); }

Mapping& Mapping::operator=(Mapping&& other) noexcept {
    std::swap(name_, other.name_);
    std::swap(descriptor_, other.descriptor_);
    std::swap(start_, other.start_);
    std::swap(length_, other.length_);
    std::swap(data_, other.data_);
    return *this;
}

Mapping::~Mapping() { unmap(); }

int Mapping::unmap() {
    int reason = 0;
    const auto look = [&](int result) { reason = result != 0 && reason == 0 ? errno : reason; };
    if (start_ != nullptr) {
        if (descriptor_ >= 0) {
            look(msync(start_, length_, MS_ASYNC));
        }
        expect_no_more(start_);
        look(munmap(std::exchange(start_, nullptr), length_));
    }
    if (descriptor_ >= 0) {  // after the pages: file systems that write them back now speak here
        look(::close(std::exchange(descriptor_, -1)));
    }
    return reason;
}

void Mapping::close() {
    if (const int reason = unmap(); reason != 0 && reason != EINTR) {
        throw system_error(name_ + ": closing it failed; written data may be lost", reason);
    }
}

void Mapping::populate(int threads) const {
#ifdef MADV_POPULATE_READ
    const auto pages = static_cast<std::int64_t>((length_ + page - 1) / page);
    parallel_ranges(threads, pages, [&](std::int64_t begin, std::int64_t end, int) {
        // Only speed is lost where the kernel does not know this: the pages then come one fault at a time.
        madvise(static_cast<std::byte*>(start_) + begin * page, static_cast<std::size_t>((end - begin) * page),
                MADV_POPULATE_READ);
    });
#else
    madvise(start_, length_, MADV_WILLNEED);
    (void)threads;
#endif
}

void Mapping::release(const void* begin, const void* end) const {
    // A fault brings in the pages around it too: those before `begin` are let go with it.
    constexpr std::uintptr_t around = 16 * page;
    const auto first =
        std::max(reinterpret_cast<std::uintptr_t>(begin) / around * around, reinterpret_cast<std::uintptr_t>(start_));
    const auto last = reinterpret_cast<std::uintptr_t>(end) / page * page;
    if (first < last) {  // should it fail, only memory that is not needed stays counted
        madvise(reinterpret_cast<void*>(first), last - first, MADV_DONTNEED);
    }
}

bool usable_in_place(const Region& region, Dtype dtype) {
    return region.is_one_file() && region.dtype == dtype && !region.swap_bytes && region.bytes() > 0 &&
           region.offset % static_cast<std::int64_t>(facts(dtype).component) == 0;
}

void set_bus_error_message(void (*say)(const char* name, bool writing)) { say_lost = say; }

Strategy make_mapped(const Hints&) { return strategy_of<Mapped>(); }

}  // namespace tilewise::io
