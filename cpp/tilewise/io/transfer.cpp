// The checks around every strategy: nothing that a library says about success is believed without looking at the file.
#include "tilewise/io/transfer.hpp"

#include <charconv>
#include <optional>

#include "tilewise/base/names.hpp"
#include "tilewise/base/work.hpp"
#include "tilewise/io/background.hpp"
#include "tilewise/io/chunked.hpp"
#include "tilewise/io/file.hpp"
#include "tilewise/io/in_memory.hpp"
#include "tilewise/kernel/codec/convert.hpp"
#include "tilewise/kernel/fill.hpp"
#include "tilewise/mpi/sum.hpp"
#include "tilewise/mpi/together.hpp"

namespace tilewise::io {
namespace {

ShareOf stored_shares(const Region& region, const WantedShare& wanted) {
    return [&region, wanted](int rank) { return region.in_file(wanted(rank)); };
}

bool by_root(StrategyKind strategy) {
    return strategy == StrategyKind::root || strategy == StrategyKind::root_collective;
}

/// What a region can be read or written with: its own form may leave no choice.
StrategyKind fitting(const Region& region, StrategyKind strategy) {
    if (!region.tiles.empty()) {
        return StrategyKind::per_rank;
    }
    if (strategy == StrategyKind::per_rank && region.generator.empty()) {
        throw UsageError(region.name + ": is one file, but per_rank needs a folder of tiles");
    }
    return region.text && !by_root(strategy) ? StrategyKind::two_phase : strategy;
}

Strategy strategy_for(const Region& region, StrategyKind strategy, const Hints& hints) {
    if (region.chunks != nullptr) {
        return make_chunked(by_root(strategy));
    }
    return region.memory != nullptr ? make_in_memory() : make_strategy(fitting(region, strategy), hints);
}

/// `file`: of a tile, its path.
void check_size(const Region& region, const std::string& path, const std::string& file, std::int64_t needed,
                bool exactly) {
    const std::int64_t size = PosixFile(path, region.name + file, PosixFile::Mode::read).size();
    if (exactly ? size != needed : size < needed) {
        throw region.refusal(ErrorKind::io, (file.empty() ? "" : file + ": ") + "has " + std::to_string(size) +
                                                " bytes where " + std::to_string(needed) + " were expected");
    }
}

/// In the type that the matrix has; a generated matrix is stored as it is wanted.
void generate(Context& context, const Region& region, const grid::Share& share, std::byte* data) {
    const Timed timed(context.ledger, context.ledger.phase(), Step::convert, "make " + region.name);
    mpi::together(context.comm, [&] {
        if (share.size() == 0 || without_numbers()) {
            return;
        }
        const auto make = [&](const grid::Range& rows, const grid::Range& columns) {
            kernel::fill(data, {rows, columns}, region.columns, region.dtype, kernel::fill_named(region.generator),
                         region.seed, context.threads);
            data += rows.size() * columns.size() * static_cast<std::int64_t>(size_of(region.dtype));
        };
        for (const grid::Range& rows : share.rows) {
            if (share.columns.size() == 1) {
                make(rows, share.columns[0]);
                continue;
            }
            for (std::int64_t row = rows.begin; row < rows.end; ++row) {
                for (const grid::Range& columns : share.columns) {
                    make({row, row + 1}, columns);
                }
            }
        }
    });
}

}  // namespace

static_assert(strategies[static_cast<std::size_t>(StrategyKind::uncached)].name == "uncached");

StrategyKind strategy_named(std::string_view name) {
    return enum_named<StrategyKind>(strategies, name, "I/O strategy");
}

Strategy make_strategy(StrategyKind kind, const Hints& hints) {
    return strategies.at(static_cast<std::size_t>(kind)).make(hints);
}

void OpenFile::move_part(std::int64_t, std::int64_t) { throw InternalError("this strategy moves a share as a whole"); }

void Strategy::move(Context& context, const Transfer& transfer, Direction direction) const {
    const auto file = open(context, transfer, direction);
    file->move();
    file->close();
}

std::int64_t buffer_size(const Hints& hints, const std::string& key, std::int64_t standard) {
    const auto found = hints.find(key);
    if (found == hints.end()) {
        return standard;
    }
    const std::string& text = found->second;
    std::int64_t size = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), size);
    if (error != std::errc{} || end != text.data() + text.size() || size < 4096 || size > (std::int64_t{1} << 30)) {
        throw UsageError("--hint " + key + "=" + text + ": a buffer must have 4096 to 2^30 bytes");
    }
    return size;
}

