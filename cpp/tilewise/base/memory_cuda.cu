// Buffers that CUDA gives: pinned host memory, memory of a graphics processor, and managed memory that wanders between
// both.
#include <algorithm>
#include <cstdio>
#include <cuda_runtime.h>
#include <stdexcept>

#include "tilewise/base/memory.hpp"

namespace tilewise {
namespace {

constexpr int threads_of_block = 256;
constexpr std::int64_t most_blocks = 4096;

void check(cudaError_t code, const std::string& call) {
    if (code != cudaSuccess) {
        throw std::runtime_error(call + ": " + cudaGetErrorString(code));
    }
}

// One thread a byte, so that a block may begin anywhere; `fill_plainly` and `compare_plainly` say what is meant.
__global__ void fill_kernel(unsigned char* data, std::int64_t bytes, Pattern pattern) {
    const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
    for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < bytes; i += step) {
        data[i] = pattern.byte(i);
    }
}

__global__ void compare_kernel(const unsigned char* data, std::int64_t bytes, Pattern pattern,
                               unsigned long long* first_wrong) {
    const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
    for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < bytes; i += step) {
        if (data[i] != pattern.byte(i)) {
            atomicMin(first_wrong, static_cast<unsigned long long>(i));
            return;  // this thread's later ones are no earlier
        }
    }
}

int blocks_for(std::int64_t bytes) {
    const std::int64_t wanted = (bytes + threads_of_block - 1) / threads_of_block;
    return static_cast<int>(std::max<std::int64_t>(1, std::min(wanted, most_blocks)));
}

enum class Kind { pinned, device, managed };

class CudaMemory final : public BlockMemory {
public:
    CudaMemory(Kind kind, int device) : kind_(kind), device_(device) { check(cudaSetDevice(device), "cudaSetDevice"); }
    ~CudaMemory() override {
        kind_ == Kind::pinned ? cudaFreeHost(data_) : cudaFree(data_);
        cudaFreeHost(stage_);
        cudaFree(first_wrong_);
    }

    std::string name() const override {
        return kind_ == Kind::pinned ? "pinned" : kind_ == Kind::device ? "device" : "managed";
    }

    std::string device() const override {
        cudaDeviceProp facts{};
        check(cudaGetDeviceProperties(&facts, device_), "cudaGetDeviceProperties");
        std::string uuid = "GPU";
        for (int i = 0; i < 16; ++i) {
            char digits[4];
            std::snprintf(digits, sizeof digits, "%02x", static_cast<unsigned>(facts.uuid.bytes[i]) & 0xffU);
            uuid += (i == 0 || i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "") + std::string(digits);
        }
        return std::string(facts.name) + " (" + std::to_string(device_) + ", " + uuid + ")";
    }

    std::int64_t free_bytes() const override {
        if (kind_ == Kind::pinned) {
            return free_host_memory();
        }
        std::size_t free = 0, total = 0;
        check(cudaMemGetInfo(&free, &total), "cudaMemGetInfo");
        return static_cast<std::int64_t>(free);
    }

    void allocate(std::int64_t bytes) override {
        const auto size = static_cast<std::size_t>(bytes);
        void* data = nullptr;
        if (kind_ == Kind::pinned) {
            check(cudaMallocHost(&data, size), "cudaMallocHost of " + std::to_string(bytes) + " bytes");
        } else if (kind_ == Kind::device) {
            check(cudaMalloc(&data, size), "cudaMalloc of " + std::to_string(bytes) + " bytes");
        } else {
            check(cudaMallocManaged(&data, size), "cudaMallocManaged of " + std::to_string(bytes) + " bytes");
        }
        data_ = static_cast<unsigned char*>(data);
        void* found = nullptr;
        check(cudaMalloc(&found, sizeof(unsigned long long)), "cudaMalloc");
        first_wrong_ = static_cast<unsigned long long*>(found);
    }

    void fill(std::int64_t offset, std::int64_t bytes, Pattern pattern) override {
        if (kind_ == Kind::pinned) {
            fill_plainly(address() + offset, bytes, pattern);
            return;
        }
        fill_kernel<<<blocks_for(bytes), threads_of_block>>>(data_ + offset, bytes, pattern);
        check(cudaGetLastError(), "filling a block on the device");
        check(cudaDeviceSynchronize(), "filling a block on the device");  // the host may touch managed pages only now
    }

    std::int64_t compare(std::int64_t offset, std::int64_t bytes, Pattern pattern) const override {
        if (kind_ == Kind::pinned) {
            return compare_plainly(address() + offset, bytes, pattern);
        }
        check(cudaMemset(first_wrong_, 0xff, sizeof(unsigned long long)), "cudaMemset");
        compare_kernel<<<blocks_for(bytes), threads_of_block>>>(data_ + offset, bytes, pattern, first_wrong_);
        check(cudaGetLastError(), "checking a block on the device");
        unsigned long long wrong = 0;
        check(cudaMemcpy(&wrong, first_wrong_, sizeof wrong, cudaMemcpyDeviceToHost), "checking a block on the device");
        return wrong == ~0ULL ? -1 : static_cast<std::int64_t>(wrong);
    }

    std::byte* address() const override {
        return kind_ == Kind::device ? nullptr : reinterpret_cast<std::byte*>(data_);
    }
    std::byte* stage(std::int64_t bytes) override {
        void* data = nullptr;
        check(cudaFreeHost(stage_), "cudaFreeHost");
        stage_ = nullptr;
        check(cudaMallocHost(&data, static_cast<std::size_t>(bytes)), "cudaMallocHost");
        stage_ = static_cast<std::byte*>(data);
        return stage_;
    }
    void to_host(std::byte* to, std::int64_t offset, std::int64_t bytes) const override {
        check(cudaMemcpy(to, data_ + offset, static_cast<std::size_t>(bytes), cudaMemcpyDefault), "cudaMemcpy to host");
    }
    void from_host(std::int64_t offset, const std::byte* from, std::int64_t bytes) override {
        check(cudaMemcpy(data_ + offset, from, static_cast<std::size_t>(bytes), cudaMemcpyDefault),
              "cudaMemcpy to device");
        check(cudaDeviceSynchronize(), "cudaMemcpy to device");  // from a pinned stage it may still be under way
    }

private:
    Kind kind_;
    int device_;
    unsigned char* data_ = nullptr;
    std::byte* stage_ = nullptr;
    unsigned long long* first_wrong_ = nullptr;
};

}  // namespace

CudaFacts ask_cuda() {
    CudaFacts facts;
    facts.version = TILEWISE_CUDA_VERSION;
    int driver = 0;
    if (cudaDriverGetVersion(&driver) != cudaSuccess || driver == 0) {
        facts.trouble = "no CUDA driver";
        return facts;
    }
    if (const cudaError_t code = cudaGetDeviceCount(&facts.gpus); code != cudaSuccess) {
        facts.gpus = 0;
        facts.trouble = cudaGetErrorString(code);
    } else if (facts.gpus == 0) {
        facts.trouble = "the CUDA driver sees none";
    }
    return facts;
}

std::unique_ptr<BlockMemory> make_cuda_memory(const std::string& name, int device) {
    const Kind kind = name == "pinned" ? Kind::pinned : name == "device" ? Kind::device : Kind::managed;
    return std::make_unique<CudaMemory>(kind, device);
}

}  // namespace tilewise
