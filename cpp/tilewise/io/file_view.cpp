// Opens views step by step, each agreed on, and judges what the library says it moved.
#include "tilewise/io/file_view.hpp"

#include <limits>

#include "tilewise/mpi/datatype.hpp"

namespace tilewise::io {

using mpi::check;

FileView::FileView(Context& context, const Transfer& transfer, int mode, const Hints& hints)
    : context_(context),
      name_(transfer.region.name),
      share_(transfer.share_of(context.comm.rank())),
      item_(mpi::type_of(transfer.region.dtype)) {
    step([&] {
        check(MPI_Info_create(info_.out()), "MPI_Info_create");
        for (const auto& [key, value] : hints) {
            check(MPI_Info_set(info_.get(), key.c_str(), value.c_str()), "MPI_Info_set");
        }
    });
    step([&] {
        check(MPI_File_open(context.comm.get(), transfer.region.path.c_str(), mode, info_.get(), file_.out()),
              "MPI_File_open");
    });
    step([&] {
        view_ = mpi::share_of_matrix(transfer.rows(), transfer.columns(), share_, item_);
        check(MPI_File_set_view(file_.get(), transfer.region.offset, item_, view_.get(), "native", info_.get()),
              "MPI_File_set_view");
    });
}

void FileView::require_moved(MPI_Status status, std::int64_t expected, const char* call) const {
    MPI_Count moved = 0;
    check(MPI_Get_elements_x(&status, item_, &moved), "MPI_Get_elements_x");
    int item_bytes = 0;
    check(MPI_Type_size(item_, &item_bytes), "MPI_Type_size");
    // Some libraries count only what fits 31 bits, or nothing for an empty block: a short count is an error only where it can be trusted.
    if (moved != MPI_UNDEFINED && moved < expected && expected * item_bytes < std::numeric_limits<int>::max()) {
        throw IoError(std::string(call) + " moved " + std::to_string(moved) + " of " + std::to_string(expected) +
                      " numbers");
    }
}

void FileView::rethrow_named(const Error& error) const { throw IoError(name_ + ": " + error.what()); }

namespace {

std::int64_t run(Context& context, const Transfer& transfer, const Hints& hints, int mode, const char* name,
                 ViewCall call) {
    const Timed timed(context.ledger, context.ledger.phase(), Step::file,
                      std::string(name) + " " + transfer.region.name);
    const FileView view(context, transfer, mode, hints);
    const std::int64_t size = view.share().size();
    view.step([&] {
        const mpi::Span span(size, view.item());
        MPI_Status status{};
        check(call(view.get(), transfer.data, span.count(), span.type(), &status), name);
        view.require_moved(status, size, name);
    });
    context.ledger.count().io_calls += 1;
    return size * transfer.item();
}

}  // namespace

void read_through_view(Context& context, const Transfer& transfer, const Hints& hints, const char* name,
                       ViewCall call) {
    const std::int64_t bytes = run(context, transfer, hints, MPI_MODE_RDONLY, name, call);
    context.ledger.count().read += bytes;
    context.ledger.count().useful += bytes;
}

void write_through_view(Context& context, const Transfer& transfer, const Hints& hints, const char* name,
                        ViewCall call) {
    context.ledger.count().written += run(context, transfer, hints, MPI_MODE_RDWR, name, call);
}

}  // namespace tilewise::io
