// Numbers in the fewest digits that give them back; text with its quotes, escapes and replaced bytes.
// Writes events past the C library's buffers, so that the last words of a dying rank are not lost in one.
#include "tilewise/worker/events.hpp"

#include <array>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <string>
#include <unistd.h>
#include <utility>

namespace tilewise::worker {
namespace {

/// Bytes of the UTF-8 character that `text` begins with; 0: there is none.
std::size_t utf8_length(std::string_view text) {
    const auto byte = [&](std::size_t i) { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0U; };
    const unsigned first = byte(0);
    const std::size_t length = first < 0x80   ? 1
                               : first < 0xC2 ? 0
                               : first < 0xE0 ? 2
                               : first < 0xF0 ? 3
                               : first < 0xF5 ? 4
                                              : 0;
    for (std::size_t i = 1; i < length; ++i) {
        // Of two ways to write a character only the shorter is one, and neither are halves of pairs nor what lies
        // beyond.
        const unsigned least = i > 1 ? 0x80 : first == 0xE0 ? 0xA0 : first == 0xF0 ? 0x90 : 0x80;
        const unsigned most = i > 1 ? 0xBF : first == 0xED ? 0x9F : first == 0xF4 ? 0x8F : 0xBF;
        if (byte(i) < least || byte(i) > most) {
            return 0;
        }
    }
    return length;
}

}  // namespace

Json::Json(double value) : text_("null") {
    if (std::isfinite(value)) {
        std::array<char, 32> digits{};
        const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), value).ptr;
        text_.assign(digits.data(), end);
        if (text_.find_first_of(".e") == std::string::npos) {
            text_ += ".0";  // a number with a fraction, whatever it is, to whoever tells them apart
        }
    }
}

Json::Json(std::string_view value) : text_("\"") {
    while (!value.empty()) {
        const std::size_t length = utf8_length(value);
        const char first = value.front();
        if (length == 0) {
            text_ += "\xEF\xBF\xBD";
        } else if (first == '"' || first == '\\') {
            text_ += {'\\', first};
        } else if (static_cast<unsigned char>(first) < 0x20) {
            std::array<char, 8> code{};
            std::snprintf(code.data(), code.size(), "\\u%04x", static_cast<unsigned>(first));
            text_ += code.data();
        } else {
            text_ += value.substr(0, length);
        }
        value.remove_prefix(length == 0 ? 1 : length);
    }
    text_ += '"';
}

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
