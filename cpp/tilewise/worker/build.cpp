// The version as one text in the program, where `what` and `strings` find it.
#include "tilewise/worker/build.hpp"

namespace tilewise::worker {
namespace {

// Read when the program runs, and not copied into the code that uses it.
const volatile char marked[] = "@(#)tilewise-worker " TILEWISE_VERSION;
constexpr std::size_t mark = sizeof "@(#)tilewise-worker " - 1;

}  // namespace

std::string build_version() {
    std::string version;
    for (std::size_t i = mark; marked[i] != '\0'; ++i) {
        version += marked[i];
    }
    return version;
}

std::string build_compiler() { return TILEWISE_COMPILER; }

}  // namespace tilewise::worker
