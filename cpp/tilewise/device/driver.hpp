// The calls of the graphics processors' driver that are in use, found by name when somebody first asks for them.
//
// Nothing of CUDA is needed to build, to link or to install: the types below are what the driver's binary interface
// passes, which NVIDIA keeps as it is. `libcuda.so.1` comes with the driver, and stays open once it is.
// And what it and its devices are: for whoever looks at an installation.
// Design: docs/design/measuring.md
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace tilewise::device {

using Result = int;                  ///< 0: done
using Address = unsigned long long;  ///< of memory, as the device counts it
using Handle = void*;                ///< of a context, a module, a kernel or a stream

struct Uuid {
    unsigned char bytes[16];
};

/// What is asked of a device, by the driver's numbers.
enum class Attribute : int {
    unified_addressing = 41,
    compute_major = 75,
    compute_minor = 76,
    managed_memory = 83,
    concurrent_managed_access = 89,  ///< pages of managed memory migrate when somebody touches them
};

struct Driver {
    Result (*init)(unsigned flags);
    Result (*version)(int* thousands);
    Result (*error_name)(Result code, const char** text);
    Result (*error_text)(Result code, const char** text);
    Result (*count)(int* devices);
    Result (*get)(int* device, int number);
    Result (*name)(char* text, int size, int device);
    Result (*uuid)(Uuid* uuid, int device);
    Result (*memory)(std::size_t* bytes, int device);
    Result (*attribute)(int* value, Attribute which, int device);
    Result (*can_access_peer)(int* can, int device, int peer);
    Result (*retain_context)(Handle* context, int device);
    Result (*release_context)(int device);
    Result (*use_context)(Handle context);
    Result (*synchronize)();
    Result (*memory_info)(std::size_t* free, std::size_t* total);
    Result (*allocate)(Address* data, std::size_t bytes);
    Result (*allocate_managed)(Address* data, std::size_t bytes, unsigned flags);
    Result (*release)(Address data);
    Result (*allocate_pinned)(void** data, std::size_t bytes);
    Result (*release_pinned)(void* data);
    Result (*to_device)(Address to, const void* from, std::size_t bytes);
    Result (*to_host)(void* to, Address from, std::size_t bytes);
    Result (*load_module)(Handle* module, const void* text);
    Result (*unload_module)(Handle module);
    Result (*kernel)(Handle* kernel, Handle module, const char* name);
    Result (*launch)(Handle kernel, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
                     unsigned block_y, unsigned block_z, unsigned shared_bytes, Handle stream, void** parameters,
                     void** extra);
};

/// What this process found: `trouble` says in a few words why there is no device, and is empty where there is one.
struct Presence {
    int devices = 0;
    std::string trouble;
    bool simulated = false;  ///< the driver is that of the tests: see tests/cuda/
};

/// Opens the driver, which takes some 0.1 s where there is one, and counts its devices. The same for the life of the
/// process. Never throws.
const Presence& presence();

/// Throws UsageError where there is no device; `for_what` then begins the text.
const Driver& driver(const std::string& for_what);

/// Throws for a `code` that is not 0: MemoryError where memory is lacking, else IoError. The text has `call`, the
/// device and the driver's own words.
void check(Result code, const std::string& call, int device);

struct DeviceFacts {
    std::string name;     ///< "NAME (number, GPU-UUID)"
    std::string compute;  ///< its generation, as in "9.0"
    std::int64_t memory = 0;
    bool unified_addressing = false;  ///< an address says by itself on which device or host it is
    bool managed = false;             ///< it can have managed memory
    bool migrates = false;            ///< and pages of that move when somebody touches them
    std::vector<int> peers;           ///< devices of this host whose memory it reaches
};

struct Facts {
    Presence found;
    std::string driver;  ///< the CUDA that it offers, as in "12.4"; empty without a driver
    std::vector<DeviceFacts> devices;
};

/// Asks for everything; no context is made. Never throws: what a device does not say stays empty.
Facts facts();

/// Whether the device `number` can reach memory of `other`, both of this host. False where the driver does not say.
bool reaches(int number, int other);

/// "NAME (number, GPU-UUID)" of the driver's handle `device`. Throws IoError.
std::string name_of(const Driver& calls, int device, int number);

}  // namespace tilewise::device
