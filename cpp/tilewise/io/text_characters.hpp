// A text as it is mapped, and its pieces: what counting, parsing and counting losses walk through.
#pragma once

#include <algorithm>
#include <cstring>

#include "tilewise/io/mapped.hpp"
#include "tilewise/io/text.hpp"

namespace tilewise::io {

/// The characters of a text and the places where its pieces begin.
class Characters {
public:
    explicit Characters(const Region& region)
        : mapping_(region, Mapping::Access::read),
          file_(reinterpret_cast<const char*>(mapping_.data())),
          begin_(file_ + region.offset),
          end_(file_ + text_end(region)) {}

    const char* file() const { return file_; }
    std::int64_t bytes() const { return end_ - begin_; }
    /// At least one, which may be empty.
    std::int64_t pieces() const {
        return std::max<std::int64_t>(1, (bytes() + TextIndex::piece_bytes - 1) / TextIndex::piece_bytes);
    }

    /// The first line that begins in a piece, or at its border; the end of the file for the piece after the last.
    const char* piece(std::int64_t index) const {
        if (index == 0) {
            return begin_;
        }
        if (index * TextIndex::piece_bytes >= bytes()) {
            return end_;
        }
        return after_newline(begin_ + index * TextIndex::piece_bytes - 1);
    }

    /// Gives the pages back from a piece's border to `end`, so that a long text does not fill the resident set;
    /// touching them again brings them back.
    void release(std::int64_t piece, const char* end) const {
        const char* border = begin_ + piece * TextIndex::piece_bytes;
        mapping_.release(piece == 0 ? border : border - 1, end);  // the byte before was looked at too
    }

    /// The line that follows `lines` lines of numbers from `at` on, which begins a line.
    const char* skip(const char* at, std::int64_t lines, const kernel::TextStyle& style) const {
        while (lines > 0 && at < end_) {
            const char* next = after_newline(at);
            lines -= kernel::count_lines(at, next, style);
            at = next;
        }
        return at;
    }

private:
    const char* after_newline(const char* at) const {
        const void* found = std::memchr(at, '\n', static_cast<std::size_t>(end_ - at));
        return found == nullptr ? end_ : static_cast<const char*>(found) + 1;
    }

    Mapping mapping_;
    const char *file_, *begin_, *end_;
};

}  // namespace tilewise::io
