// One call a block between a file and memory of a device, by GPUDirect Storage: nothing of jobs, only of measurements.
#include "tilewise/device/storage.hpp"
#include "tilewise/measure/file_way.hpp"
#include "tilewise/mpi/sum.hpp"
#include "tilewise/mpi/together.hpp"

namespace tilewise::measure {
namespace {

class GpuDirect final : public FileWay {
public:
    explicit GpuDirect(const WayFields& fields)
        : fields_(fields),
          storage_(fields.memory.device_address(), fields.place.memory_bytes()) {}

    void open(bool writing) override {
        const std::string path = fields_.place.path_of(fields_.owner(writing));
        mpi::together(fields_.context.comm, [&] { file_.emplace(storage_, path, writing); });
    }

    std::optional<Error> move(bool writing, bool flush) override {
        const FilePlace& place = fields_.place;
        const int owner = fields_.owner(writing);
        try {
            for (std::int64_t block = 0; block < place.blocks; ++block) {
                const std::int64_t slot = place.slot(owner, block), offset = place.offset(owner, block);
                writing ? file_->write(slot, place.bytes, offset) : file_->read(slot, place.bytes, offset);
            }
            if (flush) {
                file_->flush();
            }
        } catch (...) {
            return error_in_flight();
        }
        return std::nullopt;
    }

    void close() override { file_.reset(); }

    std::string note() const override { return storage_.note(); }

private:
    WayFields fields_;
    device::Storage storage_;
    std::optional<device::StorageFile> file_;
};

}  // namespace

std::unique_ptr<FileWay> make_gpudirect(const WayFields& fields) { return std::make_unique<GpuDirect>(fields); }

std::string refuses_gpudirect(const mpi::Communicator& comm, const std::string& buffer, const std::string& cache) {
    if (buffer != "device") {
        return "gpudirect moves blocks between files and memory of a device: --buffer device";
    }
    if (cache != "direct") {
        return "gpudirect goes past the page cache: --cache direct";
    }
    const std::string own = device::lacks_storage();
    const bool lacking = mpi::any_of(comm, !own.empty());
    const std::string there = own.empty() ? "not on every node" : own;
    return lacking ? "GPUDirect Storage is missing: " + there : "";
}

}  // namespace tilewise::measure
