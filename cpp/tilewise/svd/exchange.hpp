// The ways in which column blocks travel to a neighbour: what goes where is said once, by grid/ring.hpp, and each family of ways has a file of its own.
#pragma once

#include <array>
#include <memory>
#include <string_view>
#include <vector>

#include "tilewise/grid/ring.hpp"
#include "tilewise/mpi/context.hpp"

namespace tilewise::svd {

enum class ExchangeKind { none, blocking, nonblocking, overlap, one_sided_lock };
inline constexpr std::array<std::string_view, 5> exchange_names{"none", "blocking", "nonblocking", "overlap",
                                                                "one_sided_lock"};
/// Throws UsageError for an unknown name.
ExchangeKind exchange_named(std::string_view name);

/// One block on its way. `side` is where it arrives, and tells the two blocks apart that may come from one neighbour.
struct Parcel {
    int peer = 0;
    grid::Side side = grid::Side::top;
    double* data = nullptr;
    std::int64_t count = 0;  ///< numbers; 0 is a block without columns, which is sent all the same
};

using Parcels = std::vector<Parcel>;

/// Moves the blocks of one step after the other; in a step at most one block arrives on each side. A failure of one rank leaves others waiting: call it
/// where that aborts the job.
class Exchange {
public:
    explicit Exchange(Context& context) : context_(context) {}
    Exchange(const Exchange&) = delete;
    Exchange& operator=(const Exchange&) = delete;
    virtual ~Exchange() = default;

    /// Begins to move; what is sent and where it arrives must stay untouched until finish().
    void begin(Parcels out, Parcels in);
    /// Lets messages move that fly while this rank computes.
    virtual void progress() {}
    /// All blocks of the step have arrived, and those sent may be written over.
    virtual void finish() = 0;

protected:
    virtual void start() {}
    MPI_Comm comm() const { return context_.comm.get(); }

    Context& context_;
    Parcels out_, in_;
};

/// `largest`: numbers of the largest block that may arrive. @note Collective; throws the same Error on every rank.
std::unique_ptr<Exchange> make_exchange(ExchangeKind kind, Context& context, std::int64_t largest);

std::unique_ptr<Exchange> make_two_sided(ExchangeKind kind, Context& context);
std::unique_ptr<Exchange> make_one_sided(Context& context, std::int64_t largest);

}  // namespace tilewise::svd
