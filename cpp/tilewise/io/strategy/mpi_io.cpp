// Strategies `independent`, `collective` and `split_collective`: MPI-IO with a file view for each rank. Each rank reads
// and writes for itself, or all with one read_all or write_all, which lets the library merge the ranks' requests.
//
//        split_collective    begin slab 0, end 0 │ begin 1, end 1 │ …      slab: an equal part of each rank's share
//
// Nothing is done between begin and end: ROMIO moves everything in begin, so nothing would overlap. It is here to be
// compared with `collective`.
#include "tilewise/io/strategy/mpi_io.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <limits>
#include <optional>
#include <sys/statvfs.h>

#include "tilewise/base/buffer.hpp"
#include "tilewise/base/work.hpp"
#include "tilewise/io/read_back.hpp"
#include "tilewise/mpi/sum.hpp"
#include "tilewise/mpi/together.hpp"

namespace tilewise::io {
namespace {

using mpi::check;

constexpr int most_interrupts = 100;
/// Eight bytes that hardly any matrix holds; where one does hold them, the file says so.
constexpr std::array<unsigned char, 8> mark{0xD5, 0x1B, 0xA7, 0x63, 0xF2, 0x9C, 0x4E, 0xB8};
constexpr std::int64_t compared_at_once = std::int64_t{1} << 20;  // bytes

/// A number that a call to a file leaves behind; others come from whatever a library did since.
bool is_of_a_file(int number) {
    constexpr std::array numbers{ENOSPC, EDQUOT, EIO, EINTR, EFBIG, ESTALE, EROFS};
    return std::find(numbers.begin(), numbers.end(), number) != numbers.end();
}

bool is_full(const std::string& path) {
    struct statvfs facts{};
    return statvfs(path.c_str(), &facts) == 0 && facts.f_bavail == 0;
}

}  // namespace

FileView::FileView(Context& context, const Transfer& transfer, Direction direction, const Hints& hints)
    : context_(context),
      transfer_(transfer),
      direction_(direction),
      share_(transfer.share_of(context.comm.rank())),
      item_(mpi::type_of(transfer.region.dtype)) {
    step([&] {
        if (is_simulated) {
            throw UsageError("MPI-IO is not simulated; use --io positioned");
        }
        check(MPI_Info_create(info_.out()), "MPI_Info_create");
        for (const auto& [key, value] : hints) {
            check(MPI_Info_set(info_.get(), key.c_str(), value.c_str()), "MPI_Info_set");
        }
    });
    step([&] {
        file_.release();  // of an interrupted attempt, which others may have none of: closing it would be collective
        check(MPI_File_open(context.comm.get(), transfer.region.path.c_str(),
                            direction == Direction::read ? MPI_MODE_RDONLY : MPI_MODE_RDWR, info_.get(), file_.out()),
              "MPI_File_open");
    });
    step([&] {
        view_ = mpi::share_of_matrix(transfer.rows(), transfer.columns(), share_, item_);
        check(MPI_File_set_view(file_.get(), transfer.region.offset, item_, view_.get(), "native", info_.get()),
              "MPI_File_set_view");
    });
}

void FileView::call(const std::function<void()>& f) const {
    errno = 0;
    try {
        f();
    } catch (const Error& error) {
        const int seen = errno;
        std::string text = error.what();
        int number = error.error_number();
        if (number == 0 && error.kind() == ErrorKind::mpi) {
            const bool full = direction_ == Direction::write && is_full(transfer_.region.path);
            number = is_of_a_file(seen) ? seen : full ? ENOSPC : 0;
        }
        if (number != 0) {  // the library's words may be about something else by now
            text = text.substr(0, text.find(" failed: ")) + " failed: " + system_reason(number);
        }
        throw IoError(transfer_.region.name + ": " + text, error.rank(), number);
    }
}

void FileView::step(const std::function<void()>& f) const {
    for (int interrupts = 0;; ++interrupts) {
        try {
            mpi::together(context_.comm, [&] { call(f); });
            return;
        } catch (const Error& error) {
            if (error.error_number() != EINTR || interrupts == most_interrupts) {
                throw;
            }
        }
    }
}

void FileView::close() {
    mpi::together(context_.comm, [&] {  // not a step: what is closed cannot be closed again
        MPI_File file = file_.release();
        call([&] { check(MPI_File_close(&file), "MPI_File_close"); });
    });
}

FileView::Pieces FileView::pieces() const {
    Pieces pieces{.cell = 4 * sample_cell, .turn = context_.comm.rank()};
    mpi::Info used;
    check(MPI_File_get_info(file_.get(), used.out()), "MPI_File_get_info");
    const auto hint = [&](const char* key) {
        std::array<char, 64> value{};
        int found = 0;
        check(MPI_Info_get(used.get(), key, static_cast<int>(value.size()) - 1, value.data(), &found), "MPI_Info_get");
        return std::string(value.data());
    };
    for (const char* key : {"cb_buffer_size", "ind_rd_buffer_size"}) {
        if (const long long size = std::atoll(hint(key).c_str()); size > 0) {
            pieces.cell = std::min<std::int64_t>(pieces.cell, size);
        }
    }
    pieces.cell = std::max(sample_bytes, pieces.cell / 4);  // so that a piece has whole cells, wherever it begins
    if (const std::string sieves = hint("romio_ds_read"); !sieves.empty() && sieves != "disable") {
        pieces.turn = -1;  // each rank reads pieces of its own
    }
    return pieces;
}

void FileView::require_moved(MPI_Status status, std::int64_t expected, const char* call) const {
    MPI_Count moved = 0;
    check(MPI_Get_elements_x(&status, item_, &moved), "MPI_Get_elements_x");
    int item_bytes = 0;
    check(MPI_Type_size(item_, &item_bytes), "MPI_Type_size");
    // Some libraries count only what fits 31 bits, or nothing for an empty block: a short count is an error only where
    // it can be trusted.
    if (moved != MPI_UNDEFINED && moved < expected && expected * item_bytes < std::numeric_limits<int>::max()) {
        throw IoError(std::string(call) + " moved " + std::to_string(moved) + " of " + std::to_string(expected) +
                      " numbers");
    }
}

ShortReadCheck::ShortReadCheck(Context& context, const Transfer& transfer, grid::Share share, FileView::Pieces pieces)
    : context_(context),
      transfer_(transfer),
      share_(std::move(share)),
      pieces_(pieces) {
    for_marks([&](std::byte* place, std::int64_t bytes, std::int64_t) {
        std::memcpy(place, mark.data(), static_cast<std::size_t>(bytes));
    });
    if (context.comm.rank() == 0) {
        stat(transfer.region.path.c_str(), &before_);  // where this fails, opening fails too, and says why
    }
}

template <class F> void ShortReadCheck::for_marks(F f) const {
    grid::for_runs(
        share_, transfer_.columns(), span(), [&](std::int64_t first, std::int64_t count, std::int64_t local) {
            const std::int64_t bytes = count * transfer_.item(), some = std::min<std::int64_t>(bytes, std::ssize(mark));
            f(transfer_.data + local * transfer_.item() + bytes - some, some, transfer_.at(first) + bytes - some);
        });
}

void ShortReadCheck::compare(const PosixFile& file, std::int64_t first, std::int64_t count, std::int64_t local) const {
    Buffer there(static_cast<std::size_t>(std::min(count * transfer_.item(), compared_at_once)));
    for (std::int64_t begin = 0, end = count * transfer_.item(); begin < end; begin += compared_at_once) {
        const std::int64_t some = std::min(end - begin, compared_at_once), offset = transfer_.at(first) + begin;
        file.read(there.data(), some, offset);
        const std::byte* here = transfer_.data + local * transfer_.item() + begin;
        if (std::memcmp(here, there.data(), static_cast<std::size_t>(some)) != 0) {
            const auto different = std::mismatch(here, here + some, there.data()).first - here;
            throw IoError(transfer_.region.name + ": the data read differs from the file at byte " +
                          std::to_string(offset + different) + "; did it change during the run?");
        }
    }
}

void ShortReadCheck::compare_with_file(bool everything) const {
    if (share_.size() == 0) {
        return;
    }
    const PosixFile file(transfer_.region.path, transfer_.region.name, PosixFile::Mode::read);
    if (everything) {
        grid::for_runs(
            share_, transfer_.columns(), span(),
            [&](std::int64_t first, std::int64_t count, std::int64_t local) { compare(file, first, count, local); });
        return;
    }
    for_marks([&](const std::byte* place, std::int64_t bytes, std::int64_t offset) {
        if (std::memcmp(place, mark.data(), static_cast<std::size_t>(bytes)) == 0) {
            std::array<std::byte, mark.size()> there{};
            file.read(there.data(), bytes, offset);
            if (std::memcmp(place, there.data(), static_cast<std::size_t>(bytes)) != 0) {
                throw IoError(transfer_.region.name + ": the read returned nothing for byte " + std::to_string(offset) +
                              "; did it change during the run?");
            }
        }
    });
    for (const Sample& sample :
         samples_of(share_, transfer_.columns(), transfer_.item(), span(), pieces_.cell, pieces_.turn)) {
        compare(file, sample.first, sample.count, sample.local);
    }
}

void ShortReadCheck::require_read() const {
    bool same = true;
    struct stat now{};
    if (context_.comm.rank() == 0) {
        const auto moment = [](const timespec& time) { return std::pair(time.tv_sec, time.tv_nsec); };
        same = stat(transfer_.region.path.c_str(), &now) == 0 && now.st_dev == before_.st_dev &&
               now.st_ino == before_.st_ino && now.st_size == before_.st_size &&
               moment(now.st_mtim) == moment(before_.st_mtim) && moment(now.st_ctim) == moment(before_.st_ctim);
    }
    same = mpi::of_root(context_.comm, same);
    mpi::together(context_.comm, [&] { compare_with_file(!same); });
}

namespace {

/// A call of MPI-IO that moves some numbers of a view from where its pointer stands.
struct ViewCall {
    const char* name;
    int (*call)(MPI_File file, std::byte* data, const mpi::Span& span, MPI_Status* status);
};

class ThroughView final : public OpenFile {
public:
    ThroughView(Context& context, const Transfer& transfer, Direction direction, const Hints& hints,
                const ViewCall& read, const ViewCall& write, int slabs)
        : OpenFile(context, transfer, direction),
          call_(reads() ? read : write),
          slabs_(slabs),
          timed_(timed(Step::file, call_.name)),
          view_(context, transfer, direction, hints) {
        if (reads()) {
            check_.emplace(context, transfer, view_.share(), view_.pieces());
        }
    }

