// Strategy `split_collective`: the collective calls cut in two, begin and end, slab after slab.
//
//        begin slab 0, end 0 │ begin 1, end 1 │ …      slab: an equal part of each rank's share
//
// Nothing is done between begin and end: ROMIO moves everything in begin, so nothing would overlap. It is here to be
// compared with `collective`.
#include <algorithm>
#include <utility>

#include "tilewise/io/file_view.hpp"
#include "tilewise/mpi/datatype.hpp"

namespace tilewise::io {
namespace {

using mpi::check;

constexpr int slabs = 8;

class SplitCollective final : public Strategy {
public:
    explicit SplitCollective(Hints hints) : hints_(std::move(hints)) {}

    void read(Context& context, const Transfer& transfer) const override {
        const std::int64_t bytes = run(
            context, transfer, MPI_MODE_RDONLY, "MPI_File_read_all_begin",
            [](MPI_File file, std::byte* data, const mpi::Span& span) {
                return MPI_File_read_all_begin(file, data, span.count(), span.type());
            },
            MPI_File_read_all_end);
        context.ledger.count().read += bytes;
        context.ledger.count().useful += bytes;
    }

    void write(Context& context, const Transfer& transfer) const override {
        context.ledger.count().written += run(
            context, transfer, MPI_MODE_RDWR, "MPI_File_write_all_begin",
            [](MPI_File file, const std::byte* data, const mpi::Span& span) {
                return MPI_File_write_all_begin(file, data, span.count(), span.type());
            },
            [](MPI_File file, void* data, MPI_Status* status) { return MPI_File_write_all_end(file, data, status); });
    }

private:
    template <class Begin, class End>
    std::int64_t run(Context& context, const Transfer& transfer, int mode, const char* name, Begin begin,
                     End end) const {
        const Timed timed(context.ledger, context.ledger.phase(), Step::file,
                          std::string(name) + " " + transfer.region.name);
        FileView view(context, transfer, mode, hints_);
        const std::int64_t size = view.share().size();
        for (int slab = 0; slab < slabs; ++slab) {
            const std::int64_t from = size * slab / slabs, to = size * (slab + 1) / slabs;
            view.move(from, to, name, [&](std::byte* data, const mpi::Span& span, MPI_Status* status) {
                const int begun = begin(view.get(), data, span);
                const int ended = end(view.get(), data, status);  // also after a failure: only one may be open
                return begun != MPI_SUCCESS ? begun : ended;
            });
            context.ledger.count().io_calls += 1;
            context.report(context.ledger.phase(), static_cast<double>(slab + 1) / slabs);
        }
        view.close();
        return size * transfer.item();
    }

    Hints hints_;
};

}  // namespace

std::unique_ptr<Strategy> make_split_collective(const Hints& hints) { return std::make_unique<SplitCollective>(hints); }

}  // namespace tilewise::io
