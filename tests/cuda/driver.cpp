// A libcuda.so.1 of the tests: the calls of a graphics processors' driver that tilewise makes, done in host memory.
//
// Device memory is handed out by an address at which the host can neither read nor write: whoever touches it as if it
// were memory dies, as on a real device. The driver's own copies and kernels reach it by a second mapping. The kernels
// of pattern.ptx are run on the processor, by name: their text is only looked through for that name.
//
//      CUDA_TEST_DEVICES=N    so many devices, 2 if not said         CUDA_TEST_MEMORY=B   bytes of each, 256 MiB
//      CUDA_TEST_READABLE=1   the host can touch device memory       CUDA_TEST_REPORT=F   what is still held at the end
//      CUDA_TEST_FAULT=NAME   no_device, out_of_memory, lost, no_peer, launch_failed or wrong_bytes
//      CUDA_TEST_AFTER=N      so many calls that could fail pass     CUDA_TEST_RANK=R     faults on that rank only
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <sys/mman.h>
#include <unistd.h>

#include "tilewise/base/memory_pattern.hpp"
#include "told.hpp"

namespace {

using Address = unsigned long long;

enum Code {
    done = 0,
    invalid = 1,
    no_memory = 2,
    no_device = 100,
    no_context = 201,
    bad_text = 218,
    no_name = 500,
    bad_address = 700,
    launch_failed = 719,
    unknown = 999
};

struct Piece {
    int device;             // -1: pinned
    std::size_t bytes;      // as asked
    unsigned char* inside;  // by which the driver reaches it
    bool twice;             // mapped at two places
};
struct Kernel {
    bool compares;
};

constexpr std::size_t behind_page = 512;  // memory begins so far behind a page: more than that is not promised

std::mutex mutex;
std::map<Address, Piece> pieces;
std::map<int, int> contexts;  // of devices: how often retained
std::set<std::string*> modules;
std::map<int, std::size_t> used;
int current = -1;  // the device of the context in use; tests have one thread that calls
long faulty_calls = 0, misuses = 0;
int sticky = done;  // a device that failed once fails for good
Kernel fill_kernel{false}, compare_kernel{true};

long number(const char* name, long otherwise) { return said(name).empty() ? otherwise : std::atol(said(name).c_str()); }
int devices() { return static_cast<int>(number("CUDA_TEST_DEVICES", 2)); }
std::size_t memory() { return static_cast<std::size_t>(number("CUDA_TEST_MEMORY", 256L << 20)); }

bool on_this_rank() {
    const std::string wanted = said("CUDA_TEST_RANK");
    const std::string rank = !said("PMI_RANK").empty() ? said("PMI_RANK") : said("OMPI_COMM_WORLD_RANK");
    return wanted.empty() || wanted == rank;
}
/// Whether this call, one of those that `fault` makes fail, is to fail.
bool fails(const char* fault) {
    return said("CUDA_TEST_FAULT") == fault && on_this_rank() && ++faulty_calls > number("CUDA_TEST_AFTER", 0);
}
int misused(int code) {
    ++misuses;
    return code;
}
/// What every call begins with that a lost device cannot do.
int alive() {
    if (fails("lost")) {
        sticky = unknown;
    }
    return sticky != done ? sticky : current < 0 ? misused(no_context) : done;
}

/// Where the driver reaches `bytes` from `address` on; null where they are not all in one piece.
unsigned char* reach(Address address, std::size_t bytes) {
    auto after = pieces.upper_bound(address);
    if (after == pieces.begin()) {
        return nullptr;
    }
    const auto& [begin, piece] = *--after;
    return address + bytes <= begin + piece.bytes ? piece.inside + (address - begin) : nullptr;
}

int take(Address* address, std::size_t bytes, int device, bool hidden) {
    if (const int code = alive(); code != done) {
        return code;
    }
    if (bytes == 0) {
        return misused(invalid);
    }
    bytes += behind_page;
    if (fails("out_of_memory") || (device >= 0 && used[device] + bytes > memory())) {
        return no_memory;
    }
    const int file = memfd_create("device", MFD_CLOEXEC);
    if (file < 0 || ftruncate(file, static_cast<off_t>(bytes)) != 0) {
        return no_memory;
    }
    void* inside = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    void* outside = hidden ? mmap(nullptr, bytes, PROT_NONE, MAP_SHARED, file, 0) : inside;
    close(file);
    if (inside == MAP_FAILED || outside == MAP_FAILED) {
        return no_memory;
    }
    std::memset(inside, 0xcd, bytes);  // nobody may count on zeros
    *address = reinterpret_cast<Address>(outside) + behind_page;
    pieces[*address] = {device, bytes - behind_page, static_cast<unsigned char*>(inside) + behind_page, hidden};
    used[device] += bytes;
    return done;
}

int give_back(Address address, bool pinned) {
    const auto found = pieces.find(address);
    if (found == pieces.end() || (found->second.device < 0) != pinned) {
        return misused(invalid);
    }
    const Piece piece = found->second;
    if (piece.twice) {
        munmap(reinterpret_cast<void*>(address - behind_page), piece.bytes + behind_page);
    }
    munmap(piece.inside - behind_page, piece.bytes + behind_page);
    used[piece.device] -= piece.bytes + behind_page;
    pieces.erase(found);
    return sticky;
}

/// What a thread of the kernels does, for all threads of the launch.
int run(const Kernel& kernel, unsigned blocks, unsigned threads, void** parameters) {
    const Address data = *static_cast<Address*>(parameters[0]);
    const auto bytes = *static_cast<std::int64_t*>(parameters[1]);
    const tilewise::Pattern pattern{*static_cast<std::uint64_t*>(parameters[2])};
    unsigned char* inside = reach(data, static_cast<std::size_t>(bytes));
    unsigned char* first = kernel.compares ? reach(*static_cast<Address*>(parameters[3]), 8) : nullptr;
    if (inside == nullptr || (kernel.compares && first == nullptr)) {
        return misused(bad_address);
    }
    const std::int64_t step = std::int64_t{blocks} * threads;
    std::uint64_t wrong = ~std::uint64_t{0};
    for (std::int64_t start = 0; start < step; ++start) {
        for (std::int64_t at = start; at < bytes; at += step) {
            if (!kernel.compares) {
                inside[at] = pattern.byte(at);
            } else if (inside[at] != pattern.byte(at)) {
                wrong = std::min(wrong, static_cast<std::uint64_t>(at));
                break;
            }
        }
    }
    if (first != nullptr) {
        std::uint64_t before = 0;
        std::memcpy(&before, first, sizeof before);
        wrong = std::min(wrong, before);
        std::memcpy(first, &wrong, sizeof wrong);
    }
    return done;
}

long held() {
    long all = static_cast<long>(pieces.size() + modules.size());
    for (const auto& [device, times] : contexts) {
        all += times;
    }
    return all;
}

/// At the end of the process: what nobody gave back.
struct AtEnd {
    ~AtEnd() { report(static_cast<std::size_t>(held()), static_cast<std::size_t>(misuses)); }
} at_end;

}  // namespace