    void move() override {
        const std::int64_t size = view_.share().size(), bytes = size * transfer_.item();
        for (int slab = 0; slab < slabs_; ++slab) {
            view_.step([&] { once(size * slab / slabs_, size * (slab + 1) / slabs_); });
            count().io_calls += 1;
            if (slabs_ > 1) {
                report(slab + 1, slabs_);
            }
        }
        (reads() ? count().useful : count().written) += bytes;
        count().read += reads() ? bytes : 0;
    }

    void move_part(std::int64_t begin, std::int64_t end) override {
        view_.call([&] { once(begin, end); });
    }

    void close() override {
        if (check_) {
            check_->require_read();
        }
        view_.close();
    }

private:
    /// The call for elements [begin, end) of the share; it begins at the right place of the view even if it is done
    /// again.
    void once(std::int64_t begin, std::int64_t end) const {
        const mpi::Span span(end - begin, view_.item());
        MPI_Status status{};
        check(MPI_File_seek(view_.get(), begin, MPI_SEEK_SET), "MPI_File_seek");
        const int code = call_.call(view_.get(), transfer_.data + begin * transfer_.item(), span, &status);
        if (code != MPI_SUCCESS) {
            const std::int64_t first = elements_of(view_.share(), transfer_.columns(), begin, end).begin;
            check(code,
                  (std::string(call_.name) + " from byte " + std::to_string(transfer_.at(first)) + " on").c_str());
        }
        if (transfer_.counts) {
            view_.require_moved(status, end - begin, call_.name);
        }
    }

