// A graphics processor in use: its context, memory on it or for it, and the two kernels that make and check content.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "tilewise/base/memory_pattern.hpp"
#include "tilewise/device/driver.hpp"

namespace tilewise::device {

/// The context that all of this process share on a device, held while this lives. Whatever uses it must go first.
/// Errors of all calls: UsageError without a device, MemoryError, IoError.
class Context {
public:
    /// `for_what` is for the text of an error.
    Context(int number, const std::string& for_what);
    ~Context();
    Context(const Context&) = delete;
    Context& operator=(const Context&) = delete;

    int number() const { return number_; }
    const Driver& calls() const { return calls_; }
    /// Makes it the calling thread's, as every call expects.
    void use() const;
    /// The same for whoever frees: a device that is lost has nothing to free, so what is returned is not looked at.
    Result enter() const noexcept;
    /// Waits until the device has done everything; what it could not do fails here.
    void wait(const std::string& what) const;
    std::int64_t free_bytes() const;
    /// "NAME (number, GPU-UUID)"
    std::string name() const;

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
    Allocation(const Context& context, MemoryKind kind, std::int64_t bytes);
    ~Allocation();
    Allocation(Allocation&& other) noexcept;
    Allocation& operator=(Allocation&& other) noexcept;

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
    explicit PatternKernels(const Context& context);
    ~PatternKernels();
    PatternKernels(const PatternKernels&) = delete;
    PatternKernels& operator=(const PatternKernels&) = delete;

    void fill(Address data, std::int64_t bytes, Pattern pattern) const;
    /// The first wrong byte, or −1.
    std::int64_t compare(Address data, std::int64_t bytes, Pattern pattern) const;

private:
    void launch(Handle kernel, std::int64_t bytes, void** parameters, const std::string& what) const;

    const Context& context_;
    Allocation first_wrong_;
    Handle module_ = nullptr, fill_ = nullptr, compare_ = nullptr;
};

/// The text of pattern.ptx.
const char* pattern_text();

}  // namespace tilewise::device
