// Maps regions, copies blocks out of and into them, and turns the bus error of a shrunken file into words.
#include "tilewise/io/mapped.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>
#include <utility>

#include "tilewise/base/error.hpp"
#include "tilewise/base/threads.hpp"
#include "tilewise/io/runs.hpp"

namespace tilewise::io {
namespace {

constexpr std::int64_t page = 4096;

// A bus error's handler may only read what was prepared before.
std::array<char, 512> mapped_name{};
void (*say_shrunken)(const char* name) = nullptr;

void on_bus_error(int) {
    if (say_shrunken != nullptr) {
        say_shrunken(mapped_name.data());
    }
    _exit(1);
}

void expect_bus_errors(const std::string& name) {
    std::size_t length = 0;
    for (const char letter : name) {  // what it says goes into a JSON string, unescaped
        if (length + 1 < mapped_name.size()) {
            mapped_name[length++] =
                letter == '"' || letter == '\\' || static_cast<unsigned char>(letter) < 0x20 ? '?' : letter;
        }
    }
    mapped_name[length] = '\0';
    struct sigaction action{};
    action.sa_handler = on_bus_error;
    sigaction(SIGBUS, &action, nullptr);
}

class Mapped final : public Strategy {
public:
    void read(Context& context, const Transfer& transfer) const override {
        const std::int64_t before = context.ledger.count().useful;
        copy(context, transfer, Mapping::Access::read);
        context.ledger.count().read += context.ledger.count().useful - before;
    }

    void write(Context& context, const Transfer& transfer) const override {
        copy(context, transfer, Mapping::Access::write);
    }

private:
    static void copy(Context& context, const Transfer& transfer, Mapping::Access access) {
        const bool reading = access == Mapping::Access::read;
        const auto open = [&] { return std::make_unique<Mapping>(transfer.region, access); };
        serve_own_share(context, transfer, reading, reading ? "copy from map" : "copy to map", open,
                        [&](const auto& mapping, const grid::Share& share, grid::Range within) {
                            grid::for_runs(share, transfer.columns(), within,
                                           [&](std::int64_t first, std::int64_t count, std::int64_t local) {
                                               std::byte* mine = transfer.data + local * transfer.item();
                                               std::byte* its = mapping->data() + first * transfer.item();
                                               std::memcpy(reading ? mine : its, reading ? its : mine,
                                                           static_cast<std::size_t>(count * transfer.item()));
                                           });
                            return 0;
                        });
        context.ledger.count().io_calls += 1;
    }
};

}  // namespace

Mapping::Mapping(const Region& region, Access access) {
    const int descriptor =
        open(region.path.c_str(), (access == Access::read ? O_RDONLY : O_RDWR) | O_CLOEXEC | O_NONBLOCK);
    if (descriptor < 0) {
        throw IoError(region.name + ": could not be opened: " + system_reason(errno));
    }
    const std::int64_t first = region.text ? 0 : region.offset, begin = first / page * page;
    length_ = static_cast<std::size_t>(first - begin + (region.text ? region.file_bytes : region.bytes()));
    expect_bus_errors(region.name);
    start_ = mmap(nullptr, length_, access == Access::read ? PROT_READ : PROT_READ | PROT_WRITE, MAP_SHARED, descriptor,
                  begin);
    const int reason = errno;
    close(descriptor);
    if (start_ == MAP_FAILED) {
        start_ = nullptr;
        throw IoError(region.name + ": could not be mapped: " + system_reason(reason));
    }
    data_ = static_cast<std::byte*>(start_) + (first - begin);
}

Mapping::Mapping(Mapping&& other) noexcept { *this = std::move(other); }

Mapping& Mapping::operator=(Mapping&& other) noexcept {
    std::swap(start_, other.start_);
    std::swap(length_, other.length_);
    std::swap(data_, other.data_);
    return *this;
}

Mapping::~Mapping() {
    if (start_ != nullptr) {
        munmap(start_, length_);
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
    return region.generator.empty() && region.tiles.empty() && !region.text && region.dtype == dtype &&
           !region.swap_bytes && region.bytes() > 0 &&
           region.offset % static_cast<std::int64_t>(facts(dtype).component) == 0;
}

void set_shrunken_file_message(void (*say)(const char* name)) { say_shrunken = say; }

std::unique_ptr<Strategy> make_mapped(const Hints&) { return std::make_unique<Mapped>(); }

}  // namespace tilewise::io
