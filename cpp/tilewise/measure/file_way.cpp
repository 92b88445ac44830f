// The ways of the strategies of jobs: one call a block, or one for all; which strategy goes which way, and which cannot
// do what.
#include "tilewise/measure/file_way.hpp"

#include <array>
#include <cstring>
#include <vector>

#include "tilewise/base/names.hpp"
#include "tilewise/io/file.hpp"
#include "tilewise/io/mapped.hpp"
#include "tilewise/io/strategy.hpp"
#include "tilewise/io/uncached.hpp"
#include "tilewise/mpi/datatype.hpp"
#include "tilewise/mpi/together.hpp"

namespace tilewise::measure {
namespace {

using mpi::check;

/// The loop over the blocks, and the copies for memory that a call cannot reach.
class Blockwise : public FileWay {
public:
    explicit Blockwise(const WayFields& fields) : fields_(fields) {
        if (fields.memory.address() == nullptr) {
            stage_ = fields.memory.stage(stage_bytes(fields.name, fields.place));
        }
    }

    std::optional<Error> move(bool writing, bool flush) final {
        std::optional<Error> failure;
        const auto note_failure = [&](const auto& act) {
            try {
                act();
            } catch (...) {
                const Error error = error_in_flight();
                const bool unnamed = error.kind() == ErrorKind::mpi;  // MPI does not say which file
                failure = failure ? failure : unnamed ? IoError(path(writing) + ": " + error.what()) : error;
            }
        };
        const int owner = fields_.owner(writing);
        for (std::int64_t block = 0; block < fields_.place.blocks && (!failure || all_must_call()); ++block) {
            note_failure([&] { writing ? write(owner, block) : read(owner, block); });
        }
        if (flush && (!failure || all_must_call())) {
            note_failure([&] { flush_to_disk(); });
        }
        return failure;
    }

protected:
    /// Whether a rank whose call failed has to go on, because the others' calls need it.
    virtual bool all_must_call() const { return false; }
    virtual void put(std::byte* data, std::int64_t offset) = 0;
    virtual void get(std::byte* data, std::int64_t offset) = 0;
    virtual void flush_to_disk() = 0;

    const FilePlace& place() const { return fields_.place; }
    const mpi::Communicator& comm() const { return fields_.context.comm; }
    std::string path(bool writing) const { return place().path_of(fields_.owner(writing)); }

    WayFields fields_;

private:
    void write(int owner, std::int64_t block) {
        const std::int64_t slot = place().slot(owner, block), offset = place().offset(owner, block);
        std::byte* data = reachable(slot, offset);
        if (stage_ != nullptr) {
            fields_.memory.to_host(data, slot, place().bytes);
        }
        put(data, offset);
    }
    void read(int owner, std::int64_t block) {
        const std::int64_t slot = place().slot(owner, block), offset = place().offset(owner, block);
        std::byte* data = reachable(slot, offset);
        get(data, offset);
        if (stage_ != nullptr) {
            fields_.memory.from_host(slot, data, place().bytes);
        }
    }
    std::byte* reachable(std::int64_t slot, std::int64_t offset) const {
        return stage_ == nullptr ? fields_.memory.address() + slot : stage_ + offset % page;
    }

    std::byte* stage_ = nullptr;
};

/// MPI-IO with explicit offsets. In layout per_rank every rank opens its own file alone.
class ThroughMpi final : public Blockwise {
public:
    explicit ThroughMpi(const WayFields& fields)
        : Blockwise(fields),
          collective_(fields.name != "independent"),
          split_(fields.name == "split_collective") {}

    void open(bool writing) override {
        const bool alone = place().layout == FileLayout::per_rank;
        writing_ = writing;
        mpi::together(comm(), [&] {
            check(MPI_File_open(alone ? MPI_COMM_SELF : comm().get(), path(writing).c_str(),
                                writing ? MPI_MODE_RDWR : MPI_MODE_RDONLY, MPI_INFO_NULL, file_.out()),
                  "MPI_File_open");
        });
    }
    /// Some file systems say only now that a write has failed.
    void close() override {
        mpi::together(comm(), [&] {
            MPI_File file = file_.release();
            try {
                check(MPI_File_close(&file), "MPI_File_close");
            } catch (const Error& error) {
                throw IoError(path(writing_) + ": " + error.what());  // MPI does not say which file
            }
        });
    }

protected:
    bool all_must_call() const override { return true; }  // flushing is collective in any case

