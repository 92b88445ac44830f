// The ways to decompose, in one table: one line here is one algorithm more.
#pragma once

#include "tilewise/svd/jacobi.hpp"
#include "tilewise/svd/randomized.hpp"
#include "tilewise/svd/tall.hpp"

namespace tilewise::svd {

/// What every one of them would refuse is refused before.
struct Algorithm {
    std::string_view name;
    Outcome (*run)(Context& context, const io::Region& a, const Files& files, Dtype dtype, const Options& options);
};

/// In the order of AlgorithmKind.
inline constexpr std::array algorithms{
    Algorithm{"jacobi", jacobi},   Algorithm{"randomized", randomized}, Algorithm{"local", local},
    Algorithm{"two_stage", local}, Algorithm{"serial", jacobi},         Algorithm{"tall", tall},
};

}  // namespace tilewise::svd
