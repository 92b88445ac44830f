// The C++ type of every kind of number that files hold, those that are not computed in included.
#pragma once

#include <complex>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "tilewise/base/dtype.hpp"

namespace tilewise::kernel {

template <class T> struct IsComplex : std::false_type {};
template <class T> struct IsComplex<std::complex<T>> : std::true_type {};

/// Calls `f(Tag<T>{})` for the C++ type of any dtype.
template <class F> decltype(auto) with_file_type(Dtype dtype, F&& f) {
    switch (dtype) {
        case Dtype::int8:
            return f(Tag<std::int8_t>{});
        case Dtype::int16:
            return f(Tag<std::int16_t>{});
        case Dtype::int32:
            return f(Tag<std::int32_t>{});
        case Dtype::uint8:
            return f(Tag<std::uint8_t>{});
        case Dtype::uint16:
            return f(Tag<std::uint16_t>{});
        case Dtype::uint32:
            return f(Tag<std::uint32_t>{});
        case Dtype::float16:
            return f(Tag<Half>{});
        default:
            return with_compute_type(dtype, f);
    }
}

/// Number `index` of an array of T that need not be aligned, as numbers in files are not.
template <class T> T load(const std::byte* data, std::int64_t index) {
    T value;
    std::memcpy(&value, data + index * static_cast<std::int64_t>(sizeof(T)), sizeof(T));
    return value;
}
template <class T> void store(std::byte* data, std::int64_t index, const T& value) {
    std::memcpy(data + index * static_cast<std::int64_t>(sizeof(T)), &value, sizeof(T));
}

}  // namespace tilewise::kernel