extern "C" {

extern const int tilewise_simulated_device;
const int tilewise_simulated_device = 1;

/// For tests in the same process: a device that failed is as new.
void cuda_test_renew() {
    sticky = done;
    faulty_calls = 0;
}
/// Allocations, contexts and modules that nobody gave back, and calls that made no sense.
long cuda_test_held() { return held() + misuses; }

int cuInit(unsigned) { return fails("no_device") || devices() == 0 ? no_device : done; }
int cuDriverGetVersion(int* thousands) {
    *thousands = 12040;
    return done;
}
int cuGetErrorName(int code, const char** text) {
    static const std::map<int, const char*> names{{invalid, "CUDA_ERROR_INVALID_VALUE"},
                                                  {no_memory, "CUDA_ERROR_OUT_OF_MEMORY"},
                                                  {no_device, "CUDA_ERROR_NO_DEVICE"},
                                                  {no_context, "CUDA_ERROR_INVALID_CONTEXT"},
                                                  {bad_text, "CUDA_ERROR_INVALID_PTX"},
                                                  {no_name, "CUDA_ERROR_NOT_FOUND"},
                                                  {bad_address, "CUDA_ERROR_ILLEGAL_ADDRESS"},
                                                  {launch_failed, "CUDA_ERROR_LAUNCH_FAILED"},
                                                  {unknown, "CUDA_ERROR_UNKNOWN"}};
    const auto found = names.find(code);
    *text = found != names.end() ? found->second : nullptr;
    return found != names.end() ? done : invalid;
}
int cuGetErrorString(int code, const char** text) {
    *text = code == no_memory ? "out of memory" : code == no_device ? "no device is detected" : "simulated failure";
    return done;
}
int cuDeviceGetCount(int* count) {
    *count = devices();
    return done;
}
int cuDeviceGet(int* device, int which) {
    *device = which + 100;  // a handle is no number
    return which >= 0 && which < devices() ? done : misused(101);
}
int cuDeviceGetName(char* text, int size, int) {
    std::snprintf(text, static_cast<std::size_t>(size), "simulated device");
    return done;
}
int cuDeviceGetUuid(unsigned char* uuid, int device) {
    std::memset(uuid, 0, 16);
    uuid[15] = static_cast<unsigned char>(device - 100);
    return done;
}
int cuDeviceTotalMem_v2(std::size_t* bytes, int) {
    *bytes = memory();
    return done;
}
int cuDeviceGetAttribute(int* value, int which, int) {
    *value = which == 75 ? 9 : which == 76 ? 0 : which == 41 || which == 83 || which == 89 ? 1 : -1;
    return *value >= 0 ? done : misused(invalid);
}
int cuDeviceCanAccessPeer(int* can, int, int) {
    *can = fails("no_peer") ? 0 : 1;
    return done;
}
int cuDevicePrimaryCtxRetain(void** context, int device) {
    const std::lock_guard lock(mutex);
    if (sticky != done) {
        return sticky;
    }
    ++contexts[device - 100];
    *context = reinterpret_cast<void*>(static_cast<std::uintptr_t>(device));
    return done;
}
int cuDevicePrimaryCtxRelease_v2(int device) {
    const std::lock_guard lock(mutex);
    const int left = --contexts[device - 100];
    for (const auto& [address, piece] : pieces) {
        if (left == 0 && piece.device == device - 100) {
            ++misuses;  // it outlives its context
        }
    }
    current = left <= 0 && current == device - 100 ? -1 : current;
    return left < 0 ? misused(no_context) : done;
}
int cuCtxSetCurrent(void* context) {
    const auto device = static_cast<int>(reinterpret_cast<std::uintptr_t>(context)) - 100;
    if (context == nullptr || contexts[device] <= 0) {
        return misused(no_context);
    }
    current = device;
    return done;
}
int cuCtxSynchronize() { return alive(); }
int cuMemGetInfo_v2(std::size_t* free, std::size_t* total) {
    const std::lock_guard lock(mutex);
    const int code = alive();
    *total = memory();
    *free = *total - used[current];
    return code;
}
int cuMemAlloc_v2(Address* data, std::size_t bytes) {
    const std::lock_guard lock(mutex);
    return take(data, bytes, current, said("CUDA_TEST_READABLE").empty());
}
int cuMemAllocManaged(Address* data, std::size_t bytes, unsigned flags) {
    const std::lock_guard lock(mutex);
    return flags == 1 || flags == 2 ? take(data, bytes, current, false) : misused(invalid);
}
int cuMemFree_v2(Address data) {
    const std::lock_guard lock(mutex);
    return give_back(data, false);
}
int cuMemAllocHost_v2(void** data, std::size_t bytes) {
    const std::lock_guard lock(mutex);
    Address address = 0;
    const int code = take(&address, bytes, -1, false);
    *data = reinterpret_cast<void*>(address);
    return code;
}
int cuMemFreeHost(void* data) {
    const std::lock_guard lock(mutex);
    return give_back(reinterpret_cast<Address>(data), true);
}
int cuMemcpyHtoD_v2(Address to, const void* from, std::size_t bytes) {
    const std::lock_guard lock(mutex);
    if (const int code = alive(); code != done) {
        return code;
    }
    unsigned char* inside = reach(to, bytes);
    if (inside == nullptr) {
        return misused(invalid);
    }
    std::memcpy(inside, from, bytes);
    return done;
}
int cuMemcpyDtoH_v2(void* to, Address from, std::size_t bytes) {
    const std::lock_guard lock(mutex);
    if (const int code = alive(); code != done) {
        return code;
    }
    const unsigned char* inside = reach(from, bytes);
    if (inside == nullptr) {
        return misused(invalid);
    }
    std::memcpy(to, inside, bytes);
    if (bytes > 8 && fails("wrong_bytes")) {
        static_cast<unsigned char*>(to)[bytes / 2] ^= 0x10;
    }
    return done;
}
int cuModuleLoadData(void** module, const void* text) {
    const std::lock_guard lock(mutex);
    if (const int code = alive(); code != done) {
        return code;
    }
    if (std::strstr(static_cast<const char*>(text), ".version ") == nullptr) {
        return misused(bad_text);
    }
    auto* loaded = new std::string(static_cast<const char*>(text));
    modules.insert(loaded);
    *module = loaded;
    return done;
}
int cuModuleUnload(void* module) {
    const std::lock_guard lock(mutex);
    auto* loaded = static_cast<std::string*>(module);
    if (modules.erase(loaded) == 0) {
        return misused(invalid);
    }
    delete loaded;
    return sticky;
}
int cuModuleGetFunction(void** kernel, void* module, const char* name) {
    const bool there =
        static_cast<std::string*>(module)->find(".entry " + std::string(name) + "(") != std::string::npos;
    *kernel = std::string(name) == "tilewise_fill" ? &fill_kernel : &compare_kernel;
    return there ? done : misused(no_name);
}
int cuLaunchKernel(void* kernel, unsigned blocks, unsigned y, unsigned z, unsigned threads, unsigned threads_y,
                   unsigned threads_z, unsigned, void*, void** parameters, void**) {
    const std::lock_guard lock(mutex);
    if (const int code = alive(); code != done) {
        return code;
    }
    if (blocks == 0 || threads == 0 || threads > 1024 || y * z * threads_y * threads_z != 1) {
        return misused(invalid);
    }
    if (fails("launch_failed")) {
        sticky = launch_failed;  // told by whoever waits for the kernel
        return done;
    }
    return run(*static_cast<const Kernel*>(kernel), blocks, threads, parameters);
}

}  // extern "C"
