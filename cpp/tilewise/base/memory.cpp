// The processor's own memory, and the way to CUDA's where this program was built with it.
#include "tilewise/base/memory.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

#include "tilewise/base/buffer.hpp"
#include "tilewise/base/error.hpp"
#include "tilewise/base/host.hpp"
#include "tilewise/base/names.hpp"

namespace tilewise {
namespace {

constexpr std::array<std::string_view, 4> kinds_of_memory{"malloc", "pinned", "device", "managed"};

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

CudaFacts cuda_facts() {
#ifdef TILEWISE_CUDA
    return ask_cuda();
#else
    return {"", 0, "built without CUDA"};
#endif
}

bool is_from_cuda(const std::string& name) { return index_of(kinds_of_memory, name, "buffer") > 0; }

std::unique_ptr<BlockMemory> make_memory(const std::string& name, [[maybe_unused]] int device) {
    if (!is_from_cuda(name)) {
        return std::make_unique<HostMemory>();
    }
#ifdef TILEWISE_CUDA
    if (const CudaFacts facts = cuda_facts(); facts.gpus == 0) {
        throw UsageError("--buffer " + name + " needs a graphics processor, but this machine has none (" +
                         facts.trouble + "); --buffer malloc needs none");
    }
    return make_cuda_memory(name, device);
#else
    throw UsageError(
        "--buffer " + name +
        " needs CUDA, but this tilewise was built without it; install CUDA's compiler nvcc and build tilewise "
        "again, or use --buffer malloc");
#endif
}

}  // namespace tilewise
