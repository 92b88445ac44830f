// Positions, checksums and lines of pieces: of a result, looked at when a job goes on and written down as it does; of
// states, in two files in turn, so that one of them is always whole.
#include "tilewise/io/journal.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <fcntl.h>
#include <unistd.h>

#include "tilewise/kernel/codec/checksum.hpp"
#include "tilewise/mpi/sum.hpp"
#include "tilewise/mpi/together.hpp"

namespace tilewise::io {

namespace {

constexpr std::int64_t named_bytes = std::int64_t{8} << 20;  ///< of what one line names

std::int64_t item_of(const Region& region) { return static_cast<std::int64_t>(size_of(region.dtype)); }

std::uint64_t sum_of(const Region& region, const grid::Block& block, const std::byte* data) {
    const std::int64_t place = block.rows.begin * region.stored_columns() + block.columns.begin;
    return kernel::checksum(data, static_cast<std::size_t>(block.size() * item_of(region)),
                            static_cast<std::uint64_t>(place));
}

Descriptor open_or_throw(const std::string& path, int flags) {
    Descriptor descriptor(open_made(path, flags | O_NONBLOCK));
    if (!descriptor) {
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

void Log::add(const std::string& words) const {
    std::string line = words + ' ';
    std::uint64_t check = 0xcbf29ce484222325;  // FNV-1a, as the front computes it
    for (const char letter : line) {
        check = (check ^ static_cast<unsigned char>(letter)) * 0x100000001b3;
    }
    char digits[18];
    line.append(digits, static_cast<std::size_t>(
                            std::snprintf(digits, sizeof digits, "%016llx\n", static_cast<unsigned long long>(check))));
    const ssize_t written = uninterrupted([&] { return write(descriptor_.number(), line.data(), line.size()); });
    if (written != static_cast<ssize_t>(line.size())) {
        throw system_error(folder_ + ": could not be written to", written < 0 ? errno : ENOSPC);
    }
}

void Log::flush() const { flush_or_throw(descriptor_.number(), folder_); }

PieceFile::PieceFile(const Region& region) : region_(region), descriptor_(open_or_throw(region.path, O_RDWR)) {}

void PieceFile::flush() const { flush_or_throw(descriptor_.number(), region_.name); }

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
                return pread(descriptor_.number(), buffer.data() + row * width + done,
                             static_cast<std::size_t>(bytes - done), region_.offset + number * item + done);
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
                       height = std::max<std::int64_t>(1, named_bytes / row_bytes);
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

bool stop_asked(const std::string& folder) { return access((folder + "/stop").c_str(), F_OK) == 0; }

Journal::Journal(Context& context, const Region& region, const JournalOptions& options)
    : folder_(options.folder),
      flushed_(options.flushed) {
    const Timed timed(context.ledger, context.ledger.phase(), Step::file, "journal of " + region.name);
    mpi::together(context.comm, [&] {
        log_.emplace(folder_, std::to_string(options.start) + '-' + std::to_string(context.comm.rank()) + ".log");
        part_.emplace(region);
    });
    const std::vector<bool> right = part_->right(context, options.standing);
    for (std::size_t index = 0; index < right.size(); ++index) {
        if (right[index]) {
            standing_.push_back(options.standing[index]);
        }
    }
    resumed_.started = options.start;
    resumed_.kept = std::ssize(standing_);
    resumed_.spoilt = std::ssize(options.standing) - std::ssize(standing_);
}

bool Journal::holds(const grid::Block& stored) const {
    std::int64_t found = 0;
    int start = -1;
    // Later starts come last, and have written over what earlier ones left.
    for (auto piece = standing_.rbegin(); piece != standing_.rend() && found < stored.size(); ++piece) {
        const std::int64_t size = grid::common_block(piece->block, stored).size();
        if (size > 0) {
            found = (piece->start == start ? found : 0) + size;
            start = piece->start;
        }
    }
    return stored.size() > 0 && found == stored.size();
}

void Journal::wrote(const grid::Block& stored, const std::byte* data) {
    if (stored.size() == 0) {
        return;
    }
    if (flushed_) {
        part_->flush();
    }
    part_->write_down(*log_, "", stored, data);
    if (flushed_) {
        log_->flush();
    }
}

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
    if (mpi::of_root(context.comm, context.comm.rank() == 0 && journal->stop_asked())) {
        mpi::throw_agreed(context.comm, stopped());
    }
}

namespace {

constexpr double look_every = 0.1;            // seconds
constexpr double spare = 2;                   // times what a state took
constexpr std::int64_t most_calls = 1 << 20;  // between two looks

}  // namespace

Checkpoints::Checkpoints(Context& context, const CheckpointOptions& options)
    : folder_(options.folder),
      flushed_(options.flushed),
      every_(options.every),
      ends_(options.ends) {
    const Timed timed(context.ledger, context.ledger.phase(), Step::file, "checkpoints");
    mpi::together(context.comm, [&] {
        if (options.slots.size() != 2) {
            throw UsageError("states are kept in two files in turn, not in " + std::to_string(options.slots.size()));
        }
        log_.emplace(folder_, std::to_string(options.start) + '-' + std::to_string(context.comm.rank()) + ".state.log");
        for (const Region& slot : options.slots) {
            files_.push_back(std::make_unique<PieceFile>(slot));
        }
    });
    restored_.started = options.start;
    for (const Saved& saved : options.saved) {
        if (saved.slot < 0 || saved.slot > 1) {
            continue;
        }
        const PieceFile& file = *files_[static_cast<std::size_t>(saved.slot)];
        const std::vector<bool> right = file.right(context, saved.pieces);
        std::int64_t numbers = 0;
        for (const Standing& piece : saved.pieces) {
            numbers += piece.block.size();
        }
        if (numbers == file.region().rows * file.region().columns &&
            std::all_of(right.begin(), right.end(), [](bool is) { return is; })) {
            found_ = saved;
            next_ = 1 - saved.slot;
            restored_.version = saved.version;
            break;
        }
        ++restored_.spoilt;
    }
}

Checkpoints::Wish Checkpoints::wish(const Context& context) {
    if (++calls_ < until_) {
        return Wish::none;
    }
    std::array<std::int64_t, 2> told{};
    if (context.comm.rank() == 0) {
        const double now = clock_seconds();
        // One that is about to begin must be over by then, and so must one that would begin at the next look.
        const bool late = ends_ > 0 && cost_ > 0 && now + (now - looked_) + spare * cost_ >= ends_;
        const bool stop = late || stop_asked(folder_), due = every_ > 0 && now - last_ >= every_;
        const double wanted = static_cast<double>(calls_) * look_every / std::max(1e-9, now - looked_);
        told = {static_cast<std::int64_t>(stop  ? Wish::save_and_stop
                                          : due ? Wish::save
                                                : Wish::none),
                static_cast<std::int64_t>(std::clamp(wanted, 1.0, static_cast<double>(most_calls)))};
        looked_ = wished_ = now;
    }
    mpi::check(MPI_Bcast(told.data(), 2, MPI_INT64_T, 0, context.comm.get()), "MPI_Bcast");
    calls_ = 0;
    // Never many more than before: the next calls may each take longer.
    until_ = std::min(told[1], 2 * until_);
    return static_cast<Wish>(told[0]);
}

void Checkpoints::wrote(std::int64_t version, const grid::Block& stored, const std::byte* data) const {
    files_[static_cast<std::size_t>(next_)]->write_down(
        *log_, std::to_string(next_) + ' ' + std::to_string(version) + ' ', stored, data);
}

void Checkpoints::complete(const Context& context, std::int64_t version, const std::vector<double>& facts) {
    mpi::together(context.comm, [&] {
        if (flushed_) {
            files_[static_cast<std::size_t>(next_)]->flush();
            log_->flush();
        }
    });
    mpi::together(context.comm, [&] {
        if (context.comm.rank() != 0) {
            return;
        }
        std::string words = std::to_string(next_) + ' ' + std::to_string(version) + " whole";
        for (const double fact : facts) {
            char digits[18];
            std::snprintf(digits, sizeof digits, " %016llx",
                          static_cast<unsigned long long>(std::bit_cast<std::uint64_t>(fact)));
            words += digits;
        }
        log_->add(words);
        if (flushed_) {
            log_->flush();
        }
    });
    next_ = 1 - next_;
    last_ = looked_ = clock_seconds();
    cost_ = std::max(cost_, last_ - wished_);
    calls_ = 0;
}

std::unique_ptr<Checkpoints> make_checkpoints(Context& context, const CheckpointOptions& options) {
    return options.folder.empty() ? nullptr : std::make_unique<Checkpoints>(context, options);
}

}  // namespace tilewise::io
