// Looks algorithms up by name.
#include "tilewise/multiply/algorithms.hpp"

#include "tilewise/base/names.hpp"

namespace tilewise::multiply {

static_assert(algorithms[static_cast<std::size_t>(AlgorithmKind::replicated)].name == "replicated");

AlgorithmKind algorithm_named(std::string_view name) {
    return enum_named<AlgorithmKind>(algorithms, name, "algorithm");
}

}  // namespace tilewise::multiply
