// The kinds that a driver gives, each as a BlockMemory.
#include "tilewise/device/block_memory.hpp"

#include <array>
#include <cstring>
#include <optional>

#include "tilewise/base/names.hpp"
#include "tilewise/device/context.hpp"

namespace tilewise::device {
namespace {

constexpr std::array<std::string_view, 4> kinds{"malloc", "pinned", "device", "managed"};

class DriverMemory final : public BlockMemory {
public:
    DriverMemory(MemoryKind kind, const std::string& name, int number)
        : kind_(kind),
          name_(name),
          context_(number, "--buffer " + name) {}

    std::string name() const override { return name_; }
    std::string device() const override { return context_.name(); }

    std::int64_t free_bytes() const override { return on_host() ? free_host_memory() : context_.free_bytes(); }

    void allocate(std::int64_t bytes) override {
        memory_ = Allocation(context_, kind_, bytes);
        if (!on_host()) {
            kernels_.emplace(context_);
        }
    }

    void fill(std::int64_t offset, std::int64_t bytes, Pattern pattern) override {
        if (on_host()) {
            fill_plainly(memory_.data() + offset, bytes, pattern);
        } else {
            kernels_->fill(at(offset), bytes, pattern);
        }
    }

    std::int64_t compare(std::int64_t offset, std::int64_t bytes, Pattern pattern) const override {
        return on_host() ? compare_plainly(memory_.data() + offset, bytes, pattern)
                         : kernels_->compare(at(offset), bytes, pattern);
    }

    std::byte* address() const override { return kind_ == MemoryKind::device ? nullptr : memory_.data(); }
    std::byte* device_address() const override { return memory_.data(); }

    std::byte* stage(std::int64_t bytes) override {
        stage_ = Allocation();
        stage_ = Allocation(context_, MemoryKind::pinned, bytes);
        return stage_.data();
    }

    void to_host(std::byte* to, std::int64_t offset, std::int64_t bytes) const override {
        const auto size = static_cast<std::size_t>(bytes);
        if (on_host()) {
            std::memcpy(to, memory_.data() + offset, size);
            return;
        }
        context_.use();
        check(context_.calls().to_host(to, at(offset), size), "cuMemcpyDtoH", context_.number());
    }

    void from_host(std::int64_t offset, const std::byte* from, std::int64_t bytes) override {
        const auto size = static_cast<std::size_t>(bytes);
        if (on_host()) {
            std::memcpy(memory_.data() + offset, from, size);
            return;
        }
        context_.use();
        check(context_.calls().to_device(at(offset), from, size), "cuMemcpyHtoD", context_.number());
        context_.wait("cuMemcpyHtoD");  // what was copied aside may still be under way
    }

private:
    bool on_host() const { return kind_ == MemoryKind::pinned; }
    Address at(std::int64_t offset) const { return memory_.address() + static_cast<Address>(offset); }

    MemoryKind kind_;
    std::string name_;
    Context context_;  // before what is in it, so that it goes last
    Allocation memory_, stage_;
    std::optional<PatternKernels> kernels_;
};

}  // namespace

bool needs_driver(const std::string& name) { return index_of(kinds, name, "buffer") > 0; }

std::unique_ptr<BlockMemory> make_memory(const std::string& name, int number) {
    if (!needs_driver(name)) {
        return make_host_memory();
    }
    const MemoryKind kind = name == "pinned"   ? MemoryKind::pinned
                            : name == "device" ? MemoryKind::device
                                               : MemoryKind::managed;
    return std::make_unique<DriverMemory>(kind, name, number);
}

}  // namespace tilewise::device
