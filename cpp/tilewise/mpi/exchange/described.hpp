// Requests that are described once and started again and again: made in their sequence, freed with their owner.
#pragma once

#include <vector>

#include "tilewise/mpi/handle.hpp"

namespace tilewise::mpi {

class DescribedRequests {
public:
    explicit DescribedRequests(std::size_t sets) : requests_(sets) {}
    DescribedRequests(const DescribedRequests&) = delete;
    DescribedRequests& operator=(const DescribedRequests&) = delete;
    ~DescribedRequests() {
        for (auto& requests : requests_) {
            for (MPI_Request& request : requests) {
                if (request != MPI_REQUEST_NULL && !must_not_free()) {
                    MPI_Request_free(&request);
                }
            }
        }
    }

    /// Where the call that describes the next message of a set puts its request.
    MPI_Request* next(std::size_t set) { return &requests_[set].emplace_back(MPI_REQUEST_NULL); }
    std::vector<MPI_Request>& operator[](std::size_t set) { return requests_[set]; }

private:
    std::vector<std::vector<MPI_Request>> requests_;
};

}  // namespace tilewise::mpi