    ViewCall call_;
    int slabs_;
    const Timed timed_;
    FileView view_;
    std::optional<ShortReadCheck> check_;
};

template <auto function> int whole(MPI_File file, std::byte* data, const mpi::Span& span, MPI_Status* status) {
    return function(file, data, span.count(), span.type(), status);
}

/// The end is called after a failure, too: only one call may be begun.
template <auto begin, auto end> int split(MPI_File file, std::byte* data, const mpi::Span& span, MPI_Status* status) {
    const int begun = begin(file, data, span.count(), span.type());
    const int ended = end(file, data, status);
    return begun != MPI_SUCCESS ? begun : ended;
}

}  // namespace

Strategy make_independent(const Hints& hints) {
    return strategy_of<ThroughView>(hints, ViewCall{"MPI_File_read", whole<MPI_File_read>},
                                    ViewCall{"MPI_File_write", whole<MPI_File_write>}, 1);
}

Strategy make_collective(const Hints& hints) {
    return strategy_of<ThroughView>(hints, ViewCall{"MPI_File_read_all", whole<MPI_File_read_all>},
                                    ViewCall{"MPI_File_write_all", whole<MPI_File_write_all>}, 1);
}

Strategy make_split_collective(const Hints& hints) {
    constexpr int slabs = 8;
    return strategy_of<ThroughView>(
        hints, ViewCall{"MPI_File_read_all_begin", split<MPI_File_read_all_begin, MPI_File_read_all_end>},
        ViewCall{"MPI_File_write_all_begin", split<MPI_File_write_all_begin, MPI_File_write_all_end>}, slabs);
}

// Strategies `shared_pointer` and `ordered`, which only read: MPI-IO with one file pointer for all ranks, so that each
// call goes on where the one before it ended.
//
//        file             [ a a a | b b b | c c c | d d d | … ]     pieces of one size, in the order of the calls
//        ordered              0       1       0       1             read_ordered: a collective call, in order of ranks
//        shared_pointer       0       1       0       1             read_shared: a rank after the one before it
//        shares           [ 0 1 0 1 … ]                             pieces are dealt out to their owners afterwards
//
// With a shared pointer MPI demands the same view of all ranks, so none can have a view of its own block. It does not
// say either which piece a call of read_shared got, so that the ranks take turns.

namespace {

using mpi::check;

constexpr std::int64_t standard_piece = std::int64_t{4} << 20;
constexpr int turn_tag = 1;

/// The numbers of a region as one row, of which all ranks see the same part.
struct SameView {
    SameView(const Transfer& whole, grid::Range seen) : region(whole.region) {
        region.rows = 1;
        region.columns = whole.rows() * whole.columns();
        region.column_major = false;
        const grid::Share all = grid::Block{{0, 1}, seen};
        transfer = std::make_unique<Transfer>(Transfer{region, [all](int) { return all; }});
    }

