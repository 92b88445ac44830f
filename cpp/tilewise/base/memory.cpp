// The processor's own memory, and the plain way of making and checking content.
#include "tilewise/base/memory.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

#include "tilewise/base/buffer.hpp"
#include "tilewise/base/error.hpp"
#include "tilewise/base/host.hpp"

namespace tilewise {
namespace {

class HostMemory final : public BlockMemory {
public:
    std::string name() const override { return "malloc"; }
    std::string device() const override { return ""; }

    std::int64_t free_bytes() const override { return free_host_memory(); }

    void allocate(std::int64_t bytes) override { memory_ = Buffer(static_cast<std::size_t>(bytes)); }
    void fill(std::int64_t offset, std::int64_t bytes, Pattern pattern) override {
        fill_plainly(memory_.data() + offset, bytes, pattern);
    }
    std::int64_t compare(std::int64_t offset, std::int64_t bytes, Pattern pattern) const override {
        return compare_plainly(memory_.data() + offset, bytes, pattern);
    }

    std::byte* address() const override { return memory_.data(); }
    std::byte* device_address() const override { return memory_.data(); }
    std::byte* stage(std::int64_t) override { return nullptr; }
    void to_host(std::byte* to, std::int64_t offset, std::int64_t bytes) const override {
        std::memcpy(to, memory_.data() + offset, static_cast<std::size_t>(bytes));
    }
    void from_host(std::int64_t offset, const std::byte* from, std::int64_t bytes) override {
        std::memcpy(memory_.data() + offset, from, static_cast<std::size_t>(bytes));
    }

private:
    Buffer memory_;
};

/// The bytes of a word in the order in which they lie in a file.
std::array<std::byte, 8> lowest_first(std::uint64_t word) {
    std::array<std::byte, 8> bytes{};
    std::memcpy(bytes.data(), &word, sizeof word);
    if constexpr (std::endian::native == std::endian::big) {
        std::reverse(bytes.begin(), bytes.end());
    }
    return bytes;
}

/// Calls part(offset, word's bytes, how many of them) for all words of a block, the last of which may be cut short;
/// ends early where it returns false.
template <class Part> void for_words(std::int64_t bytes, Pattern pattern, Part part) {
    for (std::int64_t at = 0; at < bytes; at += 8) {
        if (!part(at, lowest_first(pattern.word(at / 8)),
                  static_cast<std::size_t>(std::min<std::int64_t>(8, bytes - at)))) {
            return;
        }
    }
}

}  // namespace

std::int64_t free_host_memory() {
    const std::int64_t available = available_memory();
    if (available < 0) {
        throw IoError("/proc/meminfo: the available memory is missing");
    }
    return available;
}

void fill_plainly(std::byte* data, std::int64_t bytes, Pattern pattern) {
    for_words(bytes, pattern, [&](std::int64_t at, const std::array<std::byte, 8>& word, std::size_t size) {
        std::memcpy(data + at, word.data(), size);
        return true;
    });
}

std::int64_t compare_plainly(const std::byte* data, std::int64_t bytes, Pattern pattern) {
    std::int64_t wrong = -1;
    for_words(bytes, pattern, [&](std::int64_t at, const std::array<std::byte, 8>& word, std::size_t size) {
        if (std::memcmp(data + at, word.data(), size) == 0) {
            return true;
        }
        wrong = at + (std::mismatch(data + at, data + at + size, word.data()).first - (data + at));
        return false;
    });
    return wrong;
}

std::unique_ptr<BlockMemory> make_host_memory() { return std::make_unique<HostMemory>(); }

}  // namespace tilewise
