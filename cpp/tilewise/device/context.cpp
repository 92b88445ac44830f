// Every call of the driver that takes or gives back something, or makes the device work.
#include "tilewise/device/context.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "tilewise/base/page.hpp"
#include "tilewise/device/facts.hpp"

namespace tilewise::device {
namespace {

constexpr unsigned threads_of_block = 256;
constexpr std::int64_t most_blocks = 4096;
constexpr unsigned attach_global = 1;  // managed memory that every stream may touch

}  // namespace

Context::Context(int number, const std::string& for_what) : calls_(driver(for_what)), number_(number) {
    check(calls_.get(&device_, number), "cuDeviceGet", number);
    check(calls_.retain_context(&context_, device_), "cuDevicePrimaryCtxRetain", number);
}

Context::~Context() { calls_.release_context(device_); }

void Context::use() const { check(enter(), "cuCtxSetCurrent", number_); }

Result Context::enter() const noexcept { return calls_.use_context(context_); }

void Context::wait(const std::string& what) const { check(calls_.synchronize(), what, number_); }

std::string Context::name() const { return name_of(calls_, device_, number_); }

std::int64_t Context::free_bytes() const {
    std::size_t free = 0, total = 0;
    use();
    check(calls_.memory_info(&free, &total), "cuMemGetInfo", number_);
    return static_cast<std::int64_t>(free);
}

Allocation::Allocation(const Context& context, MemoryKind kind, std::int64_t bytes) : context_(&context), kind_(kind) {
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

Allocation::~Allocation() {
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

Allocation::Allocation(Allocation&& other) noexcept
    : context_(other.context_),
      kind_(other.kind_),
      given_(std::exchange(other.given_, 0)),
      address_(std::exchange(other.address_, 0)) {}

Allocation& Allocation::operator=(Allocation&& other) noexcept {
    std::swap(context_, other.context_);
    std::swap(kind_, other.kind_);
    std::swap(given_, other.given_);
    std::swap(address_, other.address_);
    return *this;
}

PatternKernels::PatternKernels(const Context& context) : context_(context) {
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

PatternKernels::~PatternKernels() {
    context_.enter();
    context_.calls().unload_module(module_);
}

void PatternKernels::launch(Handle kernel, std::int64_t bytes, void** parameters, const std::string& what) const {
    const std::int64_t wanted = (bytes + threads_of_block - 1) / threads_of_block;
    const auto blocks = static_cast<unsigned>(std::clamp<std::int64_t>(wanted, 1, most_blocks));
    check(context_.calls().launch(kernel, blocks, 1, 1, threads_of_block, 1, 1, 0, nullptr, parameters, nullptr), what,
          context_.number());
    context_.wait(what);  // until then the host must not touch managed pages
}

void PatternKernels::fill(Address data, std::int64_t bytes, Pattern pattern) const {
    std::array<void*, 3> parameters{&data, &bytes, &pattern.seed};
    context_.use();
    launch(fill_, bytes, parameters.data(), "filling a block");
}

std::int64_t PatternKernels::compare(Address data, std::int64_t bytes, Pattern pattern) const {
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

}  // namespace tilewise::device
