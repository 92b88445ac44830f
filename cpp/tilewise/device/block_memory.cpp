// A graphics processor in use: its context, memory on it or for it, the two kernels that make and check content, and
// the kinds of memory that a driver gives, each as a BlockMemory.
#include "tilewise/device/block_memory.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <utility>

#include "tilewise/base/memory.hpp"
#include "tilewise/base/memory_pattern.hpp"
#include "tilewise/base/names.hpp"
#include "tilewise/device/driver.hpp"

namespace tilewise::device {
namespace {

constexpr unsigned threads_of_block = 256;
constexpr std::int64_t most_blocks = 4096;
constexpr unsigned attach_global = 1;  // managed memory that every stream may touch

/// The context that all of this process share on a device, held while this lives. Whatever uses it must go first.
/// Errors of all calls: UsageError without a device, MemoryError, IoError.
class Context {
public:
    /// `for_what` is for the text of an error.
    Context(int number, const std::string& for_what) : calls_(driver(for_what)), number_(number) {
        check(calls_.get(&device_, number), "cuDeviceGet", number);
        check(calls_.retain_context(&context_, device_), "cuDevicePrimaryCtxRetain", number);
    }
    ~Context() { calls_.release_context(device_); }
    Context(const Context&) = delete;
    Context& operator=(const Context&) = delete;

    int number() const { return number_; }
    const Driver& calls() const { return calls_; }
    /// Makes it the calling thread's, as every call expects.
    void use() const { check(enter(), "cuCtxSetCurrent", number_); }
    /// The same for whoever frees: a device that is lost has nothing to free, so what is returned is not looked at.
    Result enter() const noexcept { return calls_.use_context(context_); }
    /// Waits until the device has done everything; what it could not do fails here.
    void wait(const std::string& what) const { check(calls_.synchronize(), what, number_); }
    std::int64_t free_bytes() const {
        std::size_t free = 0, total = 0;
        use();
        check(calls_.memory_info(&free, &total), "cuMemGetInfo", number_);
        return static_cast<std::int64_t>(free);
    }
    /// "NAME (number, GPU-UUID)"
    std::string name() const { return name_of(calls_, device_, number_); }

private:
    const Driver& calls_;
    int number_, device_ = 0;
    Handle context_ = nullptr;
};

enum class MemoryKind { pinned, device, managed };

/// Memory of a context, freed with its owner; begins at a page.
class Allocation {
public:
    Allocation() = default;
    Allocation(const Context& context, MemoryKind kind, std::int64_t bytes) : context_(&context), kind_(kind) {
        const Driver& calls = context.calls();
        const auto size = static_cast<std::size_t>(bytes + page);  // drivers promise no page to begin at
        const std::string of = " of " + std::to_string(bytes) + " bytes";
        context.use();
        if (kind == MemoryKind::pinned) {
            void* data = nullptr;
            check(calls.allocate_pinned(&data, size), "cuMemAllocHost" + of, context.number());
            given_ = reinterpret_cast<Address>(data);
        } else if (kind == MemoryKind::device) {
            check(calls.allocate(&given_, size), "cuMemAlloc" + of, context.number());
        } else {
            check(calls.allocate_managed(&given_, size, attach_global), "cuMemAllocManaged" + of, context.number());
        }
        address_ = (given_ + page - 1) / page * page;
    }
    ~Allocation() {
        if (given_ == 0) {
            return;
        }
        const Driver& calls = context_->calls();
        context_->enter();
        if (kind_ == MemoryKind::pinned) {
            calls.release_pinned(reinterpret_cast<void*>(given_));
        } else {
            calls.release(given_);
        }
    }
    Allocation(Allocation&& other) noexcept
        : context_(other.context_),
          kind_(other.kind_),
          given_(std::exchange(other.given_, 0)),
          address_(std::exchange(other.address_, 0)) {}
    Allocation& operator=(Allocation&& other) noexcept {
        std::swap(context_, other.context_);
        std::swap(kind_, other.kind_);
        std::swap(given_, other.given_);
        std::swap(address_, other.address_);
        return *this;
    }

    Address address() const { return address_; }
    /// The same for the host, which must not touch it where it is the device's.
    std::byte* data() const { return reinterpret_cast<std::byte*>(address_); }

private:
    const Context* context_ = nullptr;
    MemoryKind kind_ = MemoryKind::device;
    Address given_ = 0, address_ = 0;  // by the driver, and the page in it
};

/// pattern.ptx, loaded into a context. Both kernels have ended when their call returns.
class PatternKernels {
public:
    explicit PatternKernels(const Context& context) : context_(context) {
        const Driver& calls = context.calls();
        first_wrong_ = Allocation(context, MemoryKind::device, sizeof(std::uint64_t));
        check(calls.load_module(&module_, pattern_text()), "cuModuleLoadData", context.number());
        try {
            check(calls.kernel(&fill_, module_, "tilewise_fill"), "cuModuleGetFunction", context.number());
            check(calls.kernel(&compare_, module_, "tilewise_compare"), "cuModuleGetFunction", context.number());
        } catch (...) {
            calls.unload_module(module_);
            throw;
        }
    }
    ~PatternKernels() {
        context_.enter();
        context_.calls().unload_module(module_);
    }
    PatternKernels(const PatternKernels&) = delete;
    PatternKernels& operator=(const PatternKernels&) = delete;

    void fill(Address data, std::int64_t bytes, Pattern pattern) const {
        std::array<void*, 3> parameters{&data, &bytes, &pattern.seed};
        context_.use();
        launch(fill_, bytes, parameters.data(), "filling a block");
    }
    /// The first wrong byte, or −1.
    std::int64_t compare(Address data, std::int64_t bytes, Pattern pattern) const {
        constexpr std::uint64_t none = ~std::uint64_t{0};
        std::uint64_t wrong = none;
        Address found = first_wrong_.address();
        std::array<void*, 4> parameters{&data, &bytes, &pattern.seed, &found};
        context_.use();
        check(context_.calls().to_device(found, &wrong, sizeof wrong), "cuMemcpyHtoD", context_.number());
        launch(compare_, bytes, parameters.data(), "checking a block");
        check(context_.calls().to_host(&wrong, found, sizeof wrong), "cuMemcpyDtoH", context_.number());
        return wrong == none ? -1 : static_cast<std::int64_t>(wrong);
    }

private:
    void launch(Handle kernel, std::int64_t bytes, void** parameters, const std::string& what) const {
        const std::int64_t wanted = (bytes + threads_of_block - 1) / threads_of_block;
        const auto blocks = static_cast<unsigned>(std::clamp<std::int64_t>(wanted, 1, most_blocks));
        check(context_.calls().launch(kernel, blocks, 1, 1, threads_of_block, 1, 1, 0, nullptr, parameters, nullptr),
              what, context_.number());
        context_.wait(what);  // until then the host must not touch managed pages
    }

    const Context& context_;
    Allocation first_wrong_;
    Handle module_ = nullptr, fill_ = nullptr, compare_ = nullptr;
};

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