    Region region;
    std::unique_ptr<Transfer> transfer;
};

/// Lets one rank after the other do something, whether or not it fails.
class Turn {
public:
    explicit Turn(const mpi::Communicator& comm) : comm_(comm) {
        if (comm_.rank() > 0) {
            check(MPI_Recv(nullptr, 0, MPI_BYTE, comm_.rank() - 1, turn_tag, comm_.get(), MPI_STATUS_IGNORE),
                  "MPI_Recv");
        }
    }
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;
    ~Turn() {
        if (comm_.rank() + 1 < comm_.size()) {
            MPI_Send(nullptr, 0, MPI_BYTE, comm_.rank() + 1, turn_tag, comm_.get());
        }
    }

private:
    const mpi::Communicator& comm_;
};

class SharedPointer final : public OpenFile {
public:
    SharedPointer(Context& context, const Transfer& transfer, Direction direction, bool ordered,
                  std::int64_t piece_bytes, const Hints& hints)
        : OpenFile(context, transfer, direction),
          ordered_(ordered),
          piece_bytes_(piece_bytes),
          shares_(context, transfer),
          same_(transfer, shares_.span) {
        if (!reads()) {
            mpi::throw_agreed(context.comm,
                              UsageError(transfer.region.name + ": is to be written with a file pointer that " +
                                             "all ranks share, which only reads",
                                         -1, 0, "--io READ:collective or READ:positioned"));
        }
        if (shares_.span.size() > 0) {
            view_.emplace(context, *same_.transfer, Direction::read, hints);
        }
    }

