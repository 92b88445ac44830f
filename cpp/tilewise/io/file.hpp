// A file descriptor, and calls that do all or throw: also when it is closed, where some file systems first say that a
// write has failed.
#pragma once

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

namespace tilewise::io {

/// A descriptor that is closed with its owner, without a look at what the system says.
class Descriptor {
public:
    /// Below zero: there is none.
    explicit Descriptor(int number) : number_(number) {}
    Descriptor(Descriptor&& other) noexcept : number_(other.release()) {}
    Descriptor& operator=(Descriptor&& other) noexcept {
        std::swap(number_, other.number_);
        return *this;
    }
    ~Descriptor();

    int number() const { return number_; }
    explicit operator bool() const { return number_ >= 0; }
    /// Hands it over to whoever closes it with a look.
    int release() { return std::exchange(number_, -1); }

private:
    int number_;
};

class PosixFile {
public:
    /// scratch: a new file without a name, in the folder `path`, for reading and writing; it is gone with this object,
    /// however the process ends.
    enum class Mode { read, write, scratch };
    enum class Cache { used, bypassed };  ///< bypassed: O_DIRECT, whole pages only

    /// Throws IoError naming the file. `name` is what messages call it.
    PosixFile(const std::string& path, std::string name, Mode mode, Cache cache = Cache::used);

    /// Reads exactly `bytes` at `offset`; returns the number of system calls. A file that ends early is an IoError.
    std::int64_t read(std::byte* data, std::int64_t bytes, std::int64_t offset) const;
    std::int64_t write(const std::byte* data, std::int64_t bytes, std::int64_t offset) const;
    /// Asks the system to bring these bytes to the page cache. Nothing depends on whether it does.
    void will_need(std::int64_t offset, std::int64_t bytes) const;
    /// For calls that are made elsewhere; it stays this object's.
    int descriptor() const { return descriptor_.number(); }
    /// Size in bytes; throws IoError for anything but a regular file.
    std::int64_t size() const;
    /// Gets the disk space for `bytes` at `offset` now, where the file system can: a full disk is then found before
    /// anybody writes.
    void reserve(std::int64_t offset, std::int64_t bytes) const;
    void flush() const;
    /// Makes the file exactly so long.
    void resize(std::int64_t bytes) const;
    /// Throws IoError when the system says that what was written is not there (NFS and quotas say it only now): comes
    /// before what was written goes. Nothing can be done with the file after it.
    void close();

private:
    friend class RangeLock;

    bool set_lock(short kind, std::int64_t offset, std::int64_t bytes) const;
    [[noreturn]] void fail(const std::string& what, std::int64_t offset, int error_number) const;

    std::string name_;
    bool writes_;
    Descriptor descriptor_;
};

/// Keeps other processes that lock too from these bytes while it lives; waits for its turn. What throws meanwhile lets
/// go of them, or others would wait for ever.
class RangeLock {
public:
    RangeLock(const PosixFile& file, std::int64_t offset, std::int64_t bytes);
    RangeLock(const RangeLock&) = delete;
    RangeLock& operator=(const RangeLock&) = delete;
    ~RangeLock();

private:
    const PosixFile& file_;
    std::int64_t offset_, bytes_;
};

/// Opens what the front made, for what `flags` say, and follows no link: neither in its place nor, where the front made
/// its folder too, in that of the folder. Below zero where it cannot; errno says why.
int open_made(const std::string& path, int flags);

/// Calls f() again as long as a signal interrupts it; returns what it returned at last.
template <class F> auto uninterrupted(const F& f) {
    auto result = f();
    while (result < 0 && errno == EINTR) {
        result = f();
    }
    return result;
}

}  // namespace tilewise::io
