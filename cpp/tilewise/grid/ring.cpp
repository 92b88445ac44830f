// All seats but the first top form one cycle: tops from left to right, then bottoms from right to left.
#include "tilewise/grid/ring.hpp"

namespace tilewise::grid {
namespace {

constexpr Seat fixed{0, Side::top};

}  // namespace

int Ring::place(Seat seat) const {
    return seat.side == Side::top ? seat.position - 1 : 2 * positions() - 2 - seat.position;
}

Seat Ring::seat(int place) const {
    return place < positions() - 1 ? Seat{place + 1, Side::top} : Seat{2 * positions() - 2 - place, Side::bottom};
}

Seat Ring::next(Seat from) const { return from == fixed ? fixed : seat((place(from) + 1) % cycle()); }

Seat Ring::before(Seat to) const { return to == fixed ? fixed : seat((place(to) + cycle() - 1) % cycle()); }

int Ring::block_at(Seat there, int step) const {
    if (there == fixed) {
        return 0;
    }
    const int turns = step % cycle();
    const Seat first = seat((place(there) + cycle() - turns) % cycle());
    return 2 * first.position + (first.side == Side::bottom ? 1 : 0);
}

}  // namespace tilewise::grid
