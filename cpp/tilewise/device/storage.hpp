// GPUDirect Storage: blocks go between a file and memory of a device, with no memory of the host in between, where
// kernel, file system and device take part. Its library, `libcufile.so.0`, is opened when it is asked for.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <sys/types.h>

namespace tilewise::device {

/// What calls return by value: the library's own code, and the driver's.
struct StorageResult {
    int code;
    int driver;
};

/// A file as it is registered: by its descriptor.
struct StorageDescription {
    int kind;
    union {
        int descriptor;
        void* handle;
    } file;
    const void* operations;
};

struct StorageCalls {
    StorageResult (*open)();
    StorageResult (*close)();
    StorageResult (*add_file)(void** handle, StorageDescription* description);
    void (*remove_file)(void* handle);
    StorageResult (*add_memory)(const void* base, std::size_t bytes, int flags);
    StorageResult (*remove_memory)(const void* base);
    ssize_t (*read)(void* handle, void* base, std::size_t bytes, off_t offset, off_t slot);
    ssize_t (*write)(void* handle, const void* base, std::size_t bytes, off_t offset, off_t slot);
};

/// Why this machine has none, in a few words; empty where it has. Opens the library. Never throws.
std::string lacks_storage();

/// The library in use, with `bytes` of a device from `base` on. Errors of all calls: UsageError without the library,
/// IoError.
class Storage {
public:
    Storage(void* base, std::int64_t bytes);
    ~Storage();
    Storage(const Storage&) = delete;
    Storage& operator=(const Storage&) = delete;

    const StorageCalls& calls() const { return calls_; }
    void* base() const { return base_; }
    /// What a reader must know: where the host's memory is in between all the same. Empty: nothing is known of it.
    std::string note() const;

private:
    const StorageCalls& calls_;
    void* base_;
    bool registered_ = false;
};

/// One file, opened past the page cache.
class StorageFile {
public:
    /// `storage` must live longer.
    StorageFile(const Storage& storage, const std::string& path, bool writing);
    ~StorageFile();
    StorageFile(const StorageFile&) = delete;
    StorageFile& operator=(const StorageFile&) = delete;

    /// All `bytes` at `offset` of the file, from or to the place `slot` of the memory.
    void write(std::int64_t slot, std::int64_t bytes, std::int64_t offset);
    void read(std::int64_t slot, std::int64_t bytes, std::int64_t offset);
    void flush();

private:
    /// Calls part(bytes that are left, offset, slot) until nothing is left.
    template <class Part> void all(std::int64_t slot, std::int64_t bytes, std::int64_t offset, const Part& part);

    const Storage& storage_;
    std::string path_;
    int file_ = -1;
    void* handle_ = nullptr;
};

}  // namespace tilewise::device
