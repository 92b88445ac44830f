// Filters one after the other, between two memories.
#include "tilewise/kernel/codec/unpack.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

#include "tilewise/base/error.hpp"
#include "tilewise/kernel/file_type.hpp"
#include "tilewise/kernel/isa/versions.hpp"

namespace tilewise::kernel {
namespace {

using Vector = std::uint8_t __attribute__((vector_size(16)));

/// Numbers of `item` bytes, whose first bytes come first, then all second ones, … 16 numbers at a time: pairs of bytes,
/// then pairs of these, until they are whole.
///
///     planes  a0 a1 … | b0 b1 … | c0 c1 … | d0 d1 …    zip a with c, b with d; then those with each other
template <std::int64_t item>
std::int64_t unshuffle_16([[maybe_unused]] const std::byte* from, [[maybe_unused]] std::int64_t count,
                          [[maybe_unused]] std::byte* to) {
    std::int64_t i = 0;
#if defined(__has_builtin)
#if __has_builtin(__builtin_shufflevector)
    constexpr auto planes = static_cast<std::size_t>(item);
    for (; i + 16 <= count; i += 16) {
        std::array<Vector, planes> v, zipped;
        for (std::size_t plane = 0; plane < planes; ++plane) {
            std::memcpy(&v[plane], from + static_cast<std::int64_t>(plane) * count + i, 16);
        }
        for (std::size_t round = 1; round < planes; round *= 2) {
            for (std::size_t k = 0; k < planes / 2; ++k) {
                const Vector a = v[k], b = v[k + planes / 2];
                zipped[2 * k] = __builtin_shufflevector(a, b, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
                zipped[2 * k + 1] =
                    __builtin_shufflevector(a, b, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31);
            }
            v = zipped;
        }
        std::memcpy(to + i * item, v.data(), 16 * planes);
    }
#endif
#endif
    return i;
}

void unshuffle(const std::byte* from, std::int64_t bytes, std::int64_t item, std::byte* to) {
    const std::int64_t count = bytes / item;
    std::int64_t done = 0;
    switch (item) {
        case 2:
            done = unshuffle_16<2>(from, count, to);
            break;
        case 4:
            done = unshuffle_16<4>(from, count, to);
            break;
        case 8:
            done = unshuffle_16<8>(from, count, to);
            break;
        case 16:
            done = unshuffle_16<16>(from, count, to);
            break;
        default:
            break;
    }
    for (std::int64_t plane = 0; plane < item; ++plane) {
        for (std::int64_t i = done; i < count; ++i) {
            to[i * item + plane] = from[plane * count + i];
        }
    }
    std::memcpy(to + count * item, from + count * item, static_cast<std::size_t>(bytes - count * item));
}

template <class T> T turned(T value, bool turn) {
    if constexpr (sizeof(T) == 2) {
        return turn ? __builtin_bswap16(value) : value;
    } else if constexpr (sizeof(T) == 4) {
        return turn ? __builtin_bswap32(value) : value;
    } else if constexpr (sizeof(T) == 8) {
        return turn ? __builtin_bswap64(value) : value;
    }
    return value;
}

template <class T> void add_up(std::byte* row, std::int64_t count, std::int64_t samples, bool turn) {
    if (samples == 1) {
        T sum = 0;
        for (std::int64_t i = 0; i < count; ++i) {
            sum = static_cast<T>(sum + turned(load<T>(row, i), turn));
            store(row, i, turned(sum, turn));
        }
        return;
    }
    for (std::int64_t i = samples; i < count; ++i) {
        const T sum = static_cast<T>(turned(load<T>(row, i - samples), turn) + turned(load<T>(row, i), turn));
        store(row, i, turned(sum, turn));
    }
}

template <class F> void for_rows(std::int64_t bytes, std::int64_t row_bytes, F f) {
    for (std::int64_t begin = 0; begin < bytes; begin += row_bytes) {
        f(begin, std::min(row_bytes, bytes - begin));
    }
}

void undo_horizontal(std::byte* data, std::int64_t bytes, const Packing& packing, const Filter& filter) {
    const bool turn = filter.big_endian != (std::endian::native == std::endian::big);
    for_rows(bytes, packing.row_bytes, [&](std::int64_t begin, std::int64_t row) {
        const std::int64_t count = row / filter.item, samples = packing.samples;
        switch (filter.item) {
            case 1:
                return add_up<std::uint8_t>(data + begin, count, samples, turn);
            case 2:
                return add_up<std::uint16_t>(data + begin, count, samples, turn);
            case 4:
                return add_up<std::uint32_t>(data + begin, count, samples, turn);
            default:
                return add_up<std::uint64_t>(data + begin, count, samples, turn);
        }
    });
}

/// To numbers with their lowest byte first.
void undo_floating(std::byte* data, std::int64_t bytes, const Packing& packing, std::int64_t item, std::byte* to) {
    for_rows(bytes, packing.row_bytes, [&](std::int64_t begin, std::int64_t row) {
        add_up<std::uint8_t>(data + begin, row, packing.samples, false);
        const std::int64_t count = row / item;
        for (std::int64_t plane = 0; plane < item; ++plane) {
            const std::byte* from = data + begin + plane * count;
            for (std::int64_t i = 0; i < count; ++i) {
                to[begin + i * item + item - 1 - plane] = from[i];
            }
        }
    });
}

std::int64_t without_checksum(const std::byte* data, std::int64_t bytes) {
    constexpr std::int64_t sum_bytes = 4;
    if (bytes < sum_bytes) {
        throw UsageError("ends early");
    }
    std::uint32_t stored = 0;
    for (std::int64_t i = sum_bytes; i > 0; --i) {
        stored = stored << 8 | std::to_integer<std::uint32_t>(data[bytes - sum_bytes + i - 1]);
    }
    const std::uint32_t sum = fletcher32(data, bytes - sum_bytes);
    // Libraries before 1.6.3 have turned the bytes of both halves on some machines, and all later ones take that.
    const std::uint32_t old = (sum & 0x00FF00FF) << 8 | (sum >> 8 & 0x00FF00FF);
    if (stored != sum && stored != old) {
        throw UsageError("fails its checksum");
    }
    return bytes - sum_bytes;
}

}  // namespace

Unpacked unpack(const Packing& packing, std::uint32_t skipped, std::byte* from, std::int64_t packed, std::byte* first,
                std::byte* second) {
    std::byte *data = from, *to = first, *after = second;
    std::int64_t bytes = packed;
    const auto next = [&](std::int64_t written) {
        bytes = written;
        data = to;
        std::swap(to, after);
    };
    for (std::size_t i = 0; i < packing.filters.size(); ++i) {
        if ((skipped >> i & 1) != 0) {
            continue;
        }
        const Filter& filter = packing.filters[i];
        // What is still packed may be larger than what it unpacks to; its checksum is looked at where it lies.
        const bool moves = filter.kind > FilterKind::packbits && filter.kind != FilterKind::fletcher32;
        if (moves && bytes > packing.room()) {
            throw UsageError("unpacks to more than it should");
        }
        switch (filter.kind) {
            case FilterKind::inflate:
                next(inflate(data, bytes, to, packing.room()));
                break;
            case FilterKind::lzw:
                next(unpack_lzw(data, bytes, to, packing.bytes));
                break;
            case FilterKind::packbits:
                next(unpack_packbits(data, bytes, to, packing.bytes));
                break;
            case FilterKind::shuffle:
                unshuffle(data, bytes, filter.item, to);
                next(bytes);
                break;
            case FilterKind::fletcher32:
                bytes = without_checksum(data, bytes);
                break;
            case FilterKind::horizontal:
                undo_horizontal(data, bytes, packing, filter);
                break;
            case FilterKind::floating:
                undo_floating(data, bytes, packing, filter.item, to);
                next(bytes);
                break;
        }
    }
    if (bytes > packing.bytes) {
        throw UsageError("unpacks to more than it should");
    }
    return {data, bytes};
}

std::int64_t unpack_lzw(const std::byte* from, std::int64_t packed, std::byte* to, std::int64_t room) {
    constexpr std::uint32_t clear = 256, end = 257, first = 258, most = 4096;
    // What a code stands for was written before: there it begins, so long it is. A new one is the last string and the
    // byte that came next, which follows it in what was written.
    std::array<std::int64_t, most> begin;
    std::array<std::int32_t, most> length;
    std::uint32_t next = first;
    int width = 9, count = 0;
    std::uint64_t held = 0;
    std::int64_t at = 0, written = 0, last = -1, last_length = 0;
    while (written < room) {
        if (count < width && packed - at >= 4) {
            for (int i = 0; i < 4; ++i) {
                held = held << 8 | std::to_integer<std::uint64_t>(from[at++]);
            }
            count += 32;
        }
        while (count < width && at < packed) {
            held = held << 8 | std::to_integer<std::uint64_t>(from[at++]);
            count += 8;
        }
        if (count < width) {
            break;  // files without an end code are common
        }
        count -= width;
        const auto code = static_cast<std::uint32_t>(held >> count & ((1U << width) - 1));
        if (code == end) {
            break;
        }
        if (code == clear) {
            next = first;
            width = 9;
            last = -1;
            continue;
        }
        const std::int64_t here = written;
        if (last >= 0 && next < most) {
            begin[next] = last;
            length[next] = static_cast<std::int32_t>(last_length + 1);
            ++next;
        }
        if (code < clear) {
            to[written++] = static_cast<std::byte>(code);
        } else {
            if (code >= next) {
                throw UsageError("has an unknown code");
            }
            const std::int64_t its = std::min<std::int64_t>(length[code], room - written);
            const std::byte* source = to + begin[code];
            std::byte* const place = to + written;
            if (place - source >= 8 && room - written >= its + 8) {
                for (std::int64_t i = 0; i < its; i += 8) {
                    std::memcpy(place + i, source + i, 8);
                }
            } else {  // may reach what it writes
                for (std::int64_t i = 0; i < its; ++i) {
                    place[i] = source[i];
                }
            }
            written += its;
        }
        last = here;
        last_length = written - here;
        if (next + 1 >= 1U << width && width < 12) {
            ++width;
        }
    }
    return written;
}

std::int64_t unpack_packbits(const std::byte* from, std::int64_t packed, std::byte* to, std::int64_t room) {
    std::int64_t at = 0, written = 0;
    while (at < packed && written < room) {
        const auto head = static_cast<std::int8_t>(from[at++]);
        if (head == -128) {
            continue;
        }
        if (head >= 0) {
            const std::int64_t count = std::min<std::int64_t>(head + 1, room - written);
            if (packed - at < count) {
                throw UsageError("ends early");
            }
            std::memcpy(to + written, from + at, static_cast<std::size_t>(count));
            at += head + 1;
            written += count;
        } else {
            if (at >= packed) {
                throw UsageError("ends early");
            }
            const std::int64_t count = std::min<std::int64_t>(1 - head, room - written);
            std::memset(to + written, std::to_integer<int>(from[at++]), static_cast<std::size_t>(count));
            written += count;
        }
    }
    return written;
}

namespace {

constexpr std::int64_t part_words = 360;  // of which the sums fit 32 bits

/// `low` and `high` after the words at `data`, at most a part of them; both are folded to 16 bits and a carry.
///
/// high + low₁ + low₂ + … = high + count·low + Σ (count − i)·wordᵢ: sums that do not wait for each other.
TILEWISE_INLINE void add_part(const std::byte* data, std::int64_t count, std::uint32_t& low, std::uint32_t& high) {
    std::uint32_t sum = 0, weighted = 0;
    for (std::int32_t i = 0; i < static_cast<std::int32_t>(count); ++i) {
        std::uint16_t word;
        std::memcpy(&word, data + 2 * i, sizeof word);
        const std::uint32_t value = std::endian::native == std::endian::little ? __builtin_bswap16(word) : word;
        sum += value;
        weighted += (static_cast<std::uint32_t>(count) - static_cast<std::uint32_t>(i)) * value;
    }
    high += static_cast<std::uint32_t>(count) * low + weighted;
    low += sum;
    low = (low & 0xFFFF) + (low >> 16);
    high = (high & 0xFFFF) + (high >> 16);
}

TILEWISE_INLINE std::uint64_t add_words(const std::byte* data, std::int64_t words) {
    std::uint32_t low = 0, high = 0;
    std::int64_t begin = 0;
    for (; begin + part_words <= words; begin += part_words) {
        add_part(data + 2 * begin, part_words, low, high);
    }
    if (begin < words) {
        add_part(data + 2 * begin, words - begin, low, high);
    }
    return std::uint64_t{high} << 32 | low;
}

}  // namespace

std::uint32_t fletcher32(const std::byte* data, std::int64_t bytes) {
    const std::uint64_t sums = in_versions<add_words>(data, bytes / 2);
    auto low = static_cast<std::uint32_t>(sums), high = static_cast<std::uint32_t>(sums >> 32);
    if (bytes % 2 != 0) {  // filled up with zeros
        const std::byte last[2] = {data[bytes - 1], std::byte{0}};
        add_part(last, 1, low, high);
    }
    low = (low & 0xFFFF) + (low >> 16);
    high = (high & 0xFFFF) + (high >> 16);
    return high << 16 | low;
}

}  // namespace tilewise::kernel