void check_file(Context& context, const Region& region) {
    if (region.memory != nullptr) {
        return;
    }
    mpi::together(context.comm, [&] {
        if (context.comm.rank() != 0) {
            return;
        }
        for (const Tile& tile : region.tiles) {
            if (!tile.path.empty()) {
                const std::int64_t end = tile.offset + tile.extent() * static_cast<std::int64_t>(size_of(region.dtype));
                check_size(region, tile.path, " (" + tile.path + ")", region.file_bytes >= 0 ? region.file_bytes : end,
                           true);
            }
        }
        if (region.tiles.empty() && (region.chunks == nullptr || region.chunks->paths.empty())) {
            const bool exactly = region.file_bytes >= 0;
            check_size(region, region.path, "", exactly ? region.file_bytes : region.offset + region.bytes(), exactly);
        }
    });
}

Region as_written(Context& context, const Region& output) {
    context.comm.barrier();
    Region written = output;
    written.proving = true;
    if (output.tiles.empty() && output.memory == nullptr) {
        mpi::together(context.comm, [&] {
            if (context.comm.rank() == 0) {
                written.file_bytes = PosixFile(output.path, output.name, PosixFile::Mode::read).size();
            }
        });
        written.file_bytes = mpi::of_root(context.comm, written.file_bytes);
    }
    return written;
}

Input::Input(Context& context, const Region& region, StrategyKind strategy, const Hints& hints, bool in_parts)
    : region_(region),
      uncut_(region.whole ? std::optional(region.uncut()) : std::nullopt),
      file_(uncut_ ? *uncut_ : region),
      past_cache_(in_parts && strategy == StrategyKind::uncached && file_.is_one_file()),
      reads_ahead_(past_cache_ || (strategy == StrategyKind::positioned && file_.is_one_file())) {
    mpi::together(context.comm, [&] {
        strategy_ = strategy_for(file_, past_cache_ ? StrategyKind::positioned : strategy, hints);
        if (past_cache_) {
            prefetch_ = std::make_unique<Prefetch>(file_, PosixFile::Cache::bypassed);
        }
    });
    if (file_.generator.empty()) {
        check_file(context, file_);
        if (file_.text) {
            text_ = std::make_unique<TextIndex>(context, file_);
        }
    }
}

Input::~Input() = default;

void Input::begin(Context& context, Dtype dtype, const WantedShare& wanted, std::byte* data) {
    if (!reads_ahead_) {
        return;
    }
    try {
        if (!prefetch_) {
            prefetch_ = std::make_unique<Prefetch>(file_);
        }
        const grid::Share stored = region_.in_file(wanted(context.comm.rank()));
        prefetch_->want(stored, data + kernel::raw_offset(stored.size(), region_.dtype, dtype));
    } catch (const Error&) {  // `load` meets it again, and tells all ranks
        prefetch_.reset();
    }
}

void Input::rest() {
    if (prefetch_) {
        prefetch_->rest();
    }
}

void Input::load_raw(Context& context, const WantedShare& wanted, std::byte* data) const {
    if (!region_.generator.empty()) {
        generate(context, file_, region_.in_file(wanted(context.comm.rank())), data);
        return;
    }
    if (past_cache_ && prefetch_) {
        prefetch_->want(region_.in_file(wanted(context.comm.rank())), data);  // unless that has begun
    }
    const Transfer transfer{file_, stored_shares(region_, wanted), data, text_.get(), prefetch_.get()};
    strategy_.move(context, transfer, Direction::read);
    // Some libraries read stale bytes or zeros where a file was cut short meanwhile; our own calls say so themselves.
    if (region_.tiles.empty() && !reads_ahead_) {
        check_file(context, file_);
    }
}

