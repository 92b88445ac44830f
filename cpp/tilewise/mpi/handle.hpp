// Owners of MPI's handles: each frees what it holds, unless MPI is gone or the job is about to be aborted.
#pragma once

#include <utility>

#include "tilewise/mpi/mpi.hpp"

namespace tilewise::mpi {

/// True once MPI is finalized, or while an exception is passing. Freeing a window or a file is collective: if only this rank failed, the
/// others would be waited for, for ever, on the way to the abort; if all failed alike, MPI_Finalize clears up.
bool must_not_free();

/// Move-only owner. Traits name the type, the null value and the function that frees it.
template <class Traits> class Handle {
public:
    using Raw = typename Traits::Raw;

    Handle() = default;
    explicit Handle(Raw raw) : raw_(raw) {}
    Handle(Handle&& other) noexcept : raw_(std::exchange(other.raw_, Traits::null())) {}
    Handle& operator=(Handle&& other) noexcept {
        std::swap(raw_, other.raw_);
        return *this;
    }
    ~Handle() { reset(); }

    Raw get() const { return raw_; }
    /// For calls that return the handle by address. Frees what was held.
    Raw* out() {
        reset();
        return &raw_;
    }
    /// Hands the handle over to whoever frees it with a look at the code that freeing returns.
    Raw release() { return std::exchange(raw_, Traits::null()); }
    explicit operator bool() const { return raw_ != Traits::null(); }

    void reset() {
        if (raw_ != Traits::null() && !must_not_free()) {
            Traits::release(&raw_);
        }
        raw_ = Traits::null();
    }

private:
    Raw raw_ = Traits::null();
};

struct DatatypeTraits {
    using Raw = MPI_Datatype;
    static Raw null() { return MPI_DATATYPE_NULL; }
    static void release(Raw* raw) { MPI_Type_free(raw); }
};
struct CommTraits {
    using Raw = MPI_Comm;
    static Raw null() { return MPI_COMM_NULL; }
    static void release(Raw* raw) { MPI_Comm_free(raw); }
};
struct InfoTraits {
    using Raw = MPI_Info;
    static Raw null() { return MPI_INFO_NULL; }
    static void release(Raw* raw) { MPI_Info_free(raw); }
};
struct WindowTraits {
    using Raw = MPI_Win;
    static Raw null() { return MPI_WIN_NULL; }
    static void release(Raw* raw) { MPI_Win_free(raw); }
};
struct FileTraits {
    using Raw = MPI_File;
    static Raw null() { return MPI_FILE_NULL; }
    static void release(Raw* raw) { MPI_File_close(raw); }
};

using Datatype = Handle<DatatypeTraits>;
using Comm = Handle<CommTraits>;
using Info = Handle<InfoTraits>;
using Window = Handle<WindowTraits>;
using File = Handle<FileTraits>;

}  // namespace tilewise::mpi
