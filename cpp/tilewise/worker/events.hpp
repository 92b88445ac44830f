// Events: one JSON object a line on standard output, marked as ours by a leading record separator.
#pragma once

#include <array>
#include <chrono>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <ranges>
#include <string>
#include <string_view>

#include "tilewise/base/error.hpp"
#include "tilewise/base/ledger.hpp"

namespace tilewise::worker {

class Json {
public:
    struct Member;

    Json(std::nullptr_t = nullptr) : text_("null") {}
    template <std::integral T> Json(T value) {
        if constexpr (std::same_as<T, bool>) {
            text_ = value ? "true" : "false";
        } else {
            text_ = std::to_string(value);
        }
    }
    /// null where it is not finite: JSON has no word for it.
    Json(double value);
    /// Bytes that are not UTF-8 are replaced.
    Json(std::string_view value);
    Json(const char* value) : Json(std::string_view(value)) {}
    Json(const std::string& value) : Json(std::string_view(value)) {}
    /// Json{{"key", value}, …}: an object.
    Json(std::initializer_list<Member> members);
    /// An array, of any list of what can itself be a value.
    template <std::ranges::input_range List>
        requires(!std::convertible_to<List, std::string_view>)
    Json(const List& list) : text_("[") {
        for (const auto& value : list) {
            append(Json(value));
        }
        text_ += ']';
    }
    static Json object() { return written("{}"); }
    /// What one that was written before says.
    static Json written(std::string text);

    /// Another member of an object, which has none of that key.
    void add(std::string_view key, const Json& value);
    const std::string& text() const { return text_; }

private:
    std::string text_;

    /// A comma, but for the first, and a value.
    void append(const Json& value);
};

struct Json::Member {
    std::string_view key;
    Json value;
};

/// Writes one event in one system call, so that lines of several ranks do not mix.
void emit(const Json& event);

/// `aborts`: the others do not know of it, and the rank is about to end the job.
void emit_error(const Error& error, int rank, bool aborts = false);

/// At most ten progress events a second, but for the first of each phase.
class ProgressMeter {
public:
    void operator()(Phase phase, double done);
    /// Says that a phase goes on, or begins, where nobody reports how far it is.
    void enter(Phase phase) { (*this)(phase, done_[static_cast<std::size_t>(phase)]); }

private:
    std::chrono::steady_clock::time_point last_{};
    std::array<bool, phase_count> seen_{};
    std::array<double, phase_count> done_{};
};

}  // namespace tilewise::worker
