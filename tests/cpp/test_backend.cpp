// Tests of the table of backends: its names, what is refused, and that TILEWISE_KERNELS forces one.
#include <cstdlib>
#include <doctest/doctest.h>
#include <set>
#include <string>

#include "tilewise/base/error.hpp"
#include "tilewise/kernel/isa/backend.hpp"

using namespace tilewise;
using namespace tilewise::kernel;

TEST_CASE("every backend has a name of its own, and the last is supported everywhere") {
    std::set<std::string_view> names;
    for (const KnownBackend& row : backends()) {
        names.insert(row.set.name);
    }
    CHECK(names.size() == backends().size());
    CHECK(backends().back().supported());
    CHECK(backends().back().set.name == "baseline");
}

TEST_CASE("the backend in use is the one that is forced, else the first that is supported") {
    const char* forced = std::getenv("TILEWISE_KERNELS");
    const Backend* best = nullptr;
    for (const KnownBackend& row : backends()) {
        best = best == nullptr && row.supported() ? &row.set : best;
    }
    REQUIRE(best != nullptr);
    CHECK(backend().name == (forced != nullptr ? std::string_view(forced) : best->name));
    CHECK(&backend_named(best->name) == best);
}

TEST_CASE("an unknown backend is refused with those that there are") {
    std::string said;
    try {
        backend_named("mmx");
    } catch (const UsageError& error) {
        said = error.what();
    }
    CHECK(said.find("'mmx'") != std::string::npos);
    CHECK(said.find("baseline") != std::string::npos);
}
