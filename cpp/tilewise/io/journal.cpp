// Lines are appended whole, by one call each, so that a death leaves at most one that is torn.
#include "tilewise/io/journal.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <fcntl.h>
#include <memory>
#include <unistd.h>

#include "tilewise/io/file.hpp"
#include "tilewise/kernel/checksum.hpp"
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

grid::Block common(const grid::Block& a, const grid::Block& b) {
    return {grid::common(a.rows, b.rows), grid::common(a.columns, b.columns)};
}

int open_or_throw(const std::string& path, int flags) {
    const int descriptor = uninterrupted([&] { return open(path.c_str(), flags | O_CLOEXEC, 0666); });
    if (descriptor < 0) {
        throw system_error(path + ": could not be opened", errno);
    }
    return descriptor;
}

void append(int descriptor, const std::string& line, const std::string& folder) {
    const ssize_t written = uninterrupted([&] { return write(descriptor, line.data(), line.size()); });
    if (written != static_cast<ssize_t>(line.size())) {
        throw system_error(folder + ": could not be written to", written < 0 ? errno : ENOSPC);
    }
}

}  // namespace

Journal::Journal(Context& context, const Region& region, const JournalOptions& options)
    : region_(region),
      folder_(options.folder),
      flushed_(options.flushed) {
    const Timed timed(context.ledger, context.ledger.phase(), Step::file, "journal of " + region.name);
    const int rank = context.comm.rank(), ranks = context.comm.size();
    std::vector<unsigned char> right(options.standing.size());
    mpi::together(context.comm, [&] {
        const std::string log = folder_ + '/' + std::to_string(options.start) + '-' + std::to_string(rank) + ".log";
        log_ = open_or_throw(log, O_WRONLY | O_CREAT | O_APPEND);
        part_ = open_or_throw(region.path, O_RDWR);
        std::vector<std::byte> buffer;
        for (std::size_t index = static_cast<std::size_t>(rank); index < right.size();
             index += static_cast<std::size_t>(ranks)) {
            right[index] = is_right(options.standing[index], context.ledger.count(), buffer) ? 1 : 0;
        }
    });
    if (!right.empty()) {
        mpi::check(MPI_Allreduce(MPI_IN_PLACE, right.data(), static_cast<int>(right.size()), MPI_UNSIGNED_CHAR, MPI_MAX,
                                 context.comm.get()),
                   "MPI_Allreduce");
    }
    for (std::size_t index = 0; index < right.size(); ++index) {
        if (right[index] != 0) {
            standing_.push_back(options.standing[index]);
        }
    }
    resumed_.started = options.start;
    resumed_.kept = std::ssize(standing_);
    resumed_.spoilt = std::ssize(options.standing) - std::ssize(standing_);
}

Journal::~Journal() {
    for (const int descriptor : {log_, part_}) {
        if (descriptor >= 0) {
            close(descriptor);
        }
    }
}

bool Journal::is_right(const Standing& piece, Counters& count, std::vector<std::byte>& buffer) const {
    const grid::Block all{{0, region_.stored_rows()}, {0, region_.stored_columns()}};
    if (piece.block.size() == 0 || common(piece.block, all).size() != piece.block.size()) {
        return false;
    }
    const std::int64_t item = item_of(region_), width = piece.block.columns.size() * item;
    const bool whole = piece.block.columns.size() == region_.stored_columns();
    const std::int64_t rows = whole ? 1 : piece.block.rows.size(), bytes = piece.block.size() * item / rows;
    buffer.resize(static_cast<std::size_t>(piece.block.size() * item));
    for (std::int64_t row = 0; row < rows; ++row) {
        const std::int64_t number =
            (piece.block.rows.begin + row) * region_.stored_columns() + piece.block.columns.begin;
        for (std::int64_t done = 0; done < bytes;) {
            const ssize_t got = uninterrupted([&] {
                return pread(part_, buffer.data() + row * width + done, static_cast<std::size_t>(bytes - done),
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

bool Journal::holds(const grid::Block& stored) const {
    std::int64_t found = 0;
    int start = -1;
    // Later starts come last, and have written over what earlier ones left.
    for (auto piece = standing_.rbegin(); piece != standing_.rend() && found < stored.size(); ++piece) {
        const std::int64_t size = common(piece->block, stored).size();
        if (size > 0) {
            found = (piece->start == start ? found : 0) + size;
            start = piece->start;
        }
    }
    return stored.size() > 0 && found == stored.size();
}

void Journal::wrote(const grid::Block& stored, const std::byte* data) {
    const std::int64_t row_bytes = stored.columns.size() * item_of(region_);
    if (stored.size() == 0) {
        return;
    }
    if (flushed_ && uninterrupted([&] { return fdatasync(part_); }) != 0) {
        throw system_error(region_.name + ": could not be flushed", errno);
    }
    const std::int64_t height = std::max<std::int64_t>(1, piece_bytes / row_bytes);
    for (std::int64_t row = stored.rows.begin; row < stored.rows.end; row += height) {
        const grid::Block piece{{row, std::min(row + height, stored.rows.end)}, stored.columns};
        const std::uint64_t sum = sum_of(region_, piece, data + (row - stored.rows.begin) * row_bytes);
        char line[160];
        int length =
            std::snprintf(line, sizeof line, "%lld %lld %lld %lld %016llx ", static_cast<long long>(piece.rows.begin),
                          static_cast<long long>(piece.rows.end), static_cast<long long>(piece.columns.begin),
                          static_cast<long long>(piece.columns.end), static_cast<unsigned long long>(sum));
        std::uint64_t check = 0xcbf29ce484222325;  // FNV-1a, as the front computes it
        for (int letter = 0; letter < length; ++letter) {
            check = (check ^ static_cast<unsigned char>(line[letter])) * 0x100000001b3;
        }
        length += std::snprintf(line + length, sizeof line - static_cast<std::size_t>(length), "%016llx\n",
                                static_cast<unsigned long long>(check));
        append(log_, std::string(line, static_cast<std::size_t>(length)), folder_);
    }
    if (flushed_ && uninterrupted([&] { return fdatasync(log_); }) != 0) {
        throw system_error(folder_ + ": could not be flushed", errno);
    }
}

bool Journal::stop_asked() const { return access((folder_ + "/stop").c_str(), F_OK) == 0; }

std::unique_ptr<Journal> make_journal(Context& context, const Region* region, const JournalOptions& options) {
    if (options.folder.empty() || region == nullptr) {
        return nullptr;
    }
    return std::make_unique<Journal>(context, *region, options);
}

Error stopped() { return StoppedError("the job has ended in time, as it was asked to"); }

void stop_together(const Context& context, const Journal* journal) {
    if (journal == nullptr) {
        return;
    }
    int stop = context.comm.rank() == 0 && journal->stop_asked() ? 1 : 0;
    mpi::check(MPI_Bcast(&stop, 1, MPI_INT, 0, context.comm.get()), "MPI_Bcast");
    if (stop != 0) {
        mpi::throw_agreed(context.comm, stopped());
    }
}

}  // namespace tilewise::io
