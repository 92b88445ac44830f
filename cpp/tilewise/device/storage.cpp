// Opens the library once, and moves what it moves in parts.
#include "tilewise/device/storage.hpp"

#include <cerrno>
#include <dlfcn.h>
#include <fcntl.h>
#include <unistd.h>

#include "tilewise/base/error.hpp"

namespace tilewise::device {

namespace {

constexpr const char* storage_name = "libcufile.so.0";
constexpr const char* module_of_the_kernel = "/proc/driver/nvidia-fs/version";
constexpr int by_descriptor = 1;

struct Library {
    StorageCalls calls{};
    std::string trouble;
};

Library open_library() {
    Library opened;
    void* library = dlopen(storage_name, RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) {
        const char* why = dlerror();
        opened.trouble = why != nullptr ? why : storage_name;
        return opened;
    }
    const auto find = [&](auto& call, const char* name) {
        void* found = dlsym(library, name);
        call = reinterpret_cast<std::remove_reference_t<decltype(call)>>(found);
        opened.trouble += found != nullptr ? "" : std::string(storage_name) + " lacks " + name + " ";
    };
    find(opened.calls.open, "cuFileDriverOpen");
    find(opened.calls.close, "cuFileDriverClose");
    find(opened.calls.add_file, "cuFileHandleRegister");
    find(opened.calls.remove_file, "cuFileHandleDeregister");
    find(opened.calls.add_memory, "cuFileBufRegister");
    find(opened.calls.remove_memory, "cuFileBufDeregister");
    find(opened.calls.read, "cuFileRead");
    find(opened.calls.write, "cuFileWrite");
    return opened;
}

const Library& storage_library() {
    static const Library once = open_library();
    return once;
}

void check(StorageResult result, const std::string& call) {
    if (result.code != 0) {
        throw IoError(call + " failed with " + std::to_string(result.code) +
                          (result.driver != 0 ? ", the driver with " + std::to_string(result.driver) : ""),
                      -1, 0, "gdscheck -p says what GPUDirect Storage lacks; --io positioned needs none");
    }
}

}  // namespace

std::string lacks_storage() { return storage_library().trouble; }

Storage::Storage(void* base, std::int64_t bytes) : calls_(storage_library().calls), base_(base) {
    if (const std::string why = lacks_storage(); !why.empty()) {
        throw UsageError("--io gpudirect needs GPUDirect Storage: " + why);
    }
    check(calls_.open(), "cuFileDriverOpen");
    // Memory that cannot be registered is copied through buffers of the library.
    registered_ = calls_.add_memory(base, static_cast<std::size_t>(bytes), 0).code == 0;
}

Storage::~Storage() {
    if (registered_) {
        calls_.remove_memory(base_);
    }
    calls_.close();
}

std::string Storage::note() const {
    if (access(module_of_the_kernel, F_OK) != 0) {
        return "the kernel lacks nvidia-fs: the library may copy through the host's memory";
    }
    return registered_ ? "" : "the memory could not be registered: the library copies through buffers of its own";
}

StorageFile::StorageFile(const Storage& storage, const std::string& path, bool writing)
    : storage_(storage),
      path_(path),
      file_(::open(path.c_str(), (writing ? O_RDWR : O_RDONLY) | O_DIRECT | O_CLOEXEC)) {
    if (file_ < 0) {
        throw system_error(path + ": could not be opened", errno);
    }
    StorageDescription description{by_descriptor, {file_}, nullptr};
    try {
        check(storage_.calls().add_file(&handle_, &description), path + ": cuFileHandleRegister");
    } catch (...) {
        close(file_);
        throw;
    }
}

StorageFile::~StorageFile() {
    storage_.calls().remove_file(handle_);
    close(file_);
}

template <class Part>
void StorageFile::all(std::int64_t slot, std::int64_t bytes, std::int64_t offset, const Part& part) {
    for (std::int64_t done = 0; done < bytes;) {
        const ssize_t moved = part(static_cast<std::size_t>(bytes - done), offset + done, slot + done);
        const std::string where = path_ + ": at byte " + std::to_string(offset + done);
        if (moved == -1) {
            throw system_error(where, errno);
        }
        if (moved <= 0) {
            throw IoError(where + (moved == 0 ? ": the file ends" : ": GPUDirect Storage failed with ") +
                          (moved == 0 ? "" : std::to_string(-moved)));
        }
        done += moved;
    }
}

void StorageFile::write(std::int64_t slot, std::int64_t bytes, std::int64_t offset) {
    all(slot, bytes, offset, [&](std::size_t left, off_t at, off_t place) {
        return storage_.calls().write(handle_, storage_.base(), left, at, place);
    });
}

void StorageFile::read(std::int64_t slot, std::int64_t bytes, std::int64_t offset) {
    all(slot, bytes, offset, [&](std::size_t left, off_t at, off_t place) {
        return storage_.calls().read(handle_, storage_.base(), left, at, place);
    });
}

void StorageFile::flush() {
    if (fsync(file_) != 0) {
        throw system_error(path_ + ": could not be flushed", errno);
    }
}

}  // namespace tilewise::device
