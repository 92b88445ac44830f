// Messages that all fly at once: what posts them is a detail, and other mechanisms post them in their own way.
#pragma once

#include "tilewise/mpi/exchange/exchange.hpp"

namespace tilewise::mpi {

class Nonblocking : public Exchange {
public:
    /// `early`: a message leaves as soon as it is ready, and one that came is delivered before others are there.
    Nonblocking(const Setting& setting, bool early) : Exchange(setting, Memory::own), early_(early) {}

    void ready(std::size_t index) override;
    void progress() override;

protected:
    void post() override;
    void move(const Arrived& arrived) override;

    /// Lets the receive, or the message, with this index begin; `request` is that of the last set's, or null.
    virtual void begin_receive(std::size_t index, MPI_Request& request) { receive(in()[index], &request); }
    virtual void begin_send(std::size_t index, MPI_Request& request) { send(out()[index], &request); }
    /// Receives, then messages that are sent.
    virtual std::vector<MPI_Request>& requests() { return requests_; }

private:
    void note_arrivals(int count);

    bool early_;
    std::vector<MPI_Request> requests_;
    std::vector<int> done_;
    std::vector<std::size_t> arrivals_;
};

}  // namespace tilewise::mpi
