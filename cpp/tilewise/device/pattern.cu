// Makes and checks a block's content on a graphics processor: fill_plainly and compare_plainly of block_memory.hpp say
// what is meant.
//
// tools/ptx.py makes pattern.ptx of it, which is what the build takes. One thread a byte, so that a block may begin
// anywhere. `seed` is Pattern's.

static __device__ unsigned char pattern_byte(unsigned long long seed, long long at) {
    unsigned long long word = seed + static_cast<unsigned long long>(at / 8) * 0x9e3779b97f4a7c15ULL;
    word += 0x9e3779b97f4a7c15ULL;
    word = (word ^ (word >> 30)) * 0xbf58476d1ce4e5b9ULL;
    word = (word ^ (word >> 27)) * 0x94d049bb133111ebULL;
    word ^= word >> 31;
    return static_cast<unsigned char>(word >> (8 * (at % 8)));
}

extern "C" __global__ void tilewise_fill(unsigned char* data, long long bytes, unsigned long long seed) {
    const long long step = static_cast<long long>(gridDim.x) * blockDim.x;
#pragma unroll 1
    for (long long at = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x; at < bytes; at += step) {
        data[at] = pattern_byte(seed, at);
    }
}

// `first_wrong` holds the greatest number before, and afterwards the first byte that is wrong, if there is one.
extern "C" __global__ void tilewise_compare(const unsigned char* data, long long bytes, unsigned long long seed,
                                            unsigned long long* first_wrong) {
    const long long step = static_cast<long long>(gridDim.x) * blockDim.x;
#pragma unroll 1
    for (long long at = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x; at < bytes; at += step) {
        if (data[at] != pattern_byte(seed, at)) {
            atomicMin(first_wrong, static_cast<unsigned long long>(at));
            return;  // this thread's later ones are no earlier
        }
    }
}
