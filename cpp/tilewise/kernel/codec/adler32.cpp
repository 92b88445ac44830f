// Adler-32 in parts whose sums fit 32 bits, and in lanes that the compiler makes vectors of.
#include <algorithm>

#include "tilewise/kernel/codec/inflate.hpp"

namespace tilewise::kernel {

std::uint32_t adler32(const std::byte* data, std::int64_t bytes) {
    constexpr std::uint32_t modulus = 65521, lanes = 16;
    constexpr std::int64_t part = 4096;  // 255 · 4096 · 4097 / 2 fits, and so does 65520 · 4096
    const auto* at = reinterpret_cast<const std::uint8_t*>(data);
    std::uint32_t low = 1, high = 0;
    for (std::int64_t begin = 0; begin < bytes; begin += part, at += part) {
        // A byte counts once in the low sum; in the high one once for itself and for each byte behind it.
        const auto count = static_cast<std::uint32_t>(std::min(part, bytes - begin)), blocks = count / lanes;
        std::uint32_t sums[lanes] = {}, before[lanes] = {}, plain = 0, weighted = 0;
        for (std::uint32_t block = 0; block < blocks; ++block) {
            for (std::uint32_t lane = 0; lane < lanes; ++lane) {
                before[lane] += sums[lane];
                sums[lane] += at[block * lanes + lane];
            }
        }
        const std::uint32_t rest = count - blocks * lanes;
        for (std::uint32_t lane = 0; lane < lanes; ++lane) {
            plain += sums[lane];
            weighted += lanes * before[lane] + (lanes - lane + rest) * sums[lane];
        }
        for (std::uint32_t i = blocks * lanes; i < count; ++i) {
            plain += at[i];
            weighted += (count - i) * at[i];
        }
        high = (high + (low * count + weighted % modulus) % modulus) % modulus;
        low = (low + plain) % modulus;
    }
    return high << 16 | low;
}

}  // namespace tilewise::kernel
