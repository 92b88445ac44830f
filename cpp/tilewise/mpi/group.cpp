// Makes a group out of the communicator's own, which is freed at once.
#include "tilewise/mpi/group.hpp"

namespace tilewise::mpi {

Group::Group(MPI_Comm comm, const std::vector<int>& ranks) {
    MPI_Group all = MPI_GROUP_NULL;
    check(MPI_Comm_group(comm, &all), "MPI_Comm_group");
    check(MPI_Group_incl(all, static_cast<int>(ranks.size()), ranks.data(), &group_), "MPI_Group_incl");
    check(MPI_Group_free(&all), "MPI_Group_free");
}

Group::~Group() {
    if (group_ != MPI_GROUP_NULL && group_ != MPI_GROUP_EMPTY && !must_not_free()) {
        MPI_Group_free(&group_);
    }
}

}  // namespace tilewise::mpi
