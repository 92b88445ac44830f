// Positions, checksums and lines of pieces.
#include "tilewise/io/pieces.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <fcntl.h>
#include <unistd.h>

#include "tilewise/io/file.hpp"
#include "tilewise/kernel/codec/checksum.hpp"
#include "tilewise/mpi/together.hpp"

namespace tilewise::io {
namespace {

constexpr std::int64_t piece_bytes = std::int64_t{8} << 20;  ///< of what one line names

std::int64_t item_of(const Region& region) { return static_cast<std::int64_t>(size_of(region.dtype)); }

std::uint64_t sum_of(const Region& region, const grid::Block& block, const std::byte* data) {
    const std::int64_t place = block.rows.begin * region.stored_columns() + block.columns.begin;
    return kernel::checksum(data, static_cast<std::size_t>(block.size() * item_of(region)),
                            static_cast<std::uint64_t>(place));
}

int open_or_throw(const std::string& path, int flags) {
    const int descriptor = open_made(path, flags | O_NONBLOCK);
    if (descriptor < 0) {
        throw system_error(path + ": could not be opened", errno);
    }
    return descriptor;
}

void flush_or_throw(int descriptor, const std::string& name) {
    if (uninterrupted([&] { return fdatasync(descriptor); }) != 0) {
        throw system_error(name + ": could not be flushed", errno);
    }
}

}  // namespace

Log::Log(const std::string& folder, const std::string& name)
    : folder_(folder),
      descriptor_(open_or_throw(folder + '/' + name, O_WRONLY | O_CREAT | O_APPEND)) {}

Log::~Log() { close(descriptor_); }

void Log::add(const std::string& words) const {
    std::string line = words + ' ';
    std::uint64_t check = 0xcbf29ce484222325;  // FNV-1a, as the front computes it
    for (const char letter : line) {
        check = (check ^ static_cast<unsigned char>(letter)) * 0x100000001b3;
    }
    char digits[18];
    line.append(digits, static_cast<std::size_t>(
                            std::snprintf(digits, sizeof digits, "%016llx\n", static_cast<unsigned long long>(check))));
    const ssize_t written = uninterrupted([&] { return write(descriptor_, line.data(), line.size()); });
    if (written != static_cast<ssize_t>(line.size())) {
        throw system_error(folder_ + ": could not be written to", written < 0 ? errno : ENOSPC);
    }
}

void Log::flush() const { flush_or_throw(descriptor_, folder_); }

PieceFile::PieceFile(const Region& region) : region_(region), descriptor_(open_or_throw(region.path, O_RDWR)) {}

PieceFile::~PieceFile() { close(descriptor_); }

void PieceFile::flush() const { flush_or_throw(descriptor_, region_.name); }

std::vector<bool> PieceFile::right(Context& context, const std::vector<Standing>& pieces) const {
    const auto rank = static_cast<std::size_t>(context.comm.rank()),
               ranks = static_cast<std::size_t>(context.comm.size());
    std::vector<unsigned char> right(pieces.size());
    mpi::together(context.comm, [&] {
        std::vector<std::byte> buffer;
        for (std::size_t index = rank; index < right.size(); index += ranks) {
            right[index] = is_right(pieces[index], context.ledger.count(), buffer) ? 1 : 0;
        }
    });
    if (!right.empty()) {
        mpi::check(MPI_Allreduce(MPI_IN_PLACE, right.data(), static_cast<int>(right.size()), MPI_UNSIGNED_CHAR, MPI_MAX,
                                 context.comm.get()),
                   "MPI_Allreduce");
    }
    return {right.begin(), right.end()};
}

bool PieceFile::is_right(const Standing& piece, Counters& count, std::vector<std::byte>& buffer) const {
    const auto within = [](const grid::Range& range, std::int64_t end) {
        return range.begin >= 0 && range.begin < range.end && range.end <= end;
    };
    if (!within(piece.block.rows, region_.stored_rows()) || !within(piece.block.columns, region_.stored_columns())) {
        return false;
    }
    const std::int64_t item = item_of(region_), width = piece.block.columns.size() * item;
    const bool whole_rows = piece.block.columns.size() == region_.stored_columns();
    const std::int64_t rows = whole_rows ? 1 : piece.block.rows.size(), bytes = piece.block.size() * item / rows;
    buffer.resize(static_cast<std::size_t>(piece.block.size() * item));
    for (std::int64_t row = 0; row < rows; ++row) {
        const std::int64_t number =
            (piece.block.rows.begin + row) * region_.stored_columns() + piece.block.columns.begin;
        for (std::int64_t done = 0; done < bytes;) {
            const ssize_t got = uninterrupted([&] {
                return pread(descriptor_, buffer.data() + row * width + done, static_cast<std::size_t>(bytes - done),
                             region_.offset + number * item + done);
            });
            if (got <= 0) {
                return false;  // it cannot be read, so that it is written again
            }
            done += got;
            count.io_calls += 1;
            count.read += got;
        }
    }
    return sum_of(region_, piece.block, buffer.data()) == piece.sum;
}

void PieceFile::write_down(const Log& log, const std::string& prefix, const grid::Block& stored,
                           const std::byte* data) const {
    if (stored.size() == 0) {
        return;
    }
    const std::int64_t row_bytes = stored.columns.size() * item_of(region_),
                       height = std::max<std::int64_t>(1, piece_bytes / row_bytes);
    for (std::int64_t row = stored.rows.begin; row < stored.rows.end; row += height) {
        const grid::Block piece{{row, std::min(row + height, stored.rows.end)}, stored.columns};
        const std::uint64_t sum = sum_of(region_, piece, data + (row - stored.rows.begin) * row_bytes);
        char words[120];
        std::snprintf(words, sizeof words, "%lld %lld %lld %lld %016llx", static_cast<long long>(piece.rows.begin),
                      static_cast<long long>(piece.rows.end), static_cast<long long>(piece.columns.begin),
                      static_cast<long long>(piece.columns.end), static_cast<unsigned long long>(sum));
        log.add(prefix + words);
    }
}

}  // namespace tilewise::io
