// The kinds of points, one function each, and the table that leads to them.
// Design: docs/design/measuring.md
#pragma once

#include <array>
#include <string_view>

#include "tilewise/measure/clock.hpp"
#include "tilewise/measure/point.hpp"
#include "tilewise/mpi/context.hpp"

namespace tilewise::measure {

/// Each measures one point on all ranks of `context.comm`; throws UsageError on every rank for a point that makes no
/// sense. `clock` is what reading the clock costs, to be subtracted. @note Collective.
Measurement ping(Context& context, const Point& point, const Stop& stop, const Clock& clock);
Measurement collective(Context& context, const Point& point, const Stop& stop, const Clock& clock);
Measurement file(Context& context, const Point& point, const Stop& stop, const Clock& clock);
Measurement memory(Context& context, const Point& point, const Stop& stop, const Clock& clock);
Measurement compute(Context& context, const Point& point, const Stop& stop, const Clock& clock);

struct KindEntry {
    std::string_view name;
    Measurement (*measure)(Context&, const Point&, const Stop&, const Clock&);
};

inline constexpr std::array kinds{
    KindEntry{"ping", ping},     KindEntry{"collective", collective}, KindEntry{"file", file},
    KindEntry{"memory", memory}, KindEntry{"compute", compute},
};

}  // namespace tilewise::measure