    void move() override {
        if (!view_) {
            return;
        }
        mpi::no_return(context_.comm, [&] {
            if (in_order()) {
                next(shares_.span.begin, shares_.span_of(me()), transfer_.data);
                count().useful += shares_.count(me(), shares_.span) * shares_.item;
            } else {
                deal_out();
            }
        });
    }

    void close() override {
        if (view_) {
            view_->close();
        }
    }

private:
    const char* call() const { return ordered_ ? "MPI_File_read_ordered" : "MPI_File_read_shared"; }

    /// Whether every rank wants one piece of the file, which begins where that of the rank before it ends.
    bool in_order() const {
        std::int64_t end = shares_.span.begin;
        for (int rank = 0; rank < context_.comm.size(); ++rank) {
            const grid::Range its = shares_.span_of(rank);
            if (its.size() > 0 && its.begin != end) {
                return false;
            }
            end = its.size() > 0 ? its.end : end;
        }
        return shares_.contiguous();
    }

    void deal_out() {
        const Timed moving(context_.ledger, context_.ledger.phase(), Step::move, "deal out pieces");
        const grid::Range span = shares_.span;
        const std::int64_t piece = std::max<std::int64_t>(1, piece_bytes_ / shares_.item);
        const std::int64_t most = std::min(piece, span.size());
        const Buffer rows(static_cast<std::size_t>(most * shares_.item)), packed(rows.bytes());
        RangeExchange exchange(context_, transfer_, shares_);
        for (std::int64_t begin = span.begin; begin < span.end; begin += piece * context_.comm.size()) {
            std::vector<grid::Range> pieces;
            for (int rank = 0; rank < context_.comm.size(); ++rank) {
                const std::int64_t at = begin + rank * piece;
                pieces.push_back(grid::common(span, {at, at + piece}));
            }
            const grid::Range mine = pieces[static_cast<std::size_t>(me())];
            next(begin, mine, rows.data());
            exchange.begin_scatter(pieces, packed.data());
            exchange.send(rows.data());
            exchange.finish_scatter();
            count().useful += shares_.owned(mine) * shares_.item;
            report(std::min(begin + piece * context_.comm.size(), span.end) - span.begin, span.size());
        }
    }

    /// The next call of every rank, which gets elements `mine`; that of rank 0 begins with element `begin`.
    void next(std::int64_t begin, grid::Range mine, std::byte* out) {
        const Timed calling = timed(Step::file, call());
        const Transfer piece{same_.region, {}, out};
        const ShortReadCheck came(context_, piece, grid::Block{{0, 1}, mine}, {.cell = sample_cell, .turn = -1});
        const std::string where = std::string(call()) + " from byte " + std::to_string(piece.at(mine.begin)) + " on";
        bool again = false;
        view_->step([&] {
            if (again) {  // nobody knows how far the interrupted calls have moved the pointer
                check(MPI_File_seek_shared(view_->get(), begin - view_->share().columns[0].begin, MPI_SEEK_SET),
                      "MPI_File_seek_shared");
            }
            again = true;
            const mpi::Span span(mine.size(), view_->item());
            MPI_Status status{};
            if (ordered_) {
                check(MPI_File_read_ordered(view_->get(), out, span.count(), span.type(), &status), where.c_str());
            } else {
                const Turn turn(context_.comm);
                check(MPI_File_read_shared(view_->get(), out, span.count(), span.type(), &status), where.c_str());
            }
            view_->require_moved(status, mine.size(), call());
        });
        came.require_read();
        count().io_calls += 1;
        count().read += mine.size() * piece.item();
    }

    bool ordered_;
    std::int64_t piece_bytes_;
    Shares shares_;
    SameView same_;
    std::optional<FileView> view_;  ///< none where nobody wants anything
};

Strategy make(bool ordered, const Hints& hints) {
    return strategy_of<SharedPointer>(ordered, buffer_size(hints, "cb_buffer_size", standard_piece), hints);
}

}  // namespace

Strategy make_shared_pointer(const Hints& hints) { return make(false, hints); }

Strategy make_ordered(const Hints& hints) { return make(true, hints); }

}  // namespace tilewise::io