    void put(std::byte* data, std::int64_t offset) override {
        move_block(data, offset, MPI_File_write_at, MPI_File_write_at_all, MPI_File_write_at_all_begin,
                   MPI_File_write_at_all_end, "write");
    }
    void get(std::byte* data, std::int64_t offset) override {
        move_block(data, offset, MPI_File_read_at, MPI_File_read_at_all, MPI_File_read_at_all_begin,
                   MPI_File_read_at_all_end, "read");
    }
    void flush_to_disk() override { check(MPI_File_sync(file_.get()), "MPI_File_sync"); }

private:
    /// One block, by the calls of its direction, whose names begin with `act`.
    template <class One, class All, class Begin, class End>
    void move_block(std::byte* data, std::int64_t offset, One one, All all, Begin begin, End end, const char* act) {
        const mpi::Span span(place().bytes, MPI_BYTE);
        MPI_Status status{}, *told = fields_.counts ? &status : MPI_STATUS_IGNORE;
        const std::string call = std::string("MPI_File_") + act + "_at";
        if (split_) {
            check(begin(file_.get(), offset, data, span.count(), span.type()), (call + "_all_begin").c_str());
            check(end(file_.get(), data, told), (call + "_all_end").c_str());
        } else if (collective_) {
            check(all(file_.get(), offset, data, span.count(), span.type(), told), (call + "_all").c_str());
        } else {
            check(one(file_.get(), offset, data, span.count(), span.type(), told), call.c_str());
        }
        if (!fields_.counts) {
            return;
        }
        int count = 0;
        check(MPI_Get_count(told, span.type(), &count), "MPI_Get_count");
        if (count != span.count()) {
            throw IoError(path(writing_) + ": a " + act + " at byte " + std::to_string(offset) + " moved " +
                          std::to_string(count) + " of " + std::to_string(span.count()) + " items");
        }
    }

    bool writing_ = false;
    bool collective_, split_;
    mpi::File file_;
};

/// pread and pwrite, also past the page cache; their counts are looked at in any case.
class Positioned final : public Blockwise {
public:
    using Blockwise::Blockwise;

    void open(bool writing) override {
        const auto mode = writing ? io::PosixFile::Mode::write : io::PosixFile::Mode::read;
        const std::string name = path(writing);
        mpi::together(comm(), [&] {
            if (place().direct) {
                direct_ = std::make_unique<io::UncachedFile>(name, name, mode, page);
            }
            file_ = std::make_unique<io::PosixFile>(name, name, mode);
        });
    }
    void close() override {
        mpi::together(comm(), [&] {
            if (direct_) {
                direct_->close();
            }
            file_->close();
        });
        direct_.reset();
        file_.reset();
    }

protected:
    void put(std::byte* data, std::int64_t offset) override {
        direct_ ? direct_->write(data, place().bytes, offset) : file_->write(data, place().bytes, offset);
    }
    void get(std::byte* data, std::int64_t offset) override {
        direct_ ? direct_->read(data, place().bytes, offset) : file_->read(data, place().bytes, offset);
    }
    void flush_to_disk() override { file_->flush(); }

private:
    std::unique_ptr<io::PosixFile> file_;
    std::unique_ptr<io::UncachedFile> direct_;
};

class Mapped final : public Blockwise {
public:
    using Blockwise::Blockwise;

    void open(bool writing) override {
        io::Region region;
        region.path = region.name = path(writing);
        region.rows = 1;
        region.columns = place().file_bytes();
        region.dtype = Dtype::uint8;
        mpi::together(comm(), [&] {
            file_ = std::make_unique<io::PosixFile>(region.path, region.path,
                                                    writing ? io::PosixFile::Mode::write : io::PosixFile::Mode::read);
            map_ = io::Mapping(region, writing ? io::Mapping::Access::write : io::Mapping::Access::read);
        });
    }
    void close() override {
        mpi::together(comm(), [&] {
            map_.close();
            file_->close();
        });
        file_.reset();
    }

protected:
    void put(std::byte* data, std::int64_t offset) override {
        std::memcpy(map_.data() + offset, data, static_cast<std::size_t>(place().bytes));
    }
    void get(std::byte* data, std::int64_t offset) override {
        std::memcpy(data, map_.data() + offset, static_cast<std::size_t>(place().bytes));
    }
    void flush_to_disk() override { file_->flush(); }

private:
    io::Mapping map_;
    std::unique_ptr<io::PosixFile> file_;
};

/// One call of a strategy for all blocks, which are then parts of a matrix of bytes that lies in the sample file.
///
///      interleaved   row = block:  [ rank 0 | rank 1 | rank 2 ]     a rank has some columns of every row
///      contiguous    row = rank:   [ block 0 | block 1 | …    ]     a rank has one row
class Wholesale final : public FileWay {
public:
    explicit Wholesale(const WayFields& fields)
        : fields_(fields),
          strategy_(io::make_strategy(io::strategy_named(fields.name), {})) {
        const FilePlace& place = fields.place;
        const bool interleaved = place.layout == FileLayout::interleaved;
        region_.path = region_.name = place.path;
        region_.rows = interleaved ? place.blocks : place.ranks;
        region_.columns = (interleaved ? place.ranks : place.blocks) * place.bytes;
        region_.dtype = Dtype::uint8;
        region_.file_bytes = place.file_bytes();
        data_ = fields.memory.address();
        if (data_ == nullptr) {
            data_ = stage_ = fields.memory.stage(stage_bytes(fields.name, place));
        }
    }

