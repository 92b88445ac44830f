// Writes events past the C library's buffers, so that the last words of a dying rank are not lost in one.
#include "tilewise/worker/events.hpp"

#include <cerrno>
#include <string>
#include <unistd.h>

namespace tilewise::worker {

void emit(const nlohmann::json& event) {
    std::string line(1, '\x1e');
    line += event.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
    line += '\n';
    for (std::size_t at = 0; at < line.size();) {
        const ssize_t put = write(STDOUT_FILENO, line.data() + at, line.size() - at);
        if (put < 0 && errno != EINTR) {
            return;  // nobody listens any more; the job goes on or is about to be ended from outside
        }
        at += put > 0 ? static_cast<std::size_t>(put) : 0;
    }
}

void emit_error(const Error& error, int rank, bool aborts) {
    emit({{"event", "error"},
          {"kind", name_of(error.kind())},
          {"message", error.what()},
          {"rank", rank},
          {"aborts", aborts}});
}

void ProgressMeter::operator()(Phase phase, double done) {
    const auto now = std::chrono::steady_clock::now();
    if (phase == phase_ && now - last_ < std::chrono::milliseconds(100)) {
        return;
    }
    last_ = now;
    phase_ = phase;
    emit({{"event", "progress"}, {"phase", phase_names[static_cast<std::size_t>(phase)]}, {"done", done}});
}

}  // namespace tilewise::worker
