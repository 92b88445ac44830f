// One call of a strategy for all blocks, which are then parts of a matrix of bytes that lies in the sample file.
//
//      interleaved   row = block:  [ rank 0 | rank 1 | rank 2 ]     a rank has some columns of every row
//      contiguous    row = rank:   [ block 0 | block 1 | …    ]     a rank has one row
#include "tilewise/io/file.hpp"
#include "tilewise/io/strategy.hpp"
#include "tilewise/measure/file_way.hpp"
#include "tilewise/mpi/together.hpp"

namespace tilewise::measure {
namespace {

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

}  // namespace

std::unique_ptr<FileWay> make_wholesale(const WayFields& fields) { return std::make_unique<Wholesale>(fields); }

}  // namespace tilewise::measure