void Input::load(Context& context, Dtype dtype, const WantedShare& wanted, std::byte* data) const {
    const std::int64_t size = region_.stored(wanted(context.comm.rank())).size();
    std::byte* raw = data;
    mpi::together(context.comm, [&] { raw += kernel::raw_offset(size, region_.dtype, dtype); });
    load_raw(context, wanted, raw);
    if (region_.dtype != dtype || region_.swap_bytes) {
        const Timed timed(context.ledger, context.ledger.phase(), Step::convert, "convert " + region_.name);
        mpi::together(context.comm, [&] {
            if (kernel::widen(data, size, region_.dtype, region_.swap_bytes, dtype) > 0) {
                throw region_.refusal(ErrorKind::usage,
                                      "holds numbers that " + std::string(name_of(dtype)) + " cannot");
            }
        });
    }
}

Output::Output(Context& context, const Region& region, StrategyKind strategy, const Hints& hints, bool prove)
    : region_(region),
      prove_(prove),
      read_back_(prove ? ReadBack::Extent::everything : ReadBack::Extent::samples, context.comm.rank()) {
    const Timed timed(context.ledger, context.ledger.phase(), Step::file, "reserve " + region.name);
    if (without_numbers()) {
        return;
    }
    mpi::together(context.comm, [&] {
        strategy_ = strategy_for(region, strategy, hints);
        if (region.text) {
            text_ = std::make_unique<TextOutput>(region_, by_root(strategy), read_back_);
        } else if (region.is_one_file() && context.comm.rank() == 0) {
            PosixFile file(region.path, region.name, PosixFile::Mode::write);
            file.reserve(region.offset, region.bytes());
            file.close();
        }
    });
}

void Output::store(Context& context, const WantedShare& wanted, std::byte* data) {
    if (without_numbers()) {
        return;
    }
    const Transfer transfer{region_, stored_shares(region_, wanted), data};
    if (text_) {
        text_->append(context, transfer);
        return;
    }
    strategy_.move(context, transfer, Direction::write);
    if (region_.memory != nullptr) {  // which nobody has to look at again
        return;
    }
    std::optional<Timed> timed;
    if (prove_) {
        timed.emplace(context.ledger, Phase::verify, "checksum " + region_.name);
    }
    read_back_.note(transfer, transfer.share_of(context.comm.rank()));
}

void Output::note(const grid::Share& stored, std::byte* data) { read_back_.note({region_, {}, data}, stored); }

bool Output::holds_what_was_written(Context& context) const {
    const Timed timed(context.ledger, Phase::verify, "read back " + region_.name);
    return read_back_.compare(context, region_) == 0;
}

void Output::finish(Context& context, bool sync) {
    if (region_.memory != nullptr || without_numbers()) {
        return;
    }
    const Timed timed(context.ledger, context.ledger.phase(), Step::file, sync ? "flush" : "check samples");
    if (sync) {  // each node holds its own pages of a shared file
        mpi::together(context.comm, [&] {
            const auto flush = [&](const std::string& path) {
                PosixFile file(path, region_.name, PosixFile::Mode::write);
                file.flush();
                file.close();
            };
            for (const Tile& tile : region_.tiles) {
                if (!tile.path.empty()) {
                    flush(tile.path);
                }
            }
            if (region_.tiles.empty()) {
                flush(region_.path);
            }
        });
    }
    if (text_) {
        context.comm.barrier();
        mpi::together(context.comm, [&] {
            if (context.comm.rank() == 0) {
                check_size(region_, region_.path, "", text_->end(), true);
            }
        });
    } else {
        check_file(context, region_);
    }
    if (!prove_ && read_back_.compare(context, region_) > 0) {
        mpi::throw_agreed(context.comm,
                          IoError(region_.name + ": does not hold what was written to it: the file system lost a part, "
                                                 "or another program changed it"));
    }
}

}  // namespace tilewise::io
