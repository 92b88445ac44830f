// `local`: one rank has all of A, B and C; its threads share C. Nothing travels.
#include <algorithm>

#include "tilewise/multiply/algorithms.hpp"

namespace tilewise::multiply {

std::optional<std::string> Local::refuses(const Arrangement& arrangement) {
    if (arrangement.ranks != 1) {
        return "local runs on one rank, not on " + std::to_string(arrangement.ranks) + "; summa takes any number";
    }
    return std::nullopt;
}

grid::Layout Local::layout(const Arrangement& arrangement) {
    return {arrangement.shape,
            {1, 1},
            1,
            grid::summa,
            arrangement.remainder,
            std::max<std::int64_t>(arrangement.shape.k, 1)};
}

}  // namespace tilewise::multiply
