// Owners of MPI's handles: each frees what it holds, unless MPI is gone or other ranks would not free theirs.
#pragma once

#include <exception>
#include <utility>

#include "tilewise/mpi/mpi.hpp"

namespace tilewise::mpi {

inline constexpr int some_ranks = -1;
/// True once MPI is finalized, and while an exception is passing that fewer ranks throw alike than freeing waits for:
/// of windows and files it is collective, and ranks that know of no error would be waited for, for ever.
bool must_not_free(int waits_for = some_ranks);

/// Move-only owner. Traits name the type, the null value, the function that frees it, and for how many ranks that
/// waits.
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
        // MPI is asked only while an exception passes: it may be finalized.
        if (raw_ != Traits::null() &&
            !must_not_free(std::uncaught_exceptions() > 0 ? Traits::waits_for(raw_) : some_ranks)) {
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
    static int waits_for(Raw) { return 0; }
    static void release(Raw* raw) { MPI_Type_free(raw); }
};
struct CommTraits {
    using Raw = MPI_Comm;
    static Raw null() { return MPI_COMM_NULL; }
    static int waits_for(Raw raw) {
        int size = 0;
        MPI_Comm_size(raw, &size);
        return size;
    }
    static void release(Raw* raw) { MPI_Comm_free(raw); }
};
struct InfoTraits {
    using Raw = MPI_Info;
    static Raw null() { return MPI_INFO_NULL; }
    static int waits_for(Raw) { return 0; }
    static void release(Raw* raw) { MPI_Info_free(raw); }
};
/// The ranks that a window or a file belongs to.
template <class Raw, class GetGroup> int ranks_of(Raw raw, GetGroup get_group) {
    MPI_Group group = MPI_GROUP_NULL;
    int size = 0;
    get_group(raw, &group);
    MPI_Group_size(group, &size);
    MPI_Group_free(&group);
    return size;
}
struct WindowTraits {
    using Raw = MPI_Win;
    static Raw null() { return MPI_WIN_NULL; }
    static int waits_for(Raw raw) { return ranks_of(raw, MPI_Win_get_group); }
    static void release(Raw* raw) { MPI_Win_free(raw); }
};
struct FileTraits {
    using Raw = MPI_File;
    static Raw null() { return MPI_FILE_NULL; }
    static int waits_for(Raw raw) { return ranks_of(raw, MPI_File_get_group); }
    static void release(Raw* raw) { MPI_File_close(raw); }
};

using Datatype = Handle<DatatypeTraits>;
using Comm = Handle<CommTraits>;
using Info = Handle<InfoTraits>;
using Window = Handle<WindowTraits>;
using File = Handle<FileTraits>;

}  // namespace tilewise::mpi
