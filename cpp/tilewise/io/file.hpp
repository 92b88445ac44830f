// A file descriptor that is closed with its owner, and positioned reads and writes that do all or throw.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace tilewise::io {

class PosixFile {
public:
    enum class Mode { read, write };
    enum class Cache { used, bypassed };  ///< bypassed: O_DIRECT, whole pages only

    /// Throws IoError naming the file. `name` is what messages call it.
    PosixFile(const std::string& path, std::string name, Mode mode, Cache cache = Cache::used);
    PosixFile(const PosixFile&) = delete;
    PosixFile& operator=(const PosixFile&) = delete;
    ~PosixFile();

    /// Reads exactly `bytes` at `offset`; returns the number of system calls. A file that ends early is an IoError.
    std::int64_t read(std::byte* data, std::int64_t bytes, std::int64_t offset) const;
    std::int64_t write(const std::byte* data, std::int64_t bytes, std::int64_t offset) const;
    /// Size in bytes; throws IoError for anything but a regular file.
    std::int64_t size() const;
    /// Gets the disk space now, where the file system can: a full disk is then found before anybody writes.
    void reserve(std::int64_t bytes) const;
    void flush() const;
    /// Keeps other processes that lock too from these bytes; waits for its turn.
    void lock(std::int64_t offset, std::int64_t bytes) const;
    void unlock(std::int64_t offset, std::int64_t bytes) const;
    /// Makes the file exactly so long.
    void resize(std::int64_t bytes) const;

private:
    void set_lock(short kind, std::int64_t offset, std::int64_t bytes) const;
    [[noreturn]] void fail(const std::string& what, std::int64_t offset, int error_number) const;

    std::string name_;
    int descriptor_;
};

}  // namespace tilewise::io