    void open(bool writing) override {
        mpi::together(fields_.context.comm, [&] {
            file_ = std::make_unique<io::PosixFile>(region_.path, region_.name,
                                                    writing ? io::PosixFile::Mode::write : io::PosixFile::Mode::read);
        });
    }

    std::optional<Error> move(bool writing, bool flush) override {
        const io::Transfer transfer{region_, [&](int rank) { return share(fields_.owner(rank, writing)); }, data_};
        Ledger ledger;
        ledger.start(writing ? Phase::output : Phase::input);
        Context context{fields_.context.comm, ledger, 1};
        const std::int64_t bytes = fields_.place.memory_bytes();
        if (!writing) {
            strategy_->read(context, transfer);
        } else {
            if (stage_ != nullptr) {
                mpi::no_return(context.comm, [&] { fields_.memory.to_host(stage_, 0, bytes); });
            }
            strategy_->write(context, transfer);
        }
        try {
            if (!writing && stage_ != nullptr) {
                fields_.memory.from_host(0, stage_, bytes);
            }
            if (flush) {
                file_->flush();
            }
        } catch (...) {
            return error_in_flight();
        }
        return std::nullopt;
    }

    void close() override {
        mpi::together(fields_.context.comm, [&] { file_->close(); });
        file_.reset();
    }

    std::string note() const override {
        return fields_.name + " moves all blocks of a rank in one call, which opens the file too";
    }

private:
    grid::Share share(int owner) const {
        const FilePlace& place = fields_.place;
        if (place.layout == FileLayout::interleaved) {
            return grid::Block{{0, place.blocks}, {owner * place.bytes, (owner + 1) * place.bytes}};
        }
        return grid::Block{{owner, owner + 1}, {0, place.blocks * place.bytes}};
    }

    WayFields fields_;
    std::unique_ptr<io::Strategy> strategy_;
    io::Region region_;
    std::byte* data_ = nullptr;
    std::byte* stage_ = nullptr;
    std::unique_ptr<io::PosixFile> file_;  ///< to flush
};

std::unique_ptr<FileWay> make_blockwise(const WayFields& fields) {
    if (fields.name == "mapped") {
        return std::make_unique<Mapped>(fields);
    }
    if (fields.name == "positioned" || fields.name == "per_rank") {
        return std::make_unique<Positioned>(fields);
    }
    return std::make_unique<ThroughMpi>(fields);
}

struct Ability {
    std::string_view name;
    bool blockwise;  ///< one call a block
    bool alone;      ///< a rank can have a file for itself
    bool direct;     ///< past the page cache
};

/// Those of io, in its order, and one that jobs do not have.
constexpr std::array abilities{
    Ability{"root", false, false, false},
    Ability{"root_collective", false, false, false},
    Ability{"per_rank", true, true, true},
    Ability{"collective", true, false, false},
    Ability{"split_collective", true, false, false},
    Ability{"independent", true, true, false},
    Ability{"shared_pointer", false, false, false},
    Ability{"ordered", false, false, false},
    Ability{"positioned", true, true, true},
    Ability{"sieve", false, false, false},
    Ability{"mapped", true, true, false},
    Ability{"two_phase", false, false, false},
    Ability{"uncached", false, false, true},
    Ability{"gpudirect", true, true, true},
};
static_assert(abilities.size() == io::strategies.size() + 1, "every strategy of io is told what it can");

const Ability& ability(const std::string& name) {
    std::array<std::string_view, abilities.size()> names;
    for (std::size_t i = 0; i < names.size(); ++i) {
        names[i] = abilities[i].name;
    }
    return abilities[index_of(names, name, "I/O strategy")];
}

}  // namespace

std::string refuses(const std::string& name, FileLayout layout, const std::string& cache) {
    const Ability& able = ability(name);
    if (name != "gpudirect" && io::strategies.at(static_cast<std::size_t>(io::strategy_named(name))).only_reads) {
        return name + " only reads, but files are measured both ways";
    }
    if (layout == FileLayout::per_rank && !able.alone) {
        return name +
               " works on one shared file; one file per rank works with per_rank, positioned, independent and "
               "mapped";
    }
    if (name == "per_rank" && layout != FileLayout::per_rank) {
        return "per_rank needs the layout per_rank";
    }
    if (cache == "direct" && !able.direct) {
        return name + " uses the page cache; positioned, per_rank and uncached bypass it";
    }
    return "";
}

bool is_blockwise(const std::string& name) { return ability(name).blockwise; }

std::int64_t stage_bytes(const std::string& name, const FilePlace& place) {
    if (name == "gpudirect") {
        return 0;
    }
    return is_blockwise(name) ? place.bytes + page : place.memory_bytes();
}

std::unique_ptr<FileWay> make_way(const WayFields& fields) {
    if (fields.name == "gpudirect") {
        return make_gpudirect(fields);
    }
    return is_blockwise(fields.name) ? make_blockwise(fields) : std::make_unique<Wholesale>(fields);
}

}  // namespace tilewise::measure
