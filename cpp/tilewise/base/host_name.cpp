// Asks the system for this machine's name.
#include <array>
#include <unistd.h>

#include "tilewise/base/host.hpp"

namespace tilewise {

std::string host_name() {
    std::array<char, 256> name{};
    gethostname(name.data(), name.size() - 1);
    return name.data();
}

}  // namespace tilewise
