// What the logs of a journal say by now, for ranks that go on without a new start of the job by its front.
#pragma once

#include <string>
#include <vector>

#include "tilewise/io/pieces.hpp"

namespace tilewise::io {

struct Logged {
    int starts = 0;                ///< how many there were, as far as a log tells
    std::vector<Standing> pieces;  ///< first start first, without lines that are torn or spoilt
};

/// Reads all logs in `folder`, as the front does (`tilewise.base.journal`). Throws IoError. Not collective.
Logged read_logs(const std::string& folder);

}  // namespace tilewise::io
