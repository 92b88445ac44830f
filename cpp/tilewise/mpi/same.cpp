// Every rank compares what it has with what rank 0 sends round.
#include "tilewise/mpi/same.hpp"

#include <algorithm>
#include <array>

#include "tilewise/base/host.hpp"
#include "tilewise/mpi/sum.hpp"
#include "tilewise/mpi/together.hpp"

namespace tilewise::mpi {
namespace {

/// A text of a length that all versions agree on.
struct Text {
    std::array<char, 128> bytes{};

    explicit Text(const std::string& text) {
        std::copy_n(text.begin(), std::min(text.size(), bytes.size() - 1), bytes.begin());
    }
    std::string text() const { return bytes.data(); }
};

}  // namespace

void require_same(const Communicator& comm, const std::string& what, const std::string& version,
                  const std::string& advice) {
    if (comm.size() == 1) {
        return;
    }
    struct Told {
        Text version, host;
    };
    const Told first = of_root(comm, Told{Text(version), Text(host_name())});
    together(comm, [&] {
        if (first.version.text() != Text(version).text()) {
            throw UsageError(what + " on " + host_name() + " is of version " + version + ", that on " +
                                 first.host.text() + " of version " + first.version.text(),
                             -1, 0, advice);
        }
    });
}

bool is_same(const Communicator& comm, const std::string& text) {
    const Text mine(text);
    return !any_of(comm, of_root(comm, mine).text() != mine.text());
}

}  // namespace tilewise::mpi
