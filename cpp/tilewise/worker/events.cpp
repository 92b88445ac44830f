// Numbers and texts are written by nlohmann's library, and put together here: an event may be large, and no tree of it
// is kept.
// Writes events past the C library's buffers, so that the last words of a dying rank are not lost in one.
#include "tilewise/worker/events.hpp"

#include <cerrno>
#include <unistd.h>
#include <utility>

#include <nlohmann/json.hpp>

namespace tilewise::worker {
Json::Json(double value) : text_(nlohmann::json(value).dump()) {}

Json::Json(std::string_view value)
    : text_(nlohmann::json(value).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace)) {}

Json::Json(std::initializer_list<Member> members) : text_("{}") {
    for (const Member& member : members) {
        add(member.key, member.value);
    }
}

Json Json::written(std::string text) {
    Json json;
    json.text_ = std::move(text);
    return json;
}

void Json::add(std::string_view key, const Json& value) {
    text_.pop_back();
    append(key);
    text_ += ':';
    text_ += value.text_;
    text_ += '}';
}

void Json::append(const Json& value) {
    if (text_.size() > 1) {
        text_ += ',';
    }
    text_ += value.text_;
}

void emit(const Json& event) {
    const std::string line = '\x1e' + event.text() + '\n';
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
          {"errno", error.error_number()},
          {"advice", error.advice()},
          {"aborts", aborts}});
}

void ProgressMeter::operator()(Phase phase, double done) {
    const auto now = std::chrono::steady_clock::now();
    const auto index = static_cast<std::size_t>(phase);
    done_[index] = done;
    if (std::exchange(seen_[index], true) && now - last_ < std::chrono::milliseconds(100)) {
        return;
    }
    last_ = now;
    emit({{"event", "progress"}, {"phase", phase_names[index]}, {"done", done}});
}

}  // namespace tilewise::worker
