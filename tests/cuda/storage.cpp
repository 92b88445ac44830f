// A libcufile.so.0 of the tests: GPUDirect Storage between files and the memory that driver.cpp plays.
//
// It moves part of what is asked for, as the real one may, and refuses memory and files that were not registered.
//
//      CUDA_TEST_FAULT=NAME   storage_lacks (it cannot be opened), storage_failed or storage_ended (reading)
//      CUDA_TEST_REPORT=F     what is still held at the end
#include <algorithm>
#include <cstring>
#include <dlfcn.h>
#include <fcntl.h>
#include <map>
#include <string>
#include <unistd.h>
#include <vector>

#include "told.hpp"

namespace {

struct Result {
    int code;
    int driver;
};
struct Description {
    int kind;
    union {
        int descriptor;
        void* handle;
    } file;
    const void* operations;
};

constexpr std::size_t part = 40'000;  // bytes of a call, at most

int opened = 0, misuses = 0;
std::map<void*, int> files;  // and a descriptor of their own, which may be used at any byte
std::map<const void*, std::size_t> memories;

template <class F> F driver(const char* name) {
    static void* library = dlopen("libcuda.so.1", RTLD_NOW);
    return reinterpret_cast<F>(dlsym(library, name));
}

bool makes_sense(void* handle, const void* base, std::size_t bytes, off_t slot) {
    const auto memory = memories.find(base);
    const bool inside = memory != memories.end() && static_cast<std::size_t>(slot) + bytes <= memory->second;
    misuses += opened < 1 || files.count(handle) == 0 || !inside ? 1 : 0;
    return opened > 0 && files.count(handle) != 0 && inside;
}

struct AtEnd {
    ~AtEnd() {
        report(files.size() + memories.size() + static_cast<std::size_t>(opened), static_cast<std::size_t>(misuses));
    }
} at_end;

}  // namespace

extern "C" {

Result cuFileDriverOpen() {
    if (said("CUDA_TEST_FAULT") == "storage_lacks") {
        return {5001, 0};
    }
    ++opened;
    return {0, 0};
}
Result cuFileDriverClose() {
    --opened;
    return {0, 0};
}
Result cuFileHandleRegister(void** handle, Description* description) {
    const int given = description->file.descriptor;
    if (description->kind != 1 || (fcntl(given, F_GETFL) & O_DIRECT) == 0) {
        ++misuses;
        return {5020, 0};
    }
    const bool writes = (fcntl(given, F_GETFL) & O_ACCMODE) != O_RDONLY;
    const std::string path = "/proc/self/fd/" + std::to_string(given);
    *handle = new char;
    files[*handle] = open(path.c_str(), (writes ? O_RDWR : O_RDONLY) | O_CLOEXEC);
    return {0, 0};
}
void cuFileHandleDeregister(void* handle) {
    const auto found = files.find(handle);
    if (found == files.end()) {
        ++misuses;
        return;
    }
    close(found->second);
    files.erase(found);
    delete static_cast<char*>(handle);
}
Result cuFileBufRegister(const void* base, std::size_t bytes, int) {
    memories[base] = bytes;
    return {0, 0};
}
Result cuFileBufDeregister(const void* base) {
    misuses += memories.erase(base) == 1 ? 0 : 1;
    return {0, 0};
}
ssize_t cuFileRead(void* handle, void* base, std::size_t bytes, off_t offset, off_t slot) {
    if (!makes_sense(handle, base, bytes, slot)) {
        return -5022;
    }
    if (said("CUDA_TEST_FAULT") == "storage_failed") {
        return -5008;
    }
    std::vector<unsigned char> copy(std::min(bytes, part));
    const ssize_t got =
        said("CUDA_TEST_FAULT") == "storage_ended" ? 0 : pread(files[handle], copy.data(), copy.size(), offset);
    if (got <= 0) {
        return got;
    }
    using ToDevice = int (*)(unsigned long long, const void*, std::size_t);
    const auto to = reinterpret_cast<unsigned long long>(base) + static_cast<unsigned long long>(slot);
    const int code = driver<ToDevice>("cuMemcpyHtoD_v2")(to, copy.data(), static_cast<std::size_t>(got));
    return code == 0 ? got : -5011;
}
ssize_t cuFileWrite(void* handle, const void* base, std::size_t bytes, off_t offset, off_t slot) {
    if (!makes_sense(handle, base, bytes, slot)) {
        return -5022;
    }
    std::vector<unsigned char> copy(std::min(bytes, part));
    using ToHost = int (*)(void*, unsigned long long, std::size_t);
    const auto from = reinterpret_cast<unsigned long long>(base) + static_cast<unsigned long long>(slot);
    const int code = driver<ToHost>("cuMemcpyDtoH_v2")(copy.data(), from, copy.size());
    return code == 0 ? pwrite(files[handle], copy.data(), copy.size(), offset) : -5011;
}

}  // extern "C"
