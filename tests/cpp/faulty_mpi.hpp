// MPI calls that fail or answer otherwise on purpose, while an object of this file lives: what no test can wait for.
#pragma once

namespace tilewise::test {

/// On the rank that makes it. Nested ones are not needed, and not possible.
struct FaultyMpi {
    bool reads_nothing =
        false;  ///< MPI_File_read, …_all, …_all_begin, …_shared and …_ordered say that they have read, and have not
    bool close_fails = false;      ///< MPI_File_close closes, and then says MPI_ERR_NO_SPACE
    bool no_windows = false;       ///< MPI_Win_allocate makes none, on any rank that has such an object
    bool everybody_alone = false;  ///< MPI_Comm_split_type by shared memory: each rank is a node

    FaultyMpi();
    FaultyMpi(const FaultyMpi&) = delete;
    FaultyMpi& operator=(const FaultyMpi&) = delete;
    ~FaultyMpi();
};

/// What MPI has made on this rank and has not been told to free. Types cannot be counted: the library frees its own by
/// the same call.
struct Held {
    int windows = 0, files = 0, communicators = 0;
};
Held held_now();

}  // namespace tilewise::test
