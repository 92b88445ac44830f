// Opens the driver once, and fills the table; makes errors of what its calls return.
// Questions to the driver that need no context.
#include "tilewise/device/driver.hpp"

#include <array>
#include <cstdio>
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

int asked(const Driver& calls, Attribute which, int device) {
    int value = 0;
    return calls.attribute(&value, which, device) == 0 ? value : 0;
}

DeviceFacts facts_of(const Driver& calls, int number, int devices) {
    DeviceFacts facts;
    int device = 0;
    check(calls.get(&device, number), "cuDeviceGet", number);
    facts.name = name_of(calls, device, number);
    std::size_t memory = 0;
    check(calls.memory(&memory, device), "cuDeviceTotalMem", number);
    facts.memory = static_cast<std::int64_t>(memory);
    facts.compute = std::to_string(asked(calls, Attribute::compute_major, device)) + "." +
                    std::to_string(asked(calls, Attribute::compute_minor, device));
    facts.unified_addressing = asked(calls, Attribute::unified_addressing, device) != 0;
    facts.managed = asked(calls, Attribute::managed_memory, device) != 0;
    facts.migrates = asked(calls, Attribute::concurrent_managed_access, device) != 0;
    for (int other = 0; other < devices; ++other) {
        if (other != number && reaches(number, other)) {
            facts.peers.push_back(other);
        }
    }
    return facts;
}

}  // namespace

const Presence& presence() { return opened().found; }

const Driver& driver(const std::string& for_what) {
    if (const Presence& found = presence(); found.devices == 0) {
        throw UsageError(
            for_what + " needs a graphics processor, and this machine has none to offer (" + found.trouble + ")", -1, 0,
            "--buffer malloc needs none; tilewise doctor lists the devices");
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

bool reaches(int number, int other) {
    const Driver& calls = driver("looking");
    int device = 0, peer = 0, can = 0;
    return calls.get(&device, number) == 0 && calls.get(&peer, other) == 0 &&
           calls.can_access_peer(&can, device, peer) == 0 && can != 0;
}

std::string name_of(const Driver& calls, int device, int number) {
    std::array<char, 256> name{};
    Uuid uuid{};
    check(calls.name(name.data(), static_cast<int>(name.size()) - 1, device), "cuDeviceGetName", number);
    check(calls.uuid(&uuid, device), "cuDeviceGetUuid", number);
    std::string text = "GPU";
    for (int i = 0; i < 16; ++i) {
        std::array<char, 4> digits{};
        std::snprintf(digits.data(), digits.size(), "%02x", static_cast<unsigned>(uuid.bytes[i]));
        text += (i == 0 || i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "") + std::string(digits.data());
    }
    return std::string(name.data()) + " (" + std::to_string(number) + ", " + text + ")";
}

Facts facts() {
    Facts facts;
    facts.found = presence();
    if (facts.found.devices == 0) {
        return facts;
    }
    try {
        const Driver& calls = driver("looking");
        int thousands = 0;
        check(calls.version(&thousands), "cuDriverGetVersion", 0);
        facts.driver = std::to_string(thousands / 1000) + "." + std::to_string(thousands % 1000 / 10);
        for (int number = 0; number < facts.found.devices; ++number) {
            facts.devices.push_back(facts_of(calls, number, facts.found.devices));
        }
    } catch (const Error& error) {
        facts.found.trouble = error.what();
    }
    return facts;
}

}  // namespace tilewise::device
