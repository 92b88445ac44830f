// Opens the driver once, and fills the table; makes errors of what its calls return.
#include "tilewise/device/driver.hpp"

#include <dlfcn.h>

#include "tilewise/base/error.hpp"

namespace tilewise::device {
namespace {

constexpr const char* library_name = "libcuda.so.1";
constexpr const char* mark_of_tests = "tilewise_simulated_device";  // exported by tests/cuda/
constexpr Result out_of_memory = 2;

struct Opened {
    Driver calls{};
    Presence found;
};

/// "CUDA_ERROR_NO_DEVICE: no CUDA-capable device is detected"
std::string words_of(const Driver& calls, Result code) {
    const char *name = nullptr, *text = nullptr;
    if (calls.error_name == nullptr || calls.error_name(code, &name) != 0 || name == nullptr) {
        return "error " + std::to_string(code);
    }
    return calls.error_text(code, &text) != 0 || text == nullptr ? name : std::string(name) + ": " + text;
}

/// Fills the table, by the names that the driver exports. Returns those that it lacks.
std::string fill(Driver& calls, void* library) {
    std::string lacking;
    const auto find = [&](auto& call, const char* name) {
        void* found = dlsym(library, name);
        call = reinterpret_cast<std::remove_reference_t<decltype(call)>>(found);
        if (found == nullptr) {
            lacking += (lacking.empty() ? "" : ", ") + std::string(name);
        }
    };
    find(calls.init, "cuInit");
    find(calls.version, "cuDriverGetVersion");
    find(calls.error_name, "cuGetErrorName");
    find(calls.error_text, "cuGetErrorString");
    find(calls.count, "cuDeviceGetCount");
    find(calls.get, "cuDeviceGet");
    find(calls.name, "cuDeviceGetName");
    find(calls.uuid, "cuDeviceGetUuid");
    find(calls.memory, "cuDeviceTotalMem_v2");
    find(calls.attribute, "cuDeviceGetAttribute");
    find(calls.can_access_peer, "cuDeviceCanAccessPeer");
    find(calls.retain_context, "cuDevicePrimaryCtxRetain");
    find(calls.release_context, "cuDevicePrimaryCtxRelease_v2");
    find(calls.use_context, "cuCtxSetCurrent");
    find(calls.synchronize, "cuCtxSynchronize");
    find(calls.memory_info, "cuMemGetInfo_v2");
    find(calls.allocate, "cuMemAlloc_v2");
    find(calls.allocate_managed, "cuMemAllocManaged");
    find(calls.release, "cuMemFree_v2");
    find(calls.allocate_pinned, "cuMemAllocHost_v2");
    find(calls.release_pinned, "cuMemFreeHost");
    find(calls.to_device, "cuMemcpyHtoD_v2");
    find(calls.to_host, "cuMemcpyDtoH_v2");
    find(calls.load_module, "cuModuleLoadData");
    find(calls.unload_module, "cuModuleUnload");
    find(calls.kernel, "cuModuleGetFunction");
    find(calls.launch, "cuLaunchKernel");
    return lacking;
}

Opened open() {
    Opened opened;
    Presence& found = opened.found;
    void* library = dlopen(library_name, RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) {
        const char* why = dlerror();
        found.trouble = std::string("no driver: ") + (why != nullptr ? why : library_name);
        return opened;
    }
    found.simulated = dlsym(library, mark_of_tests) != nullptr;
    if (const std::string lacking = fill(opened.calls, library); !lacking.empty()) {
        found.trouble = std::string("the driver is too old: ") + library_name + " lacks " + lacking;
        return opened;
    }
    Result code = opened.calls.init(0);
    if (code == 0) {
        code = opened.calls.count(&found.devices);
    }
    if (code != 0) {
        found.devices = 0;
        found.trouble = "the driver says " + words_of(opened.calls, code);
    } else if (found.devices == 0) {
        found.trouble = "the driver sees none";
    }
    return opened;
}

const Opened& opened() {
    static const Opened once = open();
    return once;
}

}  // namespace

const Presence& presence() { return opened().found; }

const Driver& driver(const std::string& for_what) {
    if (const Presence& found = presence(); found.devices == 0) {
        throw UsageError(
            for_what + " needs a graphics processor, and this machine has none to offer (" + found.trouble + ")", -1, 0,
            "--buffer malloc needs none; tilewise doctor shows what there is");
    }
    return opened().calls;
}

void check(Result code, const std::string& call, int device) {
    if (code == 0) {
        return;
    }
    const std::string text =
        call + " failed on graphics processor " + std::to_string(device) + ": " + words_of(opened().calls, code);
    if (code == out_of_memory) {
        throw MemoryError(text, -1, 0, "smaller blocks, fewer of them, or fewer ranks to a graphics processor");
    }
    throw IoError(text, -1, 0, "look at the device (nvidia-smi, dmesg) and run again; --buffer malloc needs none");
}

}  // namespace tilewise::device
