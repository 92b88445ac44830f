// Holds the calls that tilewise declares for itself against the headers of CUDA and cuFile, where these are: as many
// arguments, each as wide. It is only compiled: see tests/python/unit/test_ptx.py.
#include <cstddef>
#include <cuda.h>
#include <tuple>
#include <type_traits>
#include <utility>

#include "tilewise/device/driver.hpp"
#include "tilewise/device/storage.hpp"

#if __has_include(<cufile.h>)
#include <cufile.h>
#endif

namespace {

template <class T> constexpr std::size_t width = sizeof(T);
template <> constexpr std::size_t width<void> = 0;

template <class F> struct Call;
template <class Returned, class... Arguments> struct Call<Returned (*)(Arguments...)> {
    using Types = std::tuple<Arguments...>;
    static constexpr std::size_t returned = width<Returned>, count = sizeof...(Arguments);
};

template <class A, class B, std::size_t... i> constexpr bool alike(std::index_sequence<i...>) {
    return ((sizeof(std::tuple_element_t<i, A>) == sizeof(std::tuple_element_t<i, B>) &&
             std::is_pointer_v<std::tuple_element_t<i, A>> == std::is_pointer_v<std::tuple_element_t<i, B>>) &&
            ...);
}

template <class Ours, class Theirs> constexpr bool same() {
    if constexpr (Call<Ours>::count != Call<Theirs>::count || Call<Ours>::returned != Call<Theirs>::returned) {
        return false;
    } else {
        return alike<typename Call<Ours>::Types, typename Call<Theirs>::Types>(
            std::make_index_sequence<Call<Ours>::count>{});
    }
}

using tilewise::device::Driver;

#define SAME(ours, theirs) static_assert(same<decltype(Driver::ours), decltype(&theirs)>(), #theirs)
SAME(init, cuInit);
SAME(version, cuDriverGetVersion);
SAME(error_name, cuGetErrorName);
SAME(error_text, cuGetErrorString);
SAME(count, cuDeviceGetCount);
SAME(get, cuDeviceGet);
SAME(name, cuDeviceGetName);
SAME(uuid, cuDeviceGetUuid);
SAME(memory, cuDeviceTotalMem);
SAME(attribute, cuDeviceGetAttribute);
SAME(can_access_peer, cuDeviceCanAccessPeer);
SAME(retain_context, cuDevicePrimaryCtxRetain);
SAME(release_context, cuDevicePrimaryCtxRelease);
SAME(use_context, cuCtxSetCurrent);
SAME(synchronize, cuCtxSynchronize);
SAME(memory_info, cuMemGetInfo);
SAME(allocate, cuMemAlloc);
SAME(allocate_managed, cuMemAllocManaged);
SAME(release, cuMemFree);
SAME(allocate_pinned, cuMemAllocHost);
SAME(release_pinned, cuMemFreeHost);
SAME(to_device, cuMemcpyHtoD);
SAME(to_host, cuMemcpyDtoH);
SAME(load_module, cuModuleLoadData);
SAME(unload_module, cuModuleUnload);
SAME(kernel, cuModuleGetFunction);
SAME(launch, cuLaunchKernel);
static_assert(sizeof(tilewise::device::Uuid) == sizeof(CUuuid));
static_assert(static_cast<int>(tilewise::device::Attribute::unified_addressing) ==
              CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING);
static_assert(static_cast<int>(tilewise::device::Attribute::compute_major) ==
              CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
static_assert(static_cast<int>(tilewise::device::Attribute::compute_minor) ==
              CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
static_assert(static_cast<int>(tilewise::device::Attribute::managed_memory) == CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY);
static_assert(static_cast<int>(tilewise::device::Attribute::concurrent_managed_access) ==
              CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS);
static_assert(CUDA_ERROR_OUT_OF_MEMORY == 2 && CU_MEM_ATTACH_GLOBAL == 1);

#if __has_include(<cufile.h>)
using tilewise::device::StorageCalls;

#define SAME_STORAGE(ours, theirs) static_assert(same<decltype(StorageCalls::ours), decltype(&theirs)>(), #theirs)
SAME_STORAGE(open, cuFileDriverOpen);
SAME_STORAGE(close, cuFileDriverClose);
SAME_STORAGE(add_file, cuFileHandleRegister);
SAME_STORAGE(remove_file, cuFileHandleDeregister);
SAME_STORAGE(add_memory, cuFileBufRegister);
SAME_STORAGE(remove_memory, cuFileBufDeregister);
SAME_STORAGE(read, cuFileRead);
SAME_STORAGE(write, cuFileWrite);
static_assert(sizeof(tilewise::device::StorageDescription) == sizeof(CUfileDescr_t));
static_assert(offsetof(tilewise::device::StorageDescription, file) == offsetof(CUfileDescr_t, handle));
static_assert(offsetof(tilewise::device::StorageDescription, operations) == offsetof(CUfileDescr_t, fs_ops));
static_assert(CU_FILE_HANDLE_TYPE_OPAQUE_FD == 1);
#endif

}  // namespace
