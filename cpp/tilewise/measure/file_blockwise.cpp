// One call a block: MPI-IO's with explicit offsets, pread and pwrite, O_DIRECT, and copies into and out of a mapping.
#include <cstring>
#include <vector>

#include "tilewise/io/mapped.hpp"
#include "tilewise/io/uncached.hpp"
#include "tilewise/measure/file_way.hpp"
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

}  // namespace

std::unique_ptr<FileWay> make_blockwise(const WayFields& fields) {
    if (fields.name == "mapped") {
        return std::make_unique<Mapped>(fields);
    }
    if (fields.name == "positioned" || fields.name == "per_rank") {
        return std::make_unique<Positioned>(fields);
    }
    return std::make_unique<ThroughMpi>(fields);
}

}  // namespace tilewise::measure
