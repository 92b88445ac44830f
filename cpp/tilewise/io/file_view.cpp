// Opens views step by step, each agreed on, and judges what the library says it moved.
#include "tilewise/io/file_view.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <limits>
#include <sys/statvfs.h>

#include "tilewise/base/work.hpp"
#include "tilewise/io/samples.hpp"

namespace tilewise::io {

using mpi::check;

namespace {

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

FileView::FileView(Context& context, const Transfer& transfer, int mode, const Hints& hints)
    : context_(context),
      transfer_(transfer),
      reads_(mode == MPI_MODE_RDONLY),
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
        check(MPI_File_open(context.comm.get(), transfer.region.path.c_str(), mode, info_.get(), file_.out()),
              "MPI_File_open");
    });
    step([&] {
        view_ = mpi::share_of_matrix(transfer.rows(), transfer.columns(), share_, item_);
        check(MPI_File_set_view(file_.get(), transfer.region.offset, item_, view_.get(), "native", info_.get()),
              "MPI_File_set_view");
    });
}

void FileView::close() {
    mpi::together(context_.comm, [&] {  // not a step: what is closed cannot be closed again
        MPI_File file = file_.release();
        errno = 0;
        try {
            check(MPI_File_close(&file), "MPI_File_close");
        } catch (const Error& error) {
            rethrow_named(error, errno);
        }
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

void FileView::rethrow_named(const Error& error, int seen) const {
    std::string text = error.what();
    int number = error.error_number();
    if (number == 0 && error.kind() == ErrorKind::mpi) {
        number = is_of_a_file(seen) ? seen : !reads_ && is_full(transfer_.region.path) ? ENOSPC : 0;
    }
    if (number != 0) {  // the library's words may be about something else by now
        text = text.substr(0, text.find(" failed: ")) + " failed: " + system_reason(number);
    }
    throw IoError(transfer_.region.name + ": " + text, error.rank(), number);
}

namespace {

std::int64_t run(Context& context, const Transfer& transfer, const Hints& hints, int mode, const char* name,
                 ViewCall call) {
    const Timed timed(context.ledger, context.ledger.phase(), Step::file,
                      std::string(name) + " " + transfer.region.name);
    FileView view(context, transfer, mode, hints);
    const std::int64_t size = view.share().size();
    view.move(0, size, name, [&](std::byte* data, const mpi::Span& span, MPI_Status* status) {
        return call(view.get(), data, span.count(), span.type(), status);
    });
    view.close();
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
