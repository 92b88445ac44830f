// Quick reading with the instructions that every processor has: eight characters in a register of 64 bits.
#include "tilewise/kernel/text/text_quick_loop.hpp"

namespace tilewise::kernel {
namespace {

struct Eight {
    static constexpr std::ptrdiff_t room_before = 0;

    /// A bit for each of 64 characters that is a separator, another such character, a blank or a line end.
    static std::uint64_t gaps(const char* at, char separator, char other) {
        constexpr std::uint64_t each = 0x0101010101010101, low = 0x7F * each, high = 0x80 * each;
        const std::uint64_t separators = each * static_cast<unsigned char>(separator),
                            others = each * static_cast<unsigned char>(other);
        std::uint64_t bits = 0;
        for (int word = 0; word < 8; ++word) {
            const std::uint64_t characters = load_little(at + 8 * word), apart = characters ^ separators,
                                unlike = characters ^ others;
            const std::uint64_t after_blank = ((characters & low) + (0x7F - ' ') * each) | characters;
            const std::uint64_t neither = (((apart & low) + low) | apart) & (((unlike & low) + low) | unlike);
            bits |= ((~(after_blank & neither) & high) >> 7) * 0x0102040810204080 >> 56 << 8 * word;
        }
        return bits;
    }
    static bool find(const char* at, char mark, Decimal& decimal) { return find_decimal(at, mark, decimal); }
};

}  // namespace

QuickReader quick_reader(Dtype dtype, [[maybe_unused]] Instructions instructions) {
#if defined(__x86_64__)
    if (instructions != Instructions::baseline) {
        return quick_reader_32(dtype);
    }
#endif
    return reader_of<Eight>(dtype);
}

}  // namespace tilewise::kernel
